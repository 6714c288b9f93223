"""A client for one command: finds the server, starts the local one if none is configured, and says so."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from crucible import __version__
from crucible.cli.output import Out
from crucible.client import config
from crucible.client.api import Client
from crucible.client.embedded import Embedded, Running
from crucible.client.endpoint import Endpoint
from crucible.client.errors import ServerUnreachable
from crucible.client.lookup import find_job
from crucible.client.transport import Transport
from crucible.model.errors import PlatformError

__all__ = ["complete_jobs", "connect", "find_job", "running_server"]

# A shell waits for completions while the person holds the Tab key.
COMPLETION_TIMEOUT_S = 1.0
COMPLETED_JOBS = 50


def connect(out: Out) -> Client:
    configured = config.resolve(os.environ)
    if configured is not None:
        return Client(Transport(configured))
    return _connect_embedded(config.embedded(os.environ), out)


@contextmanager
def running_server() -> Iterator[Client | None]:
    """A client of the configured server, or of the local one if it runs; None otherwise. Starts nothing."""
    endpoint = config.resolve(os.environ) or config.embedded(os.environ).endpoint()
    if endpoint is None:
        yield None
        return
    with Client(Transport(endpoint)) as client:
        yield client


def complete_jobs(incomplete: str) -> list[str]:
    """Ids and names that begin so, for the shell. Starts nothing and never fails."""
    try:
        endpoint = config.resolve(os.environ) or config.embedded(os.environ).endpoint()
        if endpoint is None:
            return []
        page = Client(Transport(endpoint, timeout_s=COMPLETION_TIMEOUT_S)).jobs(limit=COMPLETED_JOBS)
    except PlatformError:
        return []
    words = [word for job in page["items"] for word in (job["name"], job["id"])]
    return [word for word in dict.fromkeys(words) if word.startswith(incomplete)]


def _connect_embedded(local: Embedded, out: Out) -> Client:
    def started(running: Running) -> None:
        out.warn(f"started a local server ({running.url}); stop it with crucible server stop")

    def relocate() -> Endpoint:
        """It may have moved to another port. One that was stopped under our eyes is not started again."""
        if not transport.has_answered:
            return local.ensure(started)
        found = local.endpoint()
        if found is None:
            raise ServerUnreachable(
                f"the local server in {local.home} was stopped; start it with crucible server start"
            )
        return found

    endpoint = local.endpoint() or local.ensure(started)
    if endpoint.version and endpoint.version != __version__:
        out.note_once(
            f"note: the local server is {endpoint.version}, this is {__version__}; restart it: crucible server stop"
        )
    transport = Transport(endpoint, relocate=relocate)
    return Client(transport)
