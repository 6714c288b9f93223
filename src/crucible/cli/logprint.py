"""Log records as the lines a person reads. The text of the job is passed on as it came: its colours are its own."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo

from crucible.cli.output import Out
from crucible.client.shapes import LogRecord


class LogPrinter:
    """`ranks` is asked once, when the first line comes: with several ranks each line begins with its rank."""

    def __init__(
        self,
        out: Out,
        *,
        ranks: Callable[[], int],
        has_times: bool = False,
        is_live: bool = False,
        zone: tzinfo | None = None,
    ) -> None:
        self._out = out
        self._write = out.live if is_live else out.raw
        self._ranks = ranks
        self._has_times = has_times
        self._zone = zone
        self._names_ranks: bool | None = None
        self._attempt: int | None = None
        self._unfinished: tuple[int, int] | None = None  # whose line has no end yet

    def print(self, record: LogRecord) -> None:
        source = record["attempt"], record["rank"]
        self._announce(record["attempt"])
        is_continued = self._unfinished == source
        if self._unfinished is not None and not is_continued:
            self.end()
        is_whole = not record.get("p", False)
        self._write(("" if is_continued else self._prefix(record)) + record["x"] + ("\n" if is_whole else ""))
        self._unfinished = None if is_whole else source

    def end(self) -> None:
        """Whatever comes next begins on a new line."""
        if self._unfinished is not None:
            self._write("\n")
            self._unfinished = None

    def _announce(self, attempt: int) -> None:
        if self._attempt is not None and attempt != self._attempt:
            self.end()
            self._out.note(f"--- attempt {attempt} ---")
        self._attempt = attempt

    def _prefix(self, record: LogRecord) -> str:
        if self._names_ranks is None:
            self._names_ranks = self._ranks() > 1
        parts = []
        if self._has_times:
            at = datetime.fromtimestamp(record["t"] / 1000, UTC).astimezone(self._zone)
            parts.append(at.isoformat(timespec="milliseconds"))
        if self._names_ranks:
            parts.append(self._out.paint("cyan", f"[{record['rank']}]"))
        if record["s"] == "sys":
            parts.append(self._out.paint("dim", "crucible:"))
        return " ".join(parts) + " " if parts else ""
