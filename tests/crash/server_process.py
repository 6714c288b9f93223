"""A real server in a process of its own that a test starts, kills, stops and starts again on the same data folder."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from crash.nursery import Born, Nursery
from crucible.client.endpoint import Endpoint
from crucible.client.errors import ServerTimeout, ServerUnreachable
from crucible.client.transport import Transport

# A server needs a second; a machine that also runs every other test may need many.
READY_WITHIN_S = 60.0
STOPPED_WITHIN_S = 30.0
LOG_TAIL_BYTES = 12_000
# What a failpoint ends with: as after kill -9.
KILLED = 137

SERVER = ("-m", "crucible.main", "server")

# Where servers are born while tests run; without one each is started afresh, as `make crash` does, which also measures
# how long that takes.
nursery: Nursery | None = None


class NotInTime(AssertionError):
    pass


def until(what: str, is_so: Callable[[], bool], within_s: float = 60.0, every_s: float = 0.03) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            raise NotInTime(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)


class ServerProcess:
    def __init__(
        self,
        data: Path,
        *,
        database: str | None = None,
        gpus: int = 8,
        options: Sequence[str] = (),
        program: Sequence[str] = SERVER,
        port: int = 0,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """With a `port`, servers that share a data folder can be told apart. `environment` is all that it knows beside
        what every program here knows."""
        self.data = data
        self._environment = dict(environment or {})
        self.log = log or data.parent / f"server{port or ''}.log"
        self._argv = [*program, "--data-dir", str(data), "--local-gpus", str(gpus), *options]
        if database is not None:
            self._argv += ["--database", database]
        if port:
            self._argv += ["--port", str(port)]
        self._port = port
        self._process: subprocess.Popen[bytes] | Born | None = None
        self.url = ""
        self.recoveries_s: list[float] = []

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, armed: str = "", max_file_bytes: int = resource.RLIM_INFINITY) -> "ServerProcess":
        """Does not wait. `armed` names the failpoints that end it."""
        assert self._process is None
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CRUCIBLE_")}
        environment = {**kept, **self._environment, "CRUCIBLE_FAILPOINTS": armed}
        self._started_at = time.monotonic()
        with self.log.open("ab") as log:
            log.write(f"--- start {armed}\n".encode())
        if nursery is not None:
            self._process = nursery.bear(self._argv, environment, self.log, max_file_bytes)
        else:
            self._process = self._start_afresh(environment, max_file_bytes)
        return self

    def _start_afresh(self, environment: Mapping[str, str], max_file_bytes: int) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, *self._argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, resource.RLIM_INFINITY)),
            )

    def wait_ready(self) -> "ServerProcess":
        until("the server is ready", lambda: self.is_ready() or self.has_ended(), READY_WITHIN_S, 0.02)
        assert not self.has_ended(), f"the server ended while starting: {self.log_tail()}"
        self.recoveries_s.append(time.monotonic() - self._started_at)
        return self

    def is_ready(self) -> bool:
        """What it published is its own: a server that was killed leaves its address behind."""
        if self._port:
            self.url = f"http://127.0.0.1:{self._port}"
            return self.answers()
        try:
            said = json.loads((self.data / "server.json").read_text())
        except (OSError, ValueError):
            return False
        if said["pid"] != self.pid:
            return False
        self.url = said["url"]
        return self.answers()

    def answers(self, within_s: float = 2.0) -> bool:
        try:
            return Transport(Endpoint(self.url)).probe("/readyz", timeout_s=within_s) == 200
        except (ServerUnreachable, ServerTimeout):
            return False

    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def wait_for_end(self, within_s: float) -> int | None:
        """Its exit code; None if it still runs."""
        assert self._process is not None
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        self._process = None
        return code

    def signal(self, signum: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(signum)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """As an operator does; it must say goodbye in time."""
        if self._process is None:
            return
        self.signal(signal.SIGTERM)
        code = self.wait_for_end(STOPPED_WITHIN_S)
        if code is None:
            self.kill()
        assert code == 0, f"SIGTERM ended the server with {code}: {self.log_tail()}"

    def log_tail(self) -> str:
        data = self.log.read_bytes()[-LOG_TAIL_BYTES:]
        return f"\n--- the end of {self.log.name} ---\n{data.decode(errors='replace')}"
