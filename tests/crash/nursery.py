"""Servers by fork, from a process that has loaded their code: nine tenths of what a start costs is loading. Each is a
process of its own with nothing open but its log; it runs, dies and ends like one that was started afresh.

    python nursery.py FD …    FD is a socket on which the births are asked for"""

import gc
import json
import os
import random
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

MOST_BYTES = 1 << 20  # of one request
WIDTH = 16  # of a number that is told
SERVER = ("-m", "crucible.main")


class Nursery:
    """Begins with the first birth."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def bear(self, argv: Sequence[str], environment: Mapping[str, str], log: Path, max_file_bytes: int) -> "Born":
        """`argv` as after the name of the interpreter."""
        if self._socket is None:
            self._begin()
        assert self._socket is not None
        told, tells = os.pipe()
        wish = {"argv": list(argv), "env": dict(environment), "cwd": str(Path.cwd()), "max_file_bytes": max_file_bytes}
        with log.open("ab") as file:
            socket.send_fds(self._socket, [json.dumps(wish).encode()], [tells, file.fileno()])
        os.close(tells)
        return Born(told)

    def close(self) -> None:
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()
            self._socket = None

    def _begin(self) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            # What is born keeps this command line, and `crucible` knows a server by its words.
            argv = [sys.executable, __file__, str(other.fileno()), *SERVER, "server"]
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=[other.fileno()])


class Born:
    """What a test knows of `subprocess.Popen`, for a process that is somebody else's child."""

    def __init__(self, told: int) -> None:
        self._told = told
        self.pid = self._number()
        self.returncode: int | None = None
        self._handle: int | None = None
        with suppress(ProcessLookupError):  # it has ended already
            self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        return self._listen(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._listen(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a server", timeout or 0)
        return code

    def send_signal(self, signum: signal.Signals) -> None:
        """To this process and no other, even if its number was given away."""
        if self._handle is not None and self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signum)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _listen(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._told], [], [], timeout)[0]:
            self.returncode = self._number()
            os.close(self._told)
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None
        return self.returncode

    def _number(self) -> int:
        data = os.read(self._told, WIDTH)
        assert len(data) == WIDTH, f"the nursery ended: {data!r}"
        return int(data)


# --- in the nursery -------------------------------------------------------------------------------------------


def serve(wishes: socket.socket) -> None:
    """Until nobody can wish any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for who minds a server
    while True:
        data, given, _, _ = socket.recv_fds(wishes, MOST_BYTES, 2)
        if not data:
            break
        if os.fork() == 0:
            wishes.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            mind(json.loads(data), *given)
        for descriptor in given:
            os.close(descriptor)


def mind(wish: dict[str, Any], tells: int, log: int) -> NoReturn:
    """Becomes the server, and whoever tells its number and in the end its exit code."""
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    pid = os.fork()
    if pid == 0:
        os.close(tells)
        become(wish)
    tell(tells, pid)
    _, status = os.waitpid(pid, 0)
    tell(tells, os.waitstatus_to_exitcode(status))
    os._exit(0)


def tell(tells: int, number: int) -> None:
    """Of one width: two of them may arrive at once."""
    os.write(tells, f"{number:{WIDTH}}".encode())


def become(wish: dict[str, Any]) -> NoReturn:
    os.environ.clear()
    os.environ.update(wish["env"])
    os.chdir(wish["cwd"])
    resource.setrlimit(resource.RLIMIT_FSIZE, (wish["max_file_bytes"], resource.RLIM_INFINITY))
    random.seed()
    if tuple(wish["argv"][:2]) == SERVER:
        sys.argv = wish["argv"][1:]
        main.main()
    else:
        sys.argv = wish["argv"]
        runpy.run_path(sys.argv[0], run_name="__main__")
    sys.exit(0)


def warm_up() -> None:
    """What every server works out once, and what comes out the same each time."""
    bundle.compiled()
    statements = [one for one in gc.get_objects() if isinstance(one, sql.Sql)]
    for dialect in (sql.SQLITE, sql.POSTGRES):
        schema.ddl(dialect)
        for one in statements:
            one.on(dialect)


if __name__ == "__main__":
    from crucible import main
    from crucible.agent import bundle
    from crucible.store import schema, sql

    sys.path.pop(0)  # the folder of this file: no program of ours starts with it
    warm_up()
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        serve(asked)
