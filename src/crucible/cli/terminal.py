"""This terminal in the hands of a program on a node: every key goes there, and the terminal is given back as it was,
whatever ends it."""

import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

# What a terminal is taken for that does not say what it is, or says it in an odd way.
PLAIN = "xterm"
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class Left(Exception):
    """The person typed the way out."""


class WayOut:
    """`~.` at the beginning of a line, as with ssh; `~~` is one `~`."""

    def __init__(self) -> None:
        self._is_line_start = True
        self._has_tilde = False

    def passed(self, typed: bytes) -> bytes:
        """What goes to the node. Raises Left."""
        out = bytearray()
        for key in typed:
            out += self._key(key)
        return bytes(out)

    def _key(self, key: int) -> bytes:
        if self._has_tilde:
            self._has_tilde = self._is_line_start = False
            if key == ord("."):
                raise Left
            return bytes([key]) if key == ord("~") else bytes([ord("~"), key])
        if self._is_line_start and key == ord("~"):
            self._has_tilde = True
            return b""
        self._is_line_start = key in b"\r\n"
        return bytes([key])


class Window:
    """The size of the terminal; `wake` becomes readable when it changes."""

    def __init__(self) -> None:
        self.wake, self._signalled = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._signalled, False)

    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        found = shutil.get_terminal_size()
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            pass
        return found.lines, found.columns

    def has_changed(self) -> bool:
        try:
            return bool(os.read(self.wake, 4096))
        except BlockingIOError:
            return False

    @contextmanager
    def watched(self) -> Iterator["Window"]:
        before = signal.signal(signal.SIGWINCH, self._note)
        try:
            yield self
        finally:
            signal.signal(signal.SIGWINCH, before)
            os.close(self.wake)
            os.close(self._signalled)

    def _note(self, *_: Any) -> None:
        try:
            os.write(self._signalled, b".")
        except BlockingIOError:
            pass


def term() -> str:
    """What kind of terminal this is, in a word that a node takes."""
    name = os.environ.get("TERM", "")
    is_plain = 0 < len(name) <= 64 and all(
        letter.isascii() and (letter.isalnum() or letter in "._+-") for letter in name
    )
    return name if is_plain else PLAIN


@contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Keys come as they are typed; Ctrl-C is one of them."""
    before = termios.tcgetattr(descriptor)
    handlers = {signum: signal.signal(signum, _end) for signum in _ENDING}
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)  # what was typed ahead counts
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for signum, handler in handlers.items():
            signal.signal(signum, handler)


def _end(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)
