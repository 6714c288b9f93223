"""The first moments of a program that a person runs beside a rank: in its cgroup, at its terminal, and no longer than
the agent lives. A process of its own, because an agent with threads must not run Python between fork and exec."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
import termios

from .program import NOT_EXECUTABLE, NOT_FOUND, enter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

_PR_SET_PDEATHSIG = 1
NOWHERE = "-"


def command_line(program: List[str], cgroup: str, has_terminal: bool, argv: List[str]) -> List[str]:
    return [*program, "--enter", cgroup or NOWHERE, "tty" if has_terminal else NOWHERE, *argv]


def main(words: List[str]) -> int:
    """Returns only if the program could not be started."""
    cgroup, terminal, *argv = words
    _die_with_parent()
    if terminal != NOWHERE:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    enter(None if cgroup == NOWHERE else cgroup)
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
        signal.signal(signum, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 (an argv list, no shell)
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        print("could not start %s: %s" % (argv[0], os.strerror(number or 0)), file=sys.stderr)
        return NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE


def _die_with_parent() -> None:
    """Of the thread that started us, which stays as long as the channel does."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass
