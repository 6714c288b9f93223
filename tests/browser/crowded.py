"""A server with ten thousand jobs, one of which wrote a million lines, for as long as a module of tests takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import crowded

from crash.server_process import ServerProcess
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport


@dataclass(frozen=True, slots=True)
class CrowdedSite:
    url: str
    token: str
    client: Client
    crowd: crowded.Crowd

    @property
    def log_page(self) -> str:
        return f"jobs/{self.crowd.talkative}"


@contextmanager
def crowded_site(folder: Path) -> Iterator[CrowdedSite]:
    data = folder / "data"
    data.mkdir()
    crowd = crowded.fill(data)
    server = ServerProcess(data, gpus=0, environment={"CRUCIBLE_RATE_LIMIT": "0", "HOME": str(folder)})
    server.start().wait_ready()
    try:
        token = (data / "admin-token").read_text().strip()
        with Client(Transport(Endpoint(server.url, token), timeout_s=60.0)) as client:
            yield CrowdedSite(server.url, token, client, crowd)
    finally:
        server.stop()
