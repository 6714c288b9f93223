"""A Lab, a server that buys there, and whoever asks it: what a walk through the page begins with."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash.lab_world import free_port
from crash.server_process import ServerProcess, until
from crucible.client.api import TERMINAL, Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from lab_process import RunningLab
from person import Person

# What has not reported after so long never will; a computer that runs every other test as well needs its time.
BOOT_LIMIT_S = 60


@dataclass
class LabSite:
    """`person` sits at a shell that knows the server, as its admin."""

    lab: RunningLab
    server: ServerProcess
    client: Client
    person: Person
    token: str

    @property
    def url(self) -> str:
        return self.server.url

    def machines(self) -> list[dict[str, Any]]:
        return [one for one in self.lab.control.status()["machines"] if one["state"] != "terminated"]

    def invoiced(self) -> int:
        """Micro-dollars, by the Lab's own books."""
        return int(self.lab.control.bill()["microusd"])

    def posted(self) -> int:
        """Micro-dollars, by the server's: what every job has in the ledger."""
        return sum(self.client.costs(job["id"])["posted_microusd"] for job in self.client.jobs(limit=200)["items"])

    def submit(self, name: str, spec: str) -> str:
        return str(self.client.submit(name, spec)["id"])

    def cancel(self) -> None:
        """Whatever a test that failed has left."""
        for job in self.client.jobs(limit=200)["items"]:
            if job["status"] not in TERMINAL:
                self.client.cancel(job["id"])

    def settle(self) -> None:
        """Until nothing is paid for any more, in the Lab and in the books."""
        until("every machine is gone", lambda: not self.machines(), every_s=0.1)
        until(
            f"the ledger says what the Lab's invoice says, {self.invoiced()}",
            lambda: self.posted() == self.invoiced(),
            every_s=0.2,
        )


@contextmanager
def lab_site(
    folder: Path, *, port: int = 0, database: str | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[LabSite]:
    """`environment` is added to what the server knows."""
    with ExitStack() as stack:
        lab = stack.enter_context(RunningLab(folder))
        person = Person(folder)
        known = {
            **lab.environment,
            "CRUCIBLE_PROVIDERS": "aws",
            "CRUCIBLE_AWS_BOOT_LIMIT_S": str(BOOT_LIMIT_S),
            "HOME": str(folder),
            **(environment or {}),
        }
        server = ServerProcess(person.data, database=database, gpus=0, port=port or free_port(), environment=known)
        stack.callback(server.stop)
        server.start().wait_ready()
        token = (person.data / "admin-token").read_text().strip()
        person.env |= {"CRUCIBLE_SERVER": server.url, "CRUCIBLE_TOKEN": token}
        client = stack.enter_context(Client(Transport(Endpoint(server.url, token), timeout_s=20.0)))
        yield LabSite(lab, server, client, person, token)
