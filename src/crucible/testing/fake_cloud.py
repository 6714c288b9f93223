"""A small honest cloud in memory. It passes the seller contract; faults are switched on by probability and drawn from a
seeded source, so a run can be repeated."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from crucible.model.errors import NoCapacity, OutcomeUnknown, ProviderError
from crucible.model.ids import JobId, MachineId, OfferId, OrderId
from crucible.model.lease import Boot, Machine, MachineState, Order, SellerFacts
from crucible.model.offer import Offer, Target
from crucible.ports.clock import Clock
from crucible.testing.fake_prices import BESIDE_PER_HOUR, EXTRAS, TERMS, Kind

TARGET = Target("fake", "nowhere-1", "vm")
# How long an ended machine is listed as such.
REMEMBERS = timedelta(hours=1)


@dataclass(kw_only=True)
class Faults:
    """Probabilities, each 0 … 1."""

    lost_reply: float = 0.0  # the machines are bought, the answer is lost
    error_before: float = 0.0  # nothing is bought, and the caller cannot know
    no_capacity: float = 0.0
    late_listing: float = 0.0  # a new machine is missing from one listing
    lying_delete: float = 0.0  # accepted, and not done
    machine_dies: float = 0.0  # per machine, some time while it runs
    taken: float = 0.0  # per spot machine: the seller wants it back
    noticed: float = 0.0  # the same, and it says so before
    list_fails: float = 0.0
    server_unreachable: float = 0.0  # per call of an agent
    reply_lost: float = 0.0  # the server acted, the agent did not hear


NOTICES_S = (120.0, 30.0)

Booted = Callable[[Machine, Order, Boot], None]


@dataclass(kw_only=True)
class FakeCloud:
    clock: Clock
    random: random.Random
    gpus: int = 16
    faults: Faults = field(default_factory=Faults)
    on_boot: Booted = field(default=lambda machine, order, boot: None)
    on_end: Callable[[MachineId], None] = field(default=lambda machine: None)
    on_notice: Callable[[MachineId, float], None] = field(default=lambda machine, left_s: None)
    name: str = "fake"
    region: str = TARGET.region
    facts: SellerFacts = field(
        default=SellerFacts(
            idempotent_create=True,
            visibility=timedelta(seconds=30),
            boot_time=timedelta(seconds=60),
            counts_stock=True,
            terms=TERMS,
            beside_per_hour=BESIDE_PER_HOUR,
        )
    )
    bought: dict[OrderId, tuple[MachineId, ...]] = field(default_factory=dict)
    known: dict[MachineId, Machine] = field(default_factory=dict)
    orders: dict[OrderId, Order] = field(default_factory=dict)
    listed: dict[MachineId, None] = field(default_factory=dict)  # alive, or not long over
    surges_at: datetime | None = None  # from the next move of spot prices on they are twice as high

    async def offers(self) -> Sequence[Offer]:
        free = self.gpus - self.used()
        return [
            Offer(
                id=OfferId(f"fake/{gpus}"),
                target=TARGET,
                instance_type=f"fake-{gpus}gpu",
                gpu="H100" if gpus else None,
                gpus=gpus,
                gpu_memory_gib=80,
                cpus=8,
                memory_gib=64,
                price_per_hour=Kind(gpus, is_spot=False).price(self.clock.now()),
                stock="fake:gpus",
                free_gpus=free,
            )
            for gpus in range(min(self.gpus, 8) + 1)
        ]

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        if self._strikes(self.faults.error_before):
            raise OutcomeUnknown("connection reset", provider=self.name)
        if order.id not in self.bought:
            if order.count * order.gpus > self.gpus - self.used() or self._strikes(self.faults.no_capacity):
                raise NoCapacity("sold out", provider=self.name)
            self._buy(order, boot)
        if self._strikes(self.faults.lost_reply):
            raise OutcomeUnknown("no reply to create", provider=self.name)
        return [self._shown(machine) for machine in self.bought[order.id]]

    async def delete(self, machine: MachineId) -> None:
        if machine in self.known and not self._strikes(self.faults.lying_delete):
            self.end(machine, "deleted")

    async def machines(self) -> Sequence[Machine]:
        if self._strikes(self.faults.list_fails):
            raise ProviderError("listing failed", provider=self.name)
        self._forget()
        return [self._shown(machine) for machine in self.listed if not self._strikes(self.faults.late_listing)]

    # --- what a test sees and does ------------------------------------------------------------------

    def alive(self) -> list[Machine]:
        known = (self.known[machine] for machine in self.listed)
        return [machine for machine in known if machine.state is not MachineState.GONE]

    def used(self) -> int:
        return sum(self.orders[m.order_id].gpus for m in self.alive())

    def end(self, machine: MachineId, reason: str, *, was_taken: bool = False) -> None:
        known = self.known[machine]
        if known.state is MachineState.GONE:
            return
        self.known[machine] = replace(
            known, state=MachineState.GONE, reason=reason, ended_at=self._second(), was_taken=was_taken
        )
        self.on_end(machine)

    def warn(self, machine: MachineId, left_s: float) -> None:
        """It is taken back when that time is over."""
        if self.known[machine].state is not MachineState.GONE:
            self.on_notice(machine, left_s)
            taken = partial(self.end, machine, "taken back after a notice", was_taken=True)
            asyncio.get_running_loop().call_later(left_s, taken)

    def bills(self) -> dict[JobId, int]:
        """Of the machines that are over, in micro-dollars, by the job they were bought for."""
        found: dict[JobId, int] = {}
        for machine in self.known.values():
            if machine.started_at is not None and machine.ended_at is not None:
                job_id, kind = self.orders[machine.order_id].job_id, self._kind(machine)
                bill = kind.bill(machine.started_at, machine.ended_at, was_taken=machine.was_taken)
                found[job_id] = found.get(job_id, 0) + bill
        return found

    def owed(self) -> int:
        """Of everything that was ever sold, as if what lives ended now."""
        found = 0
        for machine in self.known.values():
            if machine.started_at is not None:
                end = machine.ended_at or self._second()
                found += self._kind(machine).bill(machine.started_at, end, was_taken=machine.was_taken)
        return found

    def _kind(self, machine: Machine) -> Kind:
        order = self.orders[machine.order_id]
        return Kind(order.gpus, order.is_spot, self.surges_at)

    def _shown(self, machine: MachineId) -> Machine:
        """With its prices until now, where they move."""
        known = self.known[machine]
        start, end = known.started_at or self._second(), known.ended_at or self._second()
        return replace(known, prices=self._kind(known).prices(start, end))

    def _forget(self) -> None:
        """Ended machines are listed for a while only."""
        now = self._second()
        for machine in list(self.listed):
            ended_at = self.known[machine].ended_at
            if ended_at is not None and now - ended_at > REMEMBERS:
                del self.listed[machine]

    def _second(self) -> datetime:
        return self.clock.now().replace(microsecond=0)

    def _buy(self, order: Order, boot: Boot) -> None:
        self.orders[order.id] = order
        taken = {device for m in self.alive() for device in m.devices}
        free = [str(i) for i in range(self.gpus) if str(i) not in taken]
        ids: list[MachineId] = []
        for index in range(order.count):
            devices, free = tuple(free[: order.gpus]), free[order.gpus :]
            machine = Machine(
                id=MachineId(f"m-{order.id}-{index}"),
                order_id=order.id,
                index=index,
                state=MachineState.RUNNING,
                devices=devices,
                address="127.0.0.1",
                started_at=self._second(),
                extras=EXTRAS,
            )
            self.known[machine.id] = machine
            self.listed[machine.id] = None
            ids.append(machine.id)
            self.on_boot(machine, order, boot)
            if self._strikes(self.faults.machine_dies):
                self._later(partial(self.end, machine.id, "it broke"))
            if order.is_spot and self._strikes(self.faults.taken):
                self._later(partial(self.end, machine.id, "taken back", was_taken=True))
            if order.is_spot and self._strikes(self.faults.noticed):
                self._later(partial(self.warn, machine.id, self.random.choice(NOTICES_S)))
        self.bought[order.id] = tuple(ids)

    def _later(self, deed: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(self.random.uniform(1, 300), deed)

    def _strikes(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability
