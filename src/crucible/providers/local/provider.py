"""Sells machines on this computer: devices exclusively, at no price. All it knows is in folders, so several servers may
share them and any of them may die at any line. It never starts a machine a second time."""

import asyncio
import errno
import fcntl
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

from crucible.model.errors import NoCapacity, OrderRejected, ProviderError, RateLimited
from crucible.model.ids import MachineId, OfferId
from crucible.model.lease import Boot, Machine, MachineState, Order, SellerFacts
from crucible.model.offer import Offer
from crucible.providers.local.folder import MachineFolder, open_lock, takes
from crucible.providers.local.gpus import Detection, detect_gpus
from crucible.providers.local.life import Life
from crucible.providers.local.purchase import PROVIDER, Purchases
from crucible.providers.local.stock import Stock, offers_of, stocks

MACHINE_ID = re.compile(r"local-[0-9a-f]{20}")

# GPUs come and go with drivers, not by the second.
DETECT_EVERY_S = 60.0
# A server that holds the lock for longer has stopped, not worked.
LOCK_TIMEOUT_S = 10.0
LOCK_RETRY_S = 0.01
# The engine sees an end within seconds; the rest is for people who look into the folder.
REMEMBER_S = 3600.0
MAX_REMEMBERED = 100
# What may be better in a minute, as opposed to what somebody must repair.
PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)

Seen = list[tuple[MachineFolder, Machine]]


class LocalProvider:
    name = PROVIDER
    region = PROVIDER

    def __init__(
        self,
        root: Path,
        *,
        agent: Path,
        python: str = sys.executable,
        gpus: int | None = None,
        gpu_memory_gib: float = 80.0,
        server_file: Path | None = None,
        max_machines: int = 64,
        boot_time: timedelta = timedelta(seconds=30),
        stop_grace: timedelta = timedelta(seconds=15),
        now: Callable[[], float] = time.time,
    ) -> None:
        """`gpus` bounds the GPUs given out, and declares slots on a computer without any; None means what is found.
        `server_file` tells agents where the server is now, whatever it was when they started."""
        self.facts = SellerFacts(
            idempotent_create=True,
            visibility=timedelta(0),
            boot_time=boot_time,
            counts_stock=True,
            powers_off=False,
            shares_files=True,
        )
        self._folder = root.absolute() / "machines"
        self._lock = root.absolute() / "local.lock"
        self._agent = agent.absolute()
        self._gpus = gpus
        self._gpu_memory_gib = gpu_memory_gib
        self._max_machines = max_machines
        self._now = now
        self._life = Life(boot_time, stop_grace, now)
        server = server_file.absolute() if server_file else None
        self._purchases = Purchases(self._folder, self._agent, python, server, self._life)
        self._detected: tuple[float, Detection] | None = None

    # --- the port: all of it blocks, so all of it runs in threads -------------------------------------

    async def offers(self) -> Sequence[Offer]:
        return await asyncio.to_thread(self._offers)

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        return await asyncio.to_thread(self._create, order, boot)

    async def delete(self, machine: MachineId) -> None:
        await asyncio.to_thread(self._delete, machine)

    async def machines(self) -> Sequence[Machine]:
        return await asyncio.to_thread(self._machines)

    async def health(self) -> dict[str, Any]:
        """For `crucible doctor`: a status, what there is, and every problem in a sentence."""
        return await asyncio.to_thread(self._health)

    def _offers(self) -> list[Offer]:
        held = self._stocks()
        with self._locked():
            return offers_of(held, devices_in_use(self._look()))

    def _create(self, order: Order, boot: Boot) -> list[Machine]:
        held = self._stocks()
        with self._locked():
            folders = self._purchases.find(order, [folder for folder, _ in self._look()])
            if folders is None:
                self._clear_debris()
                # Looked at again: `find` may have undone a purchase that died half way.
                devices = self._free_devices(order, held, self._look())
                with explained():
                    folders = self._purchases.make(order, devices, boot, self._now())
            with explained():
                self._purchases.start(folders)
            return [self._purchases.machine(order, index, folders) for index in range(order.count)]

    def _delete(self, machine: MachineId) -> None:
        # Anything else was never sold here, and must not become a path.
        if not MACHINE_ID.fullmatch(machine):
            return
        with self._locked():
            folder = MachineFolder.read(self._folder / machine)
            if folder is not None:
                self._life.stop(folder)

    def _machines(self) -> list[Machine]:
        with self._locked():
            seen = self._look()
            self._purchases.resume([folder for folder, machine in seen if is_live(machine)])
            self._forget(seen)
            return [machine for _, machine in seen]

    def _health(self) -> dict[str, Any]:
        held, detection = self._stocks(), self._detection()
        problems = [] if self._agent.is_file() else [f"the agent {self._agent} is missing: install Crucible again"]
        if detection.gpus and self._gpus is not None and self._gpus > len(detection.gpus):
            problems.append(f"{self._gpus} GPUs are declared, {len(detection.gpus)} were found: only those are offered")
        with self._locked():
            seen = self._look()
        busy = devices_in_use(seen)
        return {
            "status": "degraded" if problems else "healthy",
            "gpus": [
                {
                    "model": stock.model,
                    "memory_gib": stock.memory_gib,
                    "count": len(stock.devices),
                    "free": len(set(stock.devices) - busy),
                }
                for stock in held
            ],
            "gpu_detection": detection.reason or "ok",
            "machines": sum(is_live(machine) for _, machine in seen),
            "problems": problems,
        }

    # --- what there is ------------------------------------------------------------------------------------

    def _stocks(self) -> tuple[Stock, ...]:
        return stocks(self._detection(), self._gpus, self._gpu_memory_gib)

    def _detection(self) -> Detection:
        if self._gpus == 0:
            return Detection((), "no GPUs are to be given out (local.gpus is 0)")
        if self._detected is None or time.monotonic() - self._detected[0] > DETECT_EVERY_S:
            self._detected = (time.monotonic(), detect_gpus())
        return self._detected[1]

    def _free_devices(self, order: Order, held: Sequence[Stock], seen: Seen) -> tuple[str, ...]:
        """Enough for the whole order. Raises NoCapacity."""
        live, room = sum(is_live(machine) for _, machine in seen), self._max_machines
        if live + order.count > room:
            refuse(f"{live} of {room} machines are in use, the order needs {order.count}")
        if order.gpus == 0:
            return ()
        stock = stock_of(held, order.offer, order.gpus)
        free = tuple(device for device in stock.devices if device not in devices_in_use(seen))
        if len(free) < order.count * order.gpus:
            refuse(f"{len(free)} of {len(stock.devices)} GPUs are free, the order needs {order.count * order.gpus}")
        return free

    # --- the folders, under the lock ------------------------------------------------------------------------

    def _look(self) -> Seen:
        folders = filter(None, map(MachineFolder.read, sorted(self._folder.glob("local-*"))))
        return [(folder, self._life.look(folder)) for folder in folders]

    def _clear_debris(self) -> None:
        """Drafts and half-removed folders. Only the holder of the lock makes them: a crash left any that is there."""
        debris = [path for path in self._folder.glob("local-*") if not (path / "machine.json").exists()]
        for path in [*self._folder.glob(".new-*"), *debris]:
            shutil.rmtree(path, ignore_errors=True)

    def _forget(self, seen: Seen) -> None:
        """Whole orders only: what is left of an order must show that it was bought."""
        orders: dict[str, list[MachineFolder]] = {}
        for folder, _ in seen:
            orders.setdefault(folder.record.order_id, []).append(folder)
        ended = [(at, folders) for folders in orders.values() if (at := ended_at(folders)) is not None]
        newest_first = sorted(ended, key=lambda order: order[0], reverse=True)
        for place, (at, folders) in enumerate(newest_first):
            if place >= MAX_REMEMBERED or self._now() - at > REMEMBER_S:
                for folder in folders:
                    folder.remove()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time among all servers and threads that share the folder. Raises ProviderError for what the disk
        refuses."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_lock(self._lock) as lock:
                wait_for(lock)
                yield
        except OSError as error:
            raise ProviderError(
                f"the folder of the local machines cannot be used: {error}", provider=PROVIDER
            ) from error


