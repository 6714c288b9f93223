"""One program of a rank: its own session and process group, its own cgroup where allowed, output through pipes.

Only the single-threaded supervisor may use this: it forks."""

from __future__ import annotations

import errno
import fcntl
import os
import signal

from .handover import limit_core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, NoReturn, Optional, Tuple

# What a supervisor sleeps through: it dies last, by itself. A program gets the defaults back.
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
# Python itself ignores these two.
_RESTORED = (*_IGNORED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)

# A burst of output does not make the program wait for the supervisor's turn. Linux only; refusal does no harm.
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031

# What shells answer.
NOT_FOUND, NOT_EXECUTABLE = 127, 126


class CouldNotStart(Exception):
    def __init__(self, argv: List[str], number: int) -> None:
        super().__init__("could not start %s: %s" % (argv[0], os.strerror(number)))
        self.exit_code = NOT_FOUND if number == errno.ENOENT else NOT_EXECUTABLE


def ignore_signals() -> None:
    for signum in _IGNORED:
        signal.signal(signum, signal.SIG_IGN)


class Program:
    """Raises CouldNotStart. `status` is filled in by whoever reaps it."""

    def __init__(
        self, argv: List[str], env: Dict[str, str], cwd: str, cgroup: Optional[str], core_limit: Optional[int] = None
    ) -> None:
        """`core_limit` is the machine's own, which the supervisor has lowered for itself."""
        self.status: Optional[int] = None
        self.out, out = _pipe()
        self.err, err = _pipe()
        failure, report = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _become(argv, env, cwd, cgroup, core_limit, out, err, report)
        for descriptor in (out, err, report):
            os.close(descriptor)
        # Closed by the exec; before that it carries the error number.
        number = os.read(failure, 16)
        os.close(failure)
        if number:
            os.waitpid(self.pid, 0)
            os.close(self.out)
            os.close(self.err)
            raise CouldNotStart(argv, int(number))

    def outcome(self) -> Tuple[Optional[int], Optional[int]]:
        """Exit code or signal."""
        if self.status is None:
            return None, None
        if os.WIFSIGNALED(self.status):
            return None, os.WTERMSIG(self.status)
        return os.WEXITSTATUS(self.status), None

    def signal_group(self, signum: int) -> None:
        """The group keeps its number as long as its leader has not been reaped: no stranger can be hit."""
        try:
            os.killpg(self.pid, signum)
        except OSError:
            pass


def _pipe() -> Tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        fcntl.fcntl(reader, _F_SETPIPE_SZ, _PIPE_BYTES)
    except OSError:
        pass
    return reader, writer


def _become(
    argv: List[str],
    env: Dict[str, str],
    cwd: str,
    cgroup: Optional[str],
    core_limit: Optional[int],
    out: int,
    err: int,
    report: int,
) -> NoReturn:
    """In the child: never returns, and never runs the parent's clean-up."""
    try:
        os.setsid()
        for signum in _RESTORED:
            signal.signal(signum, signal.SIG_DFL)
        enter(cgroup)
        if core_limit is not None:
            limit_core(core_limit)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(cwd)
        os.execvpe(argv[0], argv, env)  # noqa: S606 (an argv list, no shell)
    except OSError as error:
        os.write(report, b"%d" % (error.errno or errno.EINVAL))
    except BaseException:  # anything else (an argument with a NUL) must not unwind into the supervisor's stack
        os.write(report, b"%d" % errno.EINVAL)
    finally:
        os._exit(NOT_FOUND)


def enter(cgroup: Optional[str]) -> None:
    """Where it is not allowed, the process group and the mark have to do."""
    if cgroup is None:
        return
    try:
        with open(os.path.join(cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")
    except OSError:
        pass
