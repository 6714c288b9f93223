"""A client for one command: finds the server, starts the local one if none is configured, and says so."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from crucible.cli.output import Out
from crucible.client import config, connecting
from crucible.client.api import Client
from crucible.client.lookup import find_job
from crucible.client.transport import Transport
from crucible.model.errors import PlatformError

__all__ = ["complete_jobs", "connect", "find_job", "running_server"]

# A shell waits for completions while the person holds the Tab key.
COMPLETION_TIMEOUT_S = 1.0
COMPLETED_JOBS = 50


def connect(out: Out) -> Client:
    return connecting.connect(os.environ, connecting.Told(started=out.warn, differs=out.note_once))


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
