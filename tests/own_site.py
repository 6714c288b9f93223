"""An operator's computer beside real hosts: a server that keeps them, and the `crucible` command."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crash.server_process import NotInTime, ServerProcess, until
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from hosts_world import HostsWorld
from status_shape import assert_status

LIMIT_S = 120.0
# Times a tenth of the usual ones: a node is silent after 5 s, its fence is the shortest there is.
QUICK: dict[str, Any] = {"options": ["--silence", "5"], "settings": {"CRUCIBLE_ONPREM_FENCE_S": "10"}}


class Site:
    def __init__(
        self,
        folder: Path,
        hosts: HostsWorld,
        address: str,
        *,
        options: Sequence[str] = (),
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.hosts = folder, hosts
        (folder / ".ssh").mkdir()
        own = {name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "XDG_"))}
        self.env = {**own, "HOME": str(folder), "CRUCIBLE_HOME": str(folder / "data")}
        self.env.pop("SSH_AUTH_SOCK", None)
        told = {"HOME": str(folder), "CRUCIBLE_ONPREM_STOP_GRACE_S": "2", **(settings or {})}
        given = ["--host", address, "--provider", "onprem", *options]
        self.server = ServerProcess(folder / "data", options=given, gpus=0, environment=told)
        self.server.start().wait_ready()

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "crucible.cli.entry", *argv],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    def ok(self, *argv: str) -> str:
        ran = self.run(*argv)
        assert ran.returncode == 0, f"{argv}: {ran.stdout}{ran.stderr}{self.server.log_tail()}"
        return ran.stdout

    def json(self, *argv: str) -> Any:
        return json.loads(self.ok(*argv, "-o", "json"))

    def client(self) -> Client:
        """For who asks often: a new process of the command line costs a quarter of a second."""
        token = (self.folder / "data" / "admin-token").read_text().strip()
        return Client(Transport(Endpoint(self.server.url, token)))

    def know(self, *names: str) -> None:
        """As `ssh` does when a person said yes."""
        lines = [f"{self.hosts.address(name)} {self.hosts.keys.host_keys[name]}\n" for name in names]
        (self.folder / ".ssh" / "known_hosts").write_text("".join(lines))

    def add(self, *names: str) -> None:
        self.know(*names)
        items = [
            {"name": name, "address": f"root@{self.hosts.address(name)}", "identity_file": str(self.hosts.keys.private)}
            for name in names
        ]
        (self.folder / "hosts.yaml").write_text(json.dumps(items))
        self.ok("hosts", "add", "--file", "hosts.yaml")

    def submit(self, command: str, gpus: int = 0, nodes: int = 1) -> str:
        return self.submit_spec(
            name="story",
            command=["sh", "-c", command],
            resources={"gpus": gpus, "nodes": nodes},
            retry={"limit": 0},
        )

    def submit_spec(self, **job: Any) -> str:
        (self.folder / "job.yaml").write_text(json.dumps({"job": job}))
        return self.ok("submit", "job.yaml", "-y", "-d", "-q").split()[-1]

    def finished(self, job: str, within_s: float = 90) -> dict[str, Any]:
        ran = self.run("wait", job, "--timeout", f"{within_s:g}")
        found: dict[str, Any] = self.json("describe", job)
        assert ran.returncode == 0, f"{ran.stderr}{found}{self.run('logs', job).stdout}{self.server.log_tail()}"
        assert_status(found["now"])
        return found

    # --- what became of it ------------------------------------------------------------------------------

    def log(self, job: str) -> str:
        with self.client() as client:
            return "\n".join(line["x"] for line in client.logs(job))

    def attempts(self, job: str) -> list[Any]:
        with self.client() as client:
            return list(client.attempts(job))

    def machines(self) -> int:
        with self.client() as client:
            return sum(one["machines"] for one in client.hosts())

    def host_of(self, job: str, rank: int) -> str:
        """Where a rank runs now."""
        with self.client() as client:
            nodes = client.nodes()
        node = next(one["node_id"] for one in self.attempts(job)[-1]["ranks"] if one["rank"] == rank)
        address = next(one["address"] for one in nodes if one["id"] == node)
        return next(name for name in self.hosts.names if self.hosts.address(name) == address)

    def wait(self, job: str, what: str, is_so: Callable[[], bool]) -> None:
        """In vain, it says what the job did instead."""
        try:
            until(what, is_so, LIMIT_S)
        except NotInTime as late:
            told = [(one["outcome"], one["reason"], one["ranks"]) for one in self.attempts(job)]
            raise NotInTime(f"{late}: {told}\n{self.log(job)}{self.server.log_tail()}") from late

    def close(self) -> None:
        if not self.server.has_ended():
            jobs = self.run("ps", "-q").stdout.split()
            if jobs:
                self.run("cancel", *jobs)
            self.server.kill()
