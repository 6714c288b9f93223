"""A server that buys on a Slurm cluster of a test, and somebody who asks it things."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crucible.client.api import TERMINAL, Client
from crucible.client.config import embedded
from crucible.client.embedded import Embedded
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from slurm_world import SlurmSite
from status_shape import assert_status

LIMIT_S = 90.0

CLUSTERS = """\
clusters:
  - name: lake
    login: here
    workdir: {workdir}
    python: {python}
    partitions: [gpu]
    cost_per_gpu_hour: 2
"""

SPEC = """\
job:
  name: {name}
  command: {command}
  resources: {resources}
  execution: {{backend: slurm}}
"""


class Deployment:
    """A cluster, a server that buys there, and somebody who asks it things."""

    def __init__(self, site: SlurmSite, server: Embedded, client: Client, data: Path) -> None:
        self.site, self.server, self.client, self.data = site, server, client, data

    def submit(self, name: str, command: str, resources: str) -> str:
        spec = SPEC.format(name=name, command=f"[sh, -c, {command!r}]", resources=resources)
        return str(self.client.submit(name, spec)["id"])

    def finished(self, job_id: str) -> dict[str, Any]:
        until(lambda: self.client.job(job_id)["status"] in TERMINAL, lambda: f"{self.client.why(job_id)}")
        assert_status(self.client.status(job_id))
        return dict(self.client.job(job_id))

    def wait_for(self, job_id: str, status: str) -> None:
        until(lambda: self.client.job(job_id)["status"] == status, lambda: f"{self.client.why(job_id)}")
        assert_status(self.client.status(job_id))

    def log(self, job_id: str) -> str:
        return "".join(record["x"] for record in self.client.logs(job_id))


def until(is_so: Callable[[], bool], what: Callable[[], str]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline, f"not within {LIMIT_S:g} s: {what()}"
        time.sleep(0.1)


@contextmanager
def deployed(site: SlurmSite, folder: Path, python: str) -> Iterator[Deployment]:
    clusters = folder / "clusters.yaml"
    clusters.write_text(CLUSTERS.format(workdir=folder / "work", python=python))
    with pytest.MonkeyPatch.context() as patch:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "SLURM_CONF": site.environ["SLURM_CONF"],
            "CRUCIBLE_HOME": str(folder / "data"),
            "CRUCIBLE_PROVIDERS": "slurm",
            "CRUCIBLE_SLURM_CLUSTERS": str(clusters),
        }
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        server = embedded(environment)
        server.start([])
        running = server.running()
        assert running is not None
        token = (folder / "data" / "admin-token").read_text()
        with Client(Transport(Endpoint(running.url, token), timeout_s=10.0)) as client:
            try:
                yield Deployment(site, server, client, folder / "data")
            finally:
                server.stop()