@contextmanager
def explained() -> Iterator[None]:
    """A purchase that left nothing behind: may it be tried again?"""
    try:
        yield
    except OSError as error:
        if error.errno in PASSING:
            refuse(str(error))
        raise OrderRejected(f"this computer cannot start machines: {error}", provider=PROVIDER) from error


def wait_for(lock: int) -> None:
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while not takes(lock, fcntl.LOCK_EX):
        if time.monotonic() > deadline:
            raise RateLimited("another server holds the lock of the local machines", provider=PROVIDER)
        time.sleep(LOCK_RETRY_S)


def stock_of(held: Sequence[Stock], offer: OfferId, gpus: int) -> Stock:
    for stock in held:
        if stock.offer_id(gpus) == offer:
            return stock
    raise OrderRejected(f"this computer does not offer {offer} (any more)", provider=PROVIDER)


def refuse(reason: str) -> NoReturn:
    raise NoCapacity(f"this computer has no room: {reason}", provider=PROVIDER)


def ended_at(folders: Sequence[MachineFolder]) -> float | None:
    """When the last of them ended; None while one lives."""
    endings = [folder.ending() for folder in folders]
    return None if None in endings else max(ending.at for ending in endings if ending)


def is_live(machine: Machine) -> bool:
    return machine.state is not MachineState.GONE


def devices_in_use(seen: Seen) -> frozenset[str]:
    return frozenset(device for _, machine in seen if is_live(machine) for device in machine.devices)
