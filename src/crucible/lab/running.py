"""The Lab on this computer, seen from outside: found by its folder, started in the background, asked through its own
door, stopped. It trusts lab.json only while the process named there lives and is a Lab: a stale file must not make us
hand the token to whoever has the port now."""

import fcntl
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crucible.client.endpoint import Endpoint
from crucible.client.errors import ServerTimeout, ServerUnreachable
from crucible.client.transport import Query, Transport
from crucible.lab import guardian
from crucible.lab.settings import GUESTS, HOME
from crucible.model.errors import InvalidRequest, PlatformError

FILE, LOG, MODULE = "lab.json", "lab.log", "crucible.lab"
# It is ready in about two seconds; a loaded laptop may need many more.
READY_WITHIN_S = 30.0
# Two hundred machines are gone in a second or two.
STOPPED_WITHIN_S = 20.0
LOOK_EVERY_S = 0.02
# As many as the Lab serves; Amazon grants a new account two.
PURCHASES_PER_S = 50
LOG_TAIL_LINES = 15
# What only `crucible[lab]` brings.
NEEDED = ("uvicorn", "uvloop", "numpy", "botocore")


class LabNotRunning(PlatformError):
    code = "lab_not_running"


class LabFailed(PlatformError):
    code = "lab_failed"


class LabNotInstalled(InvalidRequest):
    code = "lab_not_installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    url: str
    pid: int
    version: str
    account: str
    regions: tuple[str, ...]
    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(repr=False)
    home: str = ""  # its folder

    def environment(self, server_regions: Sequence[str] | None = None) -> dict[str, str]:
        """What makes unmodified clients, and our own server, talk to the Lab."""
        regions = list(server_regions or self.regions)
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": regions[0],
            "AWS_EC2_METADATA_DISABLED": "true",
            "CRUCIBLE_PROVIDERS": "local,aws",
            "CRUCIBLE_AWS_REGIONS": ",".join(regions),
            "CRUCIBLE_AWS_PURCHASES_PER_S": str(PURCHASES_PER_S),
            HOME: self.home,
        }


class Control:
    """The Lab's own door."""

    def __init__(self, running: Running, *, timeout_s: float = 30.0) -> None:
        self._transport = Transport(Endpoint(running.url, running.token, FILE), timeout_s=timeout_s)

    def status(self, *, is_everything: bool = False) -> Any:
        return self._get("status", {"all": is_everything})

    def events(self, after: int = 0, subject: str | None = None) -> Any:
        return self._get("events", {"after": after, "subject": subject})["items"]

    def bill(self) -> Any:
        return self._get("bill")

    def console(self, machine: str) -> str:
        return str(self._get("console", {"machine": machine})["text"])

    def clock(self) -> Any:
        return self._get("clock")

    def storage(self) -> dict[str, str]:
        """What makes unmodified clients, and our own server, store in the Lab; its key is made when first asked for."""
        return {str(name): str(value) for name, value in self._get("storage").items()}

    def preempt(self, *machines: str, notice_s: float | None = None, **fitting: Any) -> Any:
        """These machines or none of them; without a name, all spot machines that fit `region`, `type`, `tag`, at most
        `count`."""
        body = {"machines": machines, "notice_s": notice_s, **fitting}
        return self._transport.call("POST", "/_lab/preempt", body=body)["items"]

    def fail(self, kind: str, **fields: Any) -> Any:
        """Add a rule; its fields are those of `lab.fault_rules.read_rule`."""
        return self._transport.call("POST", "/_lab/faults", body={"kind": kind, **fields})

    def faults(self) -> Any:
        return self._get("faults")["items"]

    def clear_faults(self, rule: str | None = None) -> int:
        return int(self._transport.call("DELETE", "/_lab/faults", query={"rule": rule})["cleared"])

    def shutdown(self) -> None:
        self._transport.call("POST", "/_lab/shutdown")

    def close(self) -> None:
        self._transport.close()

    def _get(self, what: str, query: Query | None = None) -> Any:
        return self._transport.call("GET", f"/_lab/{what}", query=query)


