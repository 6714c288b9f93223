"""A Lab and a server of the demo, in a folder of their own: started, found again by whoever looks at the folder, and
stopped with everything that they started. Nothing of an installed Crucible is touched."""

import asyncio
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from crucible.client.embedded import Embedded
from crucible.client.endpoint import Endpoint
from crucible.lab.running import LocalLab
from crucible.model.lease import MachineState
from crucible.providers.local.provider import LocalProvider

REGIONS = ("us-east-1", "us-east-2", "us-west-2", "ap-northeast-2")
LABEL = "Demo"
LOCAL_GPUS = 4
# Ranks on this computer have so long to save when the demo ends.
STOP_GRACE = timedelta(seconds=3)
ENDED_WITHIN_S = 20.0


@dataclass(frozen=True)
class Site:
    folder: Path

    @property
    def home(self) -> Path:
        """Of the server."""
        return self.folder / "home"

    @property
    def lab(self) -> LocalLab:
        return LocalLab(self.folder / "lab")

    @property
    def server(self) -> Embedded:
        return Embedded(self.home)

    def start_lab(self) -> None:
        # Where nothing is recorded prices are made up, and those of the days before lead to them.
        none = str(self.folder / "no-recorded-prices")
        regions = ",".join(REGIONS)
        self.lab.start(["--boot-scale", "0.05", "--hazard", "0", "--regions", regions, "--data", none])

    def start_server(self, port: int, inbox: str) -> Endpoint:
        """`inbox` is where alerts may be sent to."""
        os.environ.update(self.lab.needed().environment(), CRUCIBLE_HOME=str(self.home), CRUCIBLE_SERVER="")
        os.environ.update(CRUCIBLE_TOKEN="", XDG_CONFIG_HOME=str(self.folder))
        options = ["--port", str(port), "--label", LABEL, "--local-gpus", str(LOCAL_GPUS), "--alert-endpoint", inbox]
        self.server.start(options)
        endpoint = self.server.endpoint()
        assert endpoint is not None
        return endpoint

    def stop(self) -> None:
        """Everything, whatever a demo that was killed has left: the server, what runs on this computer, the Lab."""
        try:
            if self.home.is_dir():
                self.server.stop()
                asyncio.run(ended(LocalProvider(self.home / "local", agent=self.home, stop_grace=STOP_GRACE)))
        finally:
            self.lab.stop()

    def clear(self) -> None:
        for path in (self.home, self.lab.home):
            shutil.rmtree(path, ignore_errors=True)


async def ended(local: LocalProvider) -> None:
    """Machines on this computer outlive their server: they are given back without one."""
    async with asyncio.timeout(ENDED_WITHIN_S):
        while left := [one for one in await local.machines() if one.state is not MachineState.GONE]:
            for machine in left:
                await local.delete(machine.id)
            await asyncio.sleep(0.2)


# --- an inbox -------------------------------------------------------------------------------------------------------


class Inbox(BaseHTTPRequestHandler):
    """Takes whatever alerts are sent."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nobody wants to hear."""


@contextmanager
def an_inbox() -> Iterator[str]:
    """Its address, on this computer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Inbox)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
