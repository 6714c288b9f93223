"""A listener on this computer whose connections end at a node: each has a channel and a thread of its own."""

import socket
import threading
from contextlib import suppress

from crucible.cli import exits
from crucible.cli.output import Out
from crucible.cli.session import connect, find_job
from crucible.client.api import Client
from crucible.client.talking import forward
from crucible.model.errors import PlatformError

BACKLOG = 128


def serve(out: Out, job: str, local: int, far: int, *, rank: int, task: int) -> int:
    """Until Ctrl-C."""
    with connect(out) as client, _listener(local) as listener:
        job_id = find_job(client, job)
        client.open_channel(job_id, rank=rank, task=task).close()  # says at once if there is nothing to reach
        here = listener.getsockname()[1]
        out.warn(f"127.0.0.1:{here} leads to port {far} beside rank {rank} of {job}; Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            while True:
                connection, _ = listener.accept()
                way = Way(out, client, job_id, far, rank, task)
                threading.Thread(target=way.carry, args=(connection,), daemon=True, name="crucible-forward").start()
        return exits.OK


class Way:
    def __init__(self, out: Out, client: Client, job_id: str, port: int, rank: int, task: int) -> None:
        self._out = out
        self._client = client
        self._job_id = job_id
        self._port = port
        self._rank = rank
        self._task = task

    def carry(self, connection: socket.socket) -> None:
        """One connection; its trouble is not the others'."""
        with connection:
            try:
                line = self._client.open_channel(self._job_id, rank=self._rank, task=self._task)
                forward(line, self._port, connection)
            except PlatformError as error:
                self._out.warn(f"error: {error.message}")


def _listener(port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise OSError(error.errno, error.strerror, f"127.0.0.1:{port}") from error
    listener.listen(BACKLOG)
    return listener
