"""A program on a terminal of its own: what it shows, and what a person types."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Terminal:
    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *, columns: int = 80, rows: int = 24) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crucible.cli.entry", *argv],
            env={"TERM": "xterm-256color", "LANG": "C.UTF-8", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self.shown = ""

    def until(self, words: str, limit_s: float = 30.0) -> None:
        end = time.monotonic() + limit_s
        while words not in self.shown:
            assert time.monotonic() < end, f"{words!r} is not in {self.shown!r}"
            if not self._read():
                assert words in self.shown, f"it ended without {words!r}: {self.shown!r}"

    def until_idle(self, limit_s: float = 30.0) -> None:
        """It uses no CPU and waits for us. Python misses a Ctrl-C that comes just before it begins to read a line."""
        end = time.monotonic() + limit_s
        before, calm = self._cpu(), 0
        while calm < 5:
            assert time.monotonic() < end, f"it is never idle: {self.shown!r}"
            self._read()
            now = self._cpu()
            before, calm = now, calm + 1 if now == before and now[0] == "S" else 0

    def _cpu(self) -> tuple[str, ...]:
        """Its state, and the CPU time it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[11], fields[12]

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until_end(self, limit_s: float = 30.0) -> None:
        """The program is gone; its terminal is still there to be looked at."""
        end = time.monotonic() + limit_s
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.shown!r}"
            self._read()

    def resize(self, *, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def modes(self) -> list[object]:
        """How it treats keys: as it was before, once a program has left it."""
        return list(termios.tcgetattr(self._ours))

    def end(self, limit_s: float = 30.0) -> int:
        """The exit code, once everything was read."""
        end = time.monotonic() + limit_s
        while self._read():
            assert time.monotonic() < end, f"it does not end: {self.shown!r}"
        os.close(self._ours)
        return self.process.wait(limit_s)

    def _read(self) -> bool:
        """False at the end of the program's output."""
        if not select.select([self._ours], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # Linux says EIO when the last writer has gone
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)
