"""The server on this computer: found by its data folder, started when a command needs one, stopped by its pid.

It trusts `server.json` only while the process named there lives and is ours: a stale file must not make us hand the
admin token to whoever has the port now."""

import fcntl
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crucible.client.endpoint import Endpoint
from crucible.client.errors import LocalServerFailed, ServerNotInstalled, ServerTimeout, ServerUnreachable
from crucible.client.transport import Transport

# A server is ready in about two seconds; a loaded computer may need many more, and who ends is seen at once. Whoever
# gave up on a server that goes on starting would start another over the same data.
READY_WITHIN_S = 60.0
# It lets running requests end and writes what it holds; it never waits for jobs.
STOPPED_WITHIN_S = 30.0
# The module that is the server, and a package that only `crucible[server]` brings.
MODULE = "crucible.main"
NEEDED = ("fastapi", "uvicorn", "sqlalchemy")
LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    pid: int
    version: str


@dataclass(frozen=True, slots=True)
class Embedded:
    home: Path
    token: str | None = None  # given by the environment; else the admin token in the folder

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def running(self) -> Running | None:
        """What `server.json` says, if its process is a live server of ours."""
        try:
            data: Any = json.loads((self.home / "server.json").read_text())
            found = Running(str(data["url"]), int(data["pid"]), str(data.get("version", "")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return found if _is_server(found.pid) else None

    def endpoint(self) -> Endpoint | None:
        running = self.running()
        if running is None:
            return None
        token = self.token or self._admin_token()
        return Endpoint(running.url, token, f"the local server in {self.home}", str(self.home), running.version)

    def ensure(self, started: Callable[[Running], None]) -> Endpoint:
        """The endpoint of a server that answers; `started` is told when it had to be started."""
        endpoint = self.endpoint()
        if endpoint is None or not _answers(endpoint):
            self.start((), started)
            endpoint = self.endpoint()
        if endpoint is None:
            raise LocalServerFailed(f"the local server stopped again at once; see {self.log}")
        return endpoint

    def start(self, options: Sequence[str], started: Callable[[Running], None] | None = None) -> Running:
        """Start it in the background and wait until it is ready; `started` is told. If somebody else is starting it,
        wait for that."""
        check_installed()
        self._make_home()
        with _only_one(self.home / "start.lock"):
            running = self.running()
            if running is not None:
                return self._wait_ready(running.pid, is_child=False)
            running = self._wait_ready(self._spawn(options), is_child=True)
        if started is not None:
            started(running)
        return running

    def stop(self) -> Running | None:
        """Ask it to stop and wait until it has; None if none runs. Jobs go on and wait for the next server."""
        running = self.running()
        if running is None:
            return None
        os.kill(running.pid, signal.SIGTERM)
        deadline = time.monotonic() + STOPPED_WITHIN_S
        while _is_server(running.pid):
            if time.monotonic() > deadline:
                raise LocalServerFailed(
                    f"the local server (pid {running.pid}) did not stop within {STOPPED_WITHIN_S:.0f} s; see {self.log}"
                )
            time.sleep(0.05)
        return running

    def log_tail(self, lines: int = LOG_TAIL_LINES) -> str:
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 16384))
                return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    # --- starting --------------------------------------------------------------------------------

    def _make_home(self) -> None:
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LocalServerFailed(
                f"the data folder {self.home} cannot be made: {error.strerror}; set CRUCIBLE_HOME to another"
            ) from error

    def _spawn(self, options: Sequence[str]) -> int:
        """posix_spawn, so that no handle of ours owns the process: it outlives this command. With -P, so that a file
        called random.py in the folder of a user's job is not taken for the library's."""
        argv = [sys.executable, "-P", "-m", MODULE, "server", "--data-dir", str(self.home), *options]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        return os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsid=True)

    def _wait_ready(self, pid: int, *, is_child: bool) -> Running:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            running = self.running()
            if running is not None and running.pid == pid and _answers(Endpoint(running.url)):
                return running
            if not (_child_lives(pid) if is_child else _is_server(pid)):
                raise LocalServerFailed(self._why_not(f"the local server ended while starting (pid {pid})"))
            time.sleep(0.03)
        raise LocalServerFailed(
            self._why_not(f"the local server (pid {pid}) is not ready after {READY_WITHIN_S:.0f} s"),
            pid=pid,
        )

    def _why_not(self, what: str) -> str:
        tail = self.log_tail()
        return f"{what}; {self.log} ends with:\n{tail}" if tail else f"{what}; {self.log} is empty"

    def _admin_token(self) -> str | None:
        try:
            return (self.home / "admin-token").read_text().strip() or None
        except OSError:
            return None


def check_installed() -> None:
    """Raises ServerNotInstalled with the command that installs it."""
    missing = [name for name in (*NEEDED, MODULE) if importlib.util.find_spec(name) is None]
    if missing:
        raise ServerNotInstalled(
            "the local server is not installed: run pip install 'crucible[server]', "
            "or use a server elsewhere with crucible login URL",
            missing=missing,
        )


def _answers(endpoint: Endpoint) -> bool:
    try:
        return Transport(endpoint).probe("/readyz", timeout_s=2.0) == 200
    except (ServerUnreachable, ServerTimeout):
        return False


def _child_lives(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _is_server(pid: int) -> bool:
    """Whether `pid` lives and is a Crucible server. Where there is no /proc, a live pid must do."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return not Path("/proc/self/cmdline").exists() and _lives(pid)
    except OSError:
        return False
    return b"server" in command and any(MODULE.encode() == word or word.endswith(b"/crucible") for word in command)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two commands at once start one server: the second waits for the first and finds it running."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
