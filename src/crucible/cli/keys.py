"""Keys as they are typed, for a picture that is redrawn. Ctrl-C stays what it is; the terminal is given back as it
was."""

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


@contextmanager
def one_by_one(keys: TextIO) -> Iterator[None]:
    """Without waiting for the end of a line, and without showing them; nothing changes where it is no terminal."""
    if not keys.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(keys.fileno())
    try:
        tty.setcbreak(keys.fileno())
        yield
    finally:
        termios.tcsetattr(keys.fileno(), termios.TCSADRAIN, before)


def key_within(keys: TextIO, seconds: float) -> str | None:
    """The next key; None if none came in time, or nobody can type."""
    if not keys.isatty():
        time.sleep(seconds)
        return None
    ready, _, _ = select.select([keys], [], [], seconds)
    return keys.read(1) if ready else None
