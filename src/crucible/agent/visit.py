"""A program that a person runs beside a rank: in its environment, folder, cgroup or container, with pipes or at a
terminal. It lives no longer than its channel; whatever it leaves behind is ended with it."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
import time

from . import entrance, processes
from .relay import ERR, EXIT, IN, OUT, SIZE, Sink, packed, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from typing import Any, Dict, List, Optional, Set

    from .relay import Relay

# In the environment of everything that a person runs: by it leftovers are found, in a container too.
CHANNEL_ID = "CRUCIBLE_CHANNEL_ID"
# Whoever asks for no program gets the best shell there is.
_SHELL = ["/bin/sh", "-c", 'exec "$(command -v bash || command -v sh)"']
_TICK_S = 0.1
_QUICK_S = 0.02
# The program has ended, but something that it started still holds its output: silence of so long is the end.
_SILENCE_S = 0.3
# Between being told that the person is gone, and being killed.
_GRACE_S = 1.0
_END_OF_INPUT = b"\x04"


class Ended(Exception):
    """The rank is over, and so is everything beside it."""


class Visit:
    """Raises OSError if the program cannot be started."""

    def __init__(
        self, channel_id: str, program: List[str], spec: Dict[str, Any], request: Dict[str, Any], is_boxed: bool
    ) -> None:
        """`spec` is the rank's own; `request` has `argv`, `stdin` and `tty`. `is_boxed`: the rank is in a container, so
        that its environment is not one for programs of the machine."""
        self._id = channel_id
        self._terminal: Optional[int] = None
        self._pids: Set[int] = set()
        tty = request.get("tty")
        env = dict(os.environ if is_boxed else spec["env"])
        env.update({name: spec["env"][name] for name in (processes.RANK_ID, processes.RUN_DIR)})
        env[CHANNEL_ID] = channel_id
        if tty is not None:
            env["TERM"] = str(tty["term"])
        argv = entrance.command_line(program, spec.get("cgroup") or "", tty is not None, request["argv"])
        if tty is not None:
            self._at_terminal(argv, env, spec["cwd"], tty)
        else:
            self._with_pipes(argv, env, spec["cwd"], request["stdin"])

    def _at_terminal(self, argv: List[str], env: Dict[str, str], cwd: str, tty: Dict[str, Any]) -> None:
        master, slave = pty.openpty()
        self._terminal = master
        os.set_blocking(master, False)
        self._resize(tty["rows"], tty["columns"])
        try:
            self._process = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
            )
        except BaseException:
            os.close(master)
            raise
        finally:
            os.close(slave)
        self.sources = {OUT: master}
        self.sinks = {IN: Sink(master, lambda: self._type(_END_OF_INPUT))}

    def _with_pipes(self, argv: List[str], env: Dict[str, str], cwd: str, has_stdin: bool) -> None:
        self._process = subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        stdin, out, err = self._process.stdin, self._process.stdout, self._process.stderr
        assert out is not None and err is not None
        for pipe in (stdin, out, err):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self.sources = {OUT: out.fileno(), ERR: err.fileno()}
        self.sinks = {} if stdin is None else {IN: Sink(stdin.fileno(), stdin.close)}

    def carry(self, relay: Relay, over: threading.Event) -> None:
        """Until the program has ended and all it said was sent. Raises Ended, Closed, Broken."""
        quiet_since, heard = time.monotonic(), -1
        while True:
            for kind, payload in relay.turn(_TICK_S if relay.sources else _QUICK_S):
                if kind == SIZE and self._terminal is not None:
                    self._resize(*size_of(payload))
            if over.is_set():
                raise Ended
            if relay.read_bytes != heard or not relay.has_room:
                quiet_since, heard = time.monotonic(), relay.read_bytes
            is_silent = not relay.sources or time.monotonic() - quiet_since >= _SILENCE_S
            if self._process.poll() is not None and is_silent:
                relay.send(EXIT, packed(self._outcome()))
                return

    def end(self) -> None:
        """Nothing of it lives afterwards."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._terminal is not None:
            os.close(self._terminal)
        kill_at = time.monotonic() + _GRACE_S
        signum = signal.SIGHUP
        left = self._left()
        while left:
            processes.kill(left, signum)
            processes.kill(left, signal.SIGCONT)  # one that was stopped hears nothing else
            time.sleep(_QUICK_S)
            signum = signal.SIGKILL if time.monotonic() >= kill_at else signal.SIGTERM
            left = self._left()
        self._process.wait()
        for pid in self._pids:
            processes.reap(pid)

    def _left(self) -> List[processes.Process]:
        left = processes.carriers({CHANNEL_ID: self._id})
        if self._process.poll() is None:
            left += [each for each in [processes.find(self._process.pid)] if each is not None and not each.is_zombie]
        self._pids.update(each.pid for each in left if each.pid != self._process.pid)
        return left

    def _outcome(self) -> Dict[str, int]:
        code = self._process.returncode
        return {"signal": -code} if code < 0 else {"exit_code": code}

    def _resize(self, rows: int, columns: int) -> None:
        assert self._terminal is not None
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _type(self, keys: bytes) -> None:
        assert self._terminal is not None
        try:
            os.write(self._terminal, keys)
        except OSError:
            pass  # the program does not read, or is gone: its terminal closes soon


def command_of(launch: Dict[str, Any], channel_id: str, request: Dict[str, Any]) -> List[str]:
    """What to run for a person: their command or a shell, inside the rank's container if it has one."""
    argv = [str(each) for each in request.get("argv") or _SHELL]
    container = launch.get("container")
    if container is None:
        return argv
    runtime = container.get("runtime") or "auto"
    runtime = ("podman" if shutil.which("podman") else "docker") if runtime == "auto" else runtime
    options = ["--interactive", "--env", "%s=%s" % (CHANNEL_ID, channel_id)]
    if request.get("tty") is not None:
        options += ["--tty", "--env", "TERM=%s" % request["tty"]["term"]]
    return [runtime, "exec", *options, "crucible-%s-%d" % (launch["attempt_id"], launch["rank"]), *argv]


def end_leftovers(folder: str) -> None:
    """Of an earlier agent of this folder: nobody holds their channels any more."""
    for process in processes.everything().values():
        env = processes.environment_of(process)
        run_dir = env.get(processes.RUN_DIR.encode(), b"")
        if CHANNEL_ID.encode() in env and run_dir.startswith(os.fsencode(os.path.join(folder, ""))):
            processes.kill([process])
