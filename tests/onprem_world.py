"""Own hosts as a world to sell in: real sshds, the real agent, and an nvidia-smi that says what the test wants."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, TypeVar

from crucible.model.host import Host
from crucible.model.ids import MachineId, UserId
from crucible.model.lease import Boot, Machine, Order
from crucible.model.offer import Offer
from crucible.ports.hosts import HostBook, NewHost
from crucible.providers.onprem.desk import OnpremDesk
from crucible.providers.onprem.fleet import Fleet
from crucible.providers.onprem.kept_host import Program
from crucible.providers.onprem.seller import OnpremSeller, Promises
from crucible.providers.onprem.settings import OnpremSettings
from crucible.ssh.login import SshFiles
from crucible.store import open_store
from crucible.testing.seller_contract import SellerWorld
from hosts_world import HostsWorld

T = TypeVar("T")

SMI = "/usr/local/bin/nvidia-smi"
# Answers the two questions that are asked; `habits` may make it hang or fail.
FAKE_SMI = """#!/usr/bin/env python3
import json, sys, time
said = json.loads({said!r})
time.sleep(said["hangs_s"])
if said["fails"]:
    print(said["fails"])
    sys.exit(9)
for gpu in said["gpus"]:
    if "-L" in sys.argv:
        print("GPU %d: %s (UUID: %s)" % (gpu["index"], gpu["name"], gpu["uuid"]))
        for number, (profile, uuid) in enumerate(gpu["mig"]):
            print("  MIG %s     Device  %d: (UUID: %s)" % (profile, number, uuid))
    else:
        print("%d, %s, %s, %d" % (gpu["index"], gpu["uuid"], gpu["name"], gpu["memory_mib"]))
"""
# Ends everything that carries a machine's id, and whatever was kept for it.
SWEEP = """
import glob, os, shutil, signal
for path in glob.glob("/proc/[0-9]*/environ"):
    try:
        if b"CRUCIBLE_MACHINE_ID=" in open(path, "rb").read():
            os.kill(int(path.split("/")[2]), signal.SIGKILL)
    except OSError:
        pass
shutil.rmtree(os.path.expanduser("~/.crucible"), ignore_errors=True)
"""

_numbers = count(1)


@dataclass(frozen=True)
class Gpu:
    index: int
    uuid: str
    name: str = "NVIDIA A100-SXM4-80GB"
    memory_mib: int = 81920
    mig: list[tuple[str, str]] = field(default_factory=list)


def gpus_of(host: str, number: int, **more: Any) -> list[Gpu]:
    return [Gpu(index, f"GPU-{host}-{index}", **more) for index in range(number)]


def fake_smi(hosts: HostsWorld, host: str, gpus: Sequence[Gpu] = (), hangs_s: float = 0, fails: str = "") -> None:
    said = {"gpus": [vars(gpu) for gpu in gpus], "hangs_s": hangs_s, "fails": fails}
    hosts.put(host, SMI, FAKE_SMI.format(said=json.dumps(said)))


def sweep(hosts: HostsWorld, host: str) -> None:
    """As if nobody had ever used it."""
    hosts.run(host, ["python3", "-c", SWEEP])
    hosts.run(host, ["rm", "-f", SMI])


class Loop:
    """An event loop in a thread: connections outlive the `asyncio.run` of a test."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.send(work).result(120)

    def send(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        async def settle() -> None:
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.sleep(0.05)  # transports that were aborted close at the next turn

        self.run(settle())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()


class Elsewhere:
    """The seller on its own loop, for callers of any."""

    def __init__(self, seller: OnpremSeller, loop: Loop) -> None:
        self.inner = seller
        self.name, self.region, self.facts = seller.name, seller.region, seller.facts
        self._loop = loop

    async def offers(self) -> Sequence[Offer]:
        return await self._there(self.inner.offers())

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        return await self._there(self.inner.create(order, boot))

    async def delete(self, machine: MachineId) -> None:
        await self._there(self.inner.delete(machine))

    async def machines(self) -> Sequence[Machine]:
        return await self._there(self.inner.machines())

    async def prepare(self, order: Order) -> Mapping[str, Any]:
        return await self._there(self.inner.prepare(order))

    async def last_words(self, machine: MachineId) -> str | None:
        return await self._there(self.inner.last_words(machine))

    async def health(self) -> Mapping[str, Any]:
        return await self._there(self.inner.health())

    def _there(self, work: Coroutine[Any, Any, T]) -> Awaitable[T]:
        return asyncio.wrap_future(self._loop.send(work))


class OnpremWorld(SellerWorld):
    """Three hosts, registered and in order; ends what was started there."""

    def __init__(self, hosts: HostsWorld, agent: Path, url: str = "http://127.0.0.1:9") -> None:
        self.hosts = hosts
        self.url = url
        self.settings = OnpremSettings(
            files=SshFiles(hosts.keys.known_hosts, agent.with_name("no-config")), stop_grace=timedelta(seconds=2)
        )
        self.deployment = f"test-{next(_numbers)}"
        self._agent = agent
        self._loop = Loop()
        self._fleets: list[Fleet] = []
        self._promises = Promises()
        self.book: HostBook = self._loop.run(open_store("sqlite://"))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run(work)

    def fleet(self) -> Fleet:
        async def made() -> Fleet:
            return Fleet(
                self.book,
                deployment=self.deployment,
                program=Program(self._agent),
                url=self.url,
                settings=self.settings,
                now=lambda: datetime.now(UTC),
                fresh_s=0,
            )

        self._fleets.append(self.run(made()))
        return self._fleets[-1]

    def open(self) -> Elsewhere:
        return Elsewhere(OnpremSeller(self.fleet(), self._promises), self._loop)

    def desk(self) -> OnpremDesk:
        return OnpremDesk(self.fleet(), lambda: datetime.now(UTC))

    def register(self, *names: str, **changes: Any) -> list[Host]:
        new = [self.new(name, **changes) for name in names]
        return [view.host for view in self.run(self.desk().add(new, UserId("u1")))]  # type: ignore[arg-type]

    def new(self, name: str, **changes: Any) -> NewHost:
        given = {"user": "root", "identity_file": str(self.hosts.keys.private), **changes}
        return NewHost(name=name, address=self.hosts.address(name), **given)

    async def offers(self) -> Sequence[Offer]:
        """Counted by hosts; a host has one GPU here, so that both numbers are one."""
        found = await self.open().offers()
        return [replace(offer, free_gpus=offer.free_machines) if offer.gpus == 1 else offer for offer in found]

    def home(self, host: str) -> str:
        return f"/root/.crucible/{self.deployment}"

    def crash(self, machine: MachineId) -> None:
        for host in self.hosts.names:
            with suppress(CalledProcessError):
                pid = self.hosts.run(host, ["cat", f"{self.home(host)}/machines/{machine}/lock"]).strip()
                self.hosts.run(host, ["kill", "-9", pid])

    def unreachable(self) -> Elsewhere:
        seller = self.open()
        for host in self.hosts.names:
            self.hosts.cut(host)
        return seller

    def close(self) -> None:
        self.hosts.mend()
        for fleet in self._fleets:
            self.run(fleet.close())
        self.run(self.book.close())  # type: ignore[attr-defined]
        self._loop.close()
        for host in self.hosts.names:
            sweep(self.hosts, host)


def until(look: Any, limit_s: float = 20.0) -> Any:
    deadline = time.monotonic() + limit_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"it did not happen within {limit_s:g} s"
        time.sleep(0.05)
    return found
