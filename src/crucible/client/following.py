"""Follow a job through broken connections and restarts of the server, without losing a line or showing one twice.

A line is known by its number within (attempt, rank), which the server writes once and never changes; the offset only
saves reading again from the start."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

from crucible.client.errors import ServerError, ServerTimeout, ServerUnreachable
from crucible.client.shapes import LogRecord
from crucible.client.transport import Query, Stream
from crucible.model.errors import Busy, PlatformError

T = TypeVar("T")

# Longer than any restart; a job does not mind, but a person should hear that nobody answers.
GIVE_UP_AFTER_S = 600.0
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
# A silent job keeps its connection; past this it is asked for again, in case the line died unnoticed.
IDLE_S = 60.0
TROUBLE = (ServerUnreachable, ServerTimeout, Busy)

OnTrouble = Callable[[PlatformError], None]


class Patience:
    """Pauses that grow while nothing works. Raises the last error once it has taken too long."""

    def __init__(self, give_up_after_s: float = GIVE_UP_AFTER_S, on_trouble: OnTrouble | None = None) -> None:
        self._give_up_after_s = give_up_after_s
        self._on_trouble = on_trouble or (lambda _: None)
        self._since: float | None = None
        self._pause_s = SHORTEST_PAUSE_S

    def succeeded(self) -> None:
        self._since = None
        self._pause_s = SHORTEST_PAUSE_S

    def failed(self, error: PlatformError) -> None:
        time.sleep(self.pause_after(error))

    def pause_after(self, error: PlatformError) -> float:
        """How long to wait before the next try, for who must not block."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            self._on_trouble(error)
        if now - self._since >= self._give_up_after_s:
            raise error
        pause_s = self._pause_s
        self._pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        return pause_s

    def insist(self, call: Callable[[], T]) -> T:
        """The result of a repeatable call, however often it takes."""
        while True:
            try:
                result = call()
            except TROUBLE as error:
                self.failed(error)
            else:
                self.succeeded()
                return result


class LogSource(Protocol):
    """What following needs of a client."""

    def open_log(self, job_id: str, query: Query, idle_s: float) -> AbstractContextManager[Stream]: ...
    def is_over(self, job_id: str) -> bool: ...


class LogReader:
    """One reader of one job's log, of whatever `query` says (offset, tail, since, rank, attempt)."""

    def __init__(
        self, source: LogSource, job_id: str, query: Query, patience: Patience, idle_s: float = IDLE_S
    ) -> None:
        self._source = source
        self._job_id = job_id
        self._query = query
        self._patience = patience
        self._idle_s = idle_s
        self._position: int | None = None  # where the next request begins
        self._seen: dict[tuple[int, int], int] = {}  # (attempt, rank) -> number of its newest line

    def lines(self, *, follow: bool) -> Iterator[LogRecord]:
        """All there is; with `follow` also what comes, until the job is over and its last line was read."""
        if self._query.get("tail") is not None:
            yield from self._tail()
            if not follow:
                return
        is_last = not follow
        while True:
            is_whole = yield from self._request(follow=not is_last)
            if is_last and is_whole:
                return
            # A stream may also end because its server did. Only what is read after the job was over is known to be all.
            is_last = is_last or self._patience.insist(lambda: self._source.is_over(self._job_id))

    def _tail(self) -> list[LogRecord]:
        """The last lines, shown only once all of them are here: a second try may find that the end has moved on."""
        while True:
            seen = dict(self._seen)
            lines: list[LogRecord] = []
            pieces = self._request(follow=False)
            try:
                while True:
                    lines.append(next(pieces))
            except StopIteration as end:
                if end.value:
                    return lines
            self._seen, self._position = seen, None

    def _request(self, *, follow: bool) -> Generator[LogRecord, None, bool]:
        """The new lines of one answer; returns whether it came to its proper end."""
        is_open = False
        try:
            with self._source.open_log(self._job_id, self._parameters(follow), self._idle_s) as stream:
                is_open = True
                self._patience.succeeded()
                for line in stream.lines():
                    yield from self._take(line)
                self._position = _next_offset(stream, self._position)
        except TROUBLE as error:
            if not is_open:
                self._patience.failed(error)
            time.sleep(SHORTEST_PAUSE_S)  # even a server that hangs up at once is asked gently
            return False
        if follow:
            time.sleep(SHORTEST_PAUSE_S)
        return True

    def _parameters(self, follow: bool) -> Query:
        wanted = {**self._query, "follow": follow, "format": "json"}
        if self._position is not None:
            wanted |= {"offset": self._position, "tail": None}
        return wanted

    def _take(self, line: bytes) -> Iterator[LogRecord]:
        if not line.strip():  # a sign of life
            return
        record = _parse(line)
        source = record["attempt"], record["rank"]
        if record["n"] > self._seen.get(source, -1):
            self._seen[source] = record["n"]
            yield record
        self._position = record.get("offset", self._position)


def _parse(line: bytes) -> LogRecord:
    try:
        record: LogRecord = json.loads(line)
        record["attempt"], record["rank"], record["n"], record["x"]
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError(f"a log line is not as it should be ({error}); is this a Crucible server?") from error
    return record


def _next_offset(stream: Stream, otherwise: int | None) -> int | None:
    """Where to read on; a followed stream does not say, its lines do."""
    said = stream.headers.get("X-Next-Offset")
    return int(said) if said is not None and said.isdigit() else otherwise