@dataclass(frozen=True, slots=True)
class LocalLab:
    home: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "LocalLab":
        home = environ.get(HOME) or Path(environ.get("HOME") or Path.home()) / ".crucible" / "lab"
        return cls(Path(home).expanduser().absolute())

    @property
    def log(self) -> Path:
        return self.home / LOG

    def running(self) -> Running | None:
        """What lab.json says, if its process is a live Lab."""
        try:
            data: Any = json.loads((self.home / FILE).read_text())
            told = {"pid": int(data["pid"]), "regions": tuple(data["regions"]), "home": str(self.home)}
            found = Running(**{**data, **told})
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if _is_lab(found.pid) else None

    def needed(self) -> Running:
        """Raises LabNotRunning."""
        running = self.running()
        if running is None:
            raise LabNotRunning(f"no Lab is running in {self.home}", hint="start one with crucible lab up")
        return running

    def start(self, options: Sequence[str]) -> tuple[Running, bool]:
        """In the background, and whether it had to be started. Raises LabFailed with what its log says."""
        check_installed()
        self._make_home()
        with _only_one(self.home / "start.lock"):
            running = self.running()
            if running is not None:
                return running, False
            return self._wait_ready(self._spawn(options)), True

    def stop(self) -> Running | None:
        """It and every machine are gone afterwards; None if none runs. One that does not listen is killed."""
        running = self.running()
        if running is not None:
            os.kill(running.pid, signal.SIGTERM)
            if not _ends_within(running.pid, STOPPED_WITHIN_S):
                os.kill(running.pid, signal.SIGKILL)
                _ends_within(running.pid, STOPPED_WITHIN_S)
            (self.home / FILE).unlink(missing_ok=True)
        guardian.kill_all(self.home / GUESTS)  # what one that was killed may have left
        return running

    def _make_home(self) -> None:
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise LabFailed(
                f"the folder {self.home} cannot be made: {error.strerror}; choose another --data-dir"
            ) from error

    def _spawn(self, options: Sequence[str]) -> int:
        """posix_spawn, so that no handle of ours owns the process: it outlives this command. The log begins anew."""
        argv = [sys.executable, "-P", "-m", MODULE, "--data-dir", str(self.home), *options]
        self.log.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        return os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions, setsid=True)

    def _wait_ready(self, pid: int) -> Running:
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            running = self.running()
            if running is not None and running.pid == pid and _answers(running):
                return running
            if _reap(pid):
                raise LabFailed(self._why_not("the Lab ended while starting"))
            time.sleep(LOOK_EVERY_S)
        raise LabFailed(self._why_not(f"the Lab (pid {pid}) is not ready after {READY_WITHIN_S:.0f} s"))

    def _why_not(self, what: str) -> str:
        """A refusal of the Lab itself is one line and says everything."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        except OSError:
            lines = []
        if len(lines) == 1 and lines[0].startswith("error: "):
            return f"the Lab does not start: {lines[0][7:]}"
        return f"{what}; {self.log} ends with:\n" + "\n".join(lines) if lines else f"{what}; {self.log} is empty"


def check_installed() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise LabNotInstalled("the Lab is not installed: run pip install 'crucible[lab]'", missing=missing)


def _answers(running: Running) -> bool:
    try:
        return Transport(Endpoint(running.url)).probe("/_lab/ready", timeout_s=2.0) == 200
    except (ServerUnreachable, ServerTimeout):
        return False


def _ends_within(pid: int, limit_s: float) -> bool:
    deadline = time.monotonic() + limit_s
    while _is_lab(pid):
        if time.monotonic() > deadline:
            return False
        _reap(pid)
        time.sleep(LOOK_EVERY_S)
    return True


def _reap(pid: int) -> bool:
    """True if it was our child and has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return False


def _is_lab(pid: int) -> bool:
    """Whether `pid` lives and is a Lab. Where there is no /proc, a live pid must do."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except FileNotFoundError:
        return not Path("/proc/self/cmdline").exists() and _lives(pid)
    except OSError:
        return False
    return MODULE.encode() in command or (b"lab" in command and any(word.endswith(b"/crucible") for word in command))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Two commands at once start one Lab: the second waits for the first and finds it running."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
