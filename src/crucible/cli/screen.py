"""A picture that is drawn again in place: a whole screen of its own, or the last lines of this one. A dozen control
sequences that every terminal knows; a library for it would be twice the size of everything else."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

Draw = Callable[[Sequence[str]], None]

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor
ENTER, LEAVE = "\x1b[?1049h\x1b[H", "\x1b[?1049l"  # a screen that gives the old one back at its end
HOME, CLEAR_LINE, CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


@contextmanager
def whole_screen(to: TextIO) -> Iterator[Draw]:
    """What does not fit below is cut. The terminal is given back as it was, whatever ends it."""

    def draw(lines: Sequence[str]) -> None:
        rows = shutil.get_terminal_size().lines
        to.write(HOME + "\n".join(line + CLEAR_LINE for line in lines[:rows]) + CLEAR_BELOW)
        to.flush()

    to.write(ENTER + HIDE)
    try:
        yield draw
    finally:
        to.write(SHOW + LEAVE)
        to.flush()


@contextmanager
def last_lines(to: TextIO) -> Iterator[Draw]:
    """Over what it drew before; the last picture stays."""
    drawn = 0

    def draw(lines: Sequence[str]) -> None:
        nonlocal drawn
        back = f"\x1b[{drawn}F" if drawn else ""
        shown = lines[: max(1, shutil.get_terminal_size().lines - 1)]
        to.write(back + CLEAR_BELOW + "".join(f"{line}\n" for line in shown))
        to.flush()
        drawn = len(shown)

    to.write(HIDE)
    try:
        yield draw
    finally:
        to.write(SHOW)
        to.flush()
