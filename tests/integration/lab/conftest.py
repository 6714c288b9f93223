"""A small Lab inside the test: one zone, round prices, machines that boot at once; its metadata on a real port."""

import asyncio
import http.client
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from agent_process import carriers
from crucible.lab.clock import LabClock
from crucible.lab.control import Control
from crucible.lab.enclosure import Enclosure, probe
from crucible.lab.gcs.front import GcsFront
from crucible.lab.http import Request, Response
from crucible.lab.imds import Metadata
from crucible.lab.lab import Lab
from crucible.lab.scenario import Scenario
from crucible.lab.server import App, serve
from crucible.lab.settings import LabAccount, Settings
from crucible.world.machine import Machine, State
from crucible.world.world import World
from lab_process import RunningLab
from worlds import ME, an_ask, some_facts

TOKEN = "token-of-the-door"
# A second there is a twentieth of one here: ends fall on whole seconds.
SPEED = 20.0
LIMIT_S = 30.0


class Vendor:
    """Gives back what it is told to."""

    def __init__(self) -> None:
        self.answer = Response(status=418)
        self.asked: list[Request] = []

    async def handle(self, request: Request) -> Response:
        self.asked.append(request)
        return self.answer


class SmallLab:
    def __init__(self, lab: Lab, url: str, vendor: Vendor) -> None:
        self.lab = lab
        self.url = url
        self.vendor = vendor

    def launch(self, script: str | bytes = b"", **changes: Any) -> str:
        """The id of a machine that runs `script`."""
        data = script.encode() if isinstance(script, str) else script
        (machine,) = self.lab.world.launch(an_ask(user_data=data, **changes), self.lab.now())
        self.lab.wake()
        return machine.id

    def machine(self, machine_id: str) -> Machine:
        return self.lab.world.machine(machine_id)

    def end(self, machine_id: str) -> None:
        self.lab.world.end(ME, machine_id, self.lab.now())
        self.lab.wake()

    def console(self, machine_id: str) -> str:
        return self.lab.guests.console(machine_id).decode()

    def notes(self, machine_id: str) -> list[tuple[str, str]]:
        return [(str(note.what), note.note) for note in self.lab.journal.after(0, machine_id)]

    async def until(self, is_so: Callable[[], Any], what: str = "it") -> None:
        end = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < end, f"{what} never came"
            await asyncio.sleep(0.01)

    async def until_printed(self, machine_id: str, words: str) -> None:
        await self.until(lambda: words in self.console(machine_id), f"{words!r} on the console")

    async def until_gone(self, machine_id: str) -> None:
        """The world says so; then nothing of it may run."""
        await self.until(lambda: self.machine(machine_id).state is State.ENDED, f"the end of {machine_id}")
        await self.lab.settle()

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, bytes]:
        return await asyncio.to_thread(ask, self.url, method, path, headers or {}, body)

    def secret(self, machine_id: str) -> str:
        return next(s for s, owner in self.lab.guests._secrets.items() if owner == machine_id)


def ask(url: str, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=LIMIT_S)
    try:
        connection.request(method, path, body=body or None, headers=dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def processes_of(machine_id: str) -> list[int]:
    """Whatever carries its mark, on this computer's side of the wall."""
    return carriers("CRUCIBLE_MACHINE_ID", machine_id)


@contextmanager
def amazon(lab: RunningLab) -> Iterator[Any]:
    """An unmodified client."""
    ec2 = boto3.client(
        "ec2",
        endpoint_url=lab.url,
        region_name="us-east-1",
        aws_access_key_id=lab.running.access_key,
        aws_secret_access_key=lab.running.secret_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    with closing(ec2):
        yield ec2


def eventually(is_so: Callable[[], Any], what: str) -> None:
    end = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.02)


@asynccontextmanager
async def small_lab(folder: Path, enclosure: Enclosure, **changes: Any) -> AsyncIterator[SmallLab]:
    clock = LabClock(SPEED)
    world = World(some_facts(**{"boot_s": (0.5, 0.5), "stop_s": (4.0, 4.0), **changes}), seed=1)
    account = LabAccount(id=ME, access_key="AKIALAB", secret_key="secret")
    lab = Lab(Settings(home=folder), world, clock, account, enclosure=enclosure, scenario=Scenario("nothing"))
    stopping, ready, vendor = asyncio.Event(), asyncio.Event(), Vendor()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        storage = GcsFront(lab, folder)
        app = App(Control(lab, TOKEN, stopping, storage), Metadata(lab), vendor, storage, lab.settle)
        running = asyncio.create_task(lab.run(url))
        serving = asyncio.create_task(serve(app, listener, stopping, ready.set))
        try:
            await ready.wait()
            yield SmallLab(lab, url, vendor)
        finally:
            stopping.set()
            running.cancel()
            await asyncio.gather(running, serving, return_exceptions=True)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def best_enclosure() -> Enclosure:
    return probe()


@pytest.fixture
async def small(tmp_path: Path, best_enclosure: Enclosure) -> AsyncIterator[SmallLab]:
    async with small_lab(tmp_path, best_enclosure) as running:
        yield running
