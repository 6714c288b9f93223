"""Where a command's words go: data to stdout, in the form that was asked for; notes to stderr. Colour and width only
where a person looks."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

FORMATS = ("table", "wide", "json", "yaml")

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}
_STATUS = {
    "pending": "yellow",
    "scheduled": "yellow",
    "provisioning": "cyan",
    "running": "blue",
    "checkpointing": "blue",
    "completed": "green",
    "failed": "red",
    "cancelled": "dim",
    # of tasks
    "waiting": "yellow",
    "stopped": "dim",
    "skipped": "dim",
    "reused": "green",
}


class Out:
    def __init__(
        self,
        format: str = "table",
        quiet: bool = False,
        *,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.format = format
        self.quiet = quiet
        self._stdout = stdout or sys.stdout
        self._stderr = stderr or sys.stderr
        self._environ = os.environ if environ is None else environ
        self._said: set[str] = set()
        self.is_terminal = self._stdout.isatty()
        self.has_colour = self.is_terminal and not self._environ.get("NO_COLOR") and self._environ.get("TERM") != "dumb"

    @property
    def is_wide(self) -> bool:
        return self.format == "wide"

    @property
    def is_for_programs(self) -> bool:
        return self.format in ("json", "yaml")

    @property
    def width(self) -> int | None:
        """Columns of the terminal; None where nothing must be cut: a pipe, or `-o wide`."""
        return shutil.get_terminal_size().columns if self.is_terminal and not self.is_wide else None

    @property
    def error_width(self) -> int | None:
        """The same for what goes to stderr."""
        return shutil.get_terminal_size().columns if self._stderr.isatty() else None

    def line(self, text: str = "") -> None:
        self._stdout.write(text + "\n")

    def raw(self, text: str) -> None:
        """Without a line's end of its own."""
        self._stdout.write(text)

    def bytes(self, pieces: Iterable[bytes]) -> None:
        """As they are."""
        self._stdout.flush()
        target = self._stdout.buffer
        for piece in pieces:
            target.write(piece)
        target.flush()

    def live(self, text: str) -> None:
        """At once: somebody may be watching."""
        self._stdout.write(text)
        self._stdout.flush()

    def note(self, text: str) -> None:
        """Progress and explanations; silent under --quiet."""
        if not self.quiet:
            self.warn(text)

    def note_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.note(text)

    def warn(self, text: str) -> None:
        """Said even under --quiet."""
        self._stderr.write(text + "\n")
        self._stderr.flush()

    def trouble(self, error: Exception) -> None:
        """The server went away while we follow something; what we follow goes on without us."""
        self.note(f"{error}; trying again")

    def show(self, value: Any, draw: Callable[[], list[str]]) -> None:
        """`value` for programs, what `draw` makes for people."""
        if self.format == "json":
            self.line(json.dumps(value, indent=2, ensure_ascii=False))
        elif self.format == "yaml":
            self.raw(as_yaml(value))
        else:
            for line in draw():
                self.line(line)

    def record(self, value: Any) -> None:
        """One of a stream of values: a JSON line, or a YAML document."""
        if self.format == "yaml":
            self.live("---\n" + as_yaml(value))
        else:
            self.live(json.dumps(value, ensure_ascii=False) + "\n")

    def paint(self, colour: str, text: str) -> str:
        return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if self.has_colour else text

    def status(self, word: str) -> str:
        """A status word in its colour, with the mark that may follow it."""
        colour = _STATUS.get(word.split()[0] if word.strip() else "")
        return self.paint(colour, word) if colour else word

    def symbol(self, sign: str, plain: str) -> str:
        """`sign` where the terminal can show it."""
        try:
            sign.encode(self._stdout.encoding or "ascii")
        except UnicodeEncodeError:
            return plain
        return sign


def as_yaml(value: Any) -> str:
    import yaml  # only those who ask for YAML pay for it

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))
