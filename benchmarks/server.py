"""A real server in a folder of its own, and the plainest client of it."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import timing
from crucible.providers.local import processes

# A job that waits for nothing but its end, for holding a slot that others then wait for.
HOLDING = "job: {name: holds the slot, command: [sleep, '3600'], resources: {gpus: 1}}"
WAITING = "job: {name: waits, command: ['true'], resources: {gpus: 1}}"


class Server:
    def __init__(self, home: Path, process: "subprocess.Popen[bytes]") -> None:
        self.home = home
        self.process = process
        self._connection: http.client.HTTPConnection | None = None

    # --- the process ------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = str(json.loads((self.home / "server.json").read_text())["url"]).rpartition(":")
        return host.removeprefix("http://"), int(port)

    @property
    def token(self) -> str:
        return (self.home / "admin-token").read_text().strip()

    def spent(self) -> timing.Spent:
        return timing.of_process(self.pid)

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            raise RuntimeError(f"the server ended; its log is {(self.home / 'server.log').read_text()}")
        try:
            return bool(self.ask("GET", "/readyz")["status"] == "ready")
        except OSError:
            return False

    # --- requests ---------------------------------------------------------------------------------

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}

    def connect(self) -> http.client.HTTPConnection:
        host, port = self.address
        return http.client.HTTPConnection(host, port, timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What it answers, over one connection; raises on an error."""
        data = None if body is None else json.dumps(body)
        try:
            answer = self._asked(method, path, data)
        except ConnectionError:
            if method != "GET":
                raise
            self._connection = None  # the server hangs up on who is quiet for long
            answer = self._asked(method, path, data)
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {text!r}")
        return json.loads(text) if text else None

    def _asked(self, method: str, path: str, data: str | None) -> http.client.HTTPResponse:
        if self._connection is None:
            self._connection = self.connect()
        self._connection.request(method, path, data, self.headers)
        return self._connection.getresponse()

    def submit(self, spec: str) -> str:
        return str(self.ask("POST", "/v1/jobs", {"spec_yaml": spec})["id"])

    def status(self, job_id: str) -> str:
        return str(self.ask("GET", f"/v1/jobs/{job_id}")["status"])

    def count(self, *statuses: str) -> int:
        """Jobs in these states."""
        total, cursor = 0, ""
        while True:
            path = f"/v1/jobs?limit=200&status={','.join(statuses)}{cursor}"
            page = self.ask("GET", path)
            total += len(page["items"])
            if page["next_cursor"] is None:
                return total
            cursor = f"&cursor={page['next_cursor']}"

    def hold_the_slot(self) -> str:
        """Take the one slot there is, so that whatever is submitted now waits."""
        job_id = self.submit(HOLDING)
        timing.until(lambda: self.status(job_id) == "running", "the job that holds the slot")
        return job_id

    def agents(self) -> list[int]:
        """The oldest process of each machine."""
        return [min(pids) for pids in self._processes().values() if pids]

    def _processes(self) -> dict[str, list[int]]:
        return processes.carriers([folder.name for folder in (self.home / "local" / "machines").glob("*")])

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Nothing that was started outlives the benchmark: agents would, when only their server stops."""
        if self._connection is not None:
            self._connection.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        for machine, pids in self._processes().items():
            for pid in pids:
                processes.signal_carrier(pid, machine, signal.SIGKILL)


PROGRAM = ("-m", "crucible.main")


def launch(
    home: Path, *options: str, more: Mapping[str, str] | None = None, program: Sequence[str] = PROGRAM
) -> Server:
    """Start it; it is not ready yet. `more` is added to its environment."""
    argv = [sys.executable, *program, "server", "--data-dir", str(home), *options]
    env = {**environment(), **(more or {})}
    with (home / "server.log").open("ab") as log:
        return Server(home, subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env))


@contextlib.contextmanager
def running(*options: str, more: Mapping[str, str] | None = None, program: Sequence[str] = PROGRAM) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        server = launch(Path(folder), *options, more=more, program=program)
        try:
            timing.until(server.is_ready, "the server")
            yield server
        finally:
            server.close()


def environment(home: Path | None = None) -> dict[str, str]:
    """Ours, without the settings of whoever runs the benchmark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CRUCIBLE_")}
    kept |= dict.fromkeys(("CRUCIBLE_RATE_LIMIT", "CRUCIBLE_AGENT_RATE_LIMIT"), "0")  # one client asks for many
    return kept if home is None else {**kept, "CRUCIBLE_HOME": str(home)}
