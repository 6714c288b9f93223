"""A small honest cloud in memory. It passes the seller contract; faults are switched on by probability and drawn from a
seeded source, so a run can be repeated."""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from crucible.model.errors import NoCapacity, OutcomeUnknown, ProviderError
from crucible.model.ids import MachineId, OfferId, OrderId
from crucible.model.lease import Boot, Machine, MachineState, Order, SellerFacts
from crucible.model.offer import Offer, Target
from crucible.model.units import MicroUsd
from crucible.ports.clock import Clock

TARGET = Target("fake", "nowhere-1", "vm")


@dataclass(kw_only=True)
class Faults:
    """Probabilities, each 0 … 1."""

    lost_reply: float = 0.0  # the machines are bought, the answer is lost
    error_before: float = 0.0  # nothing is bought, and the caller cannot know
    no_capacity: float = 0.0
    late_listing: float = 0.0  # a new machine is missing from one listing
    lying_delete: float = 0.0  # accepted, and not done
    machine_dies: float = 0.0  # per machine, some time while it runs
    list_fails: float = 0.0
    server_unreachable: float = 0.0  # per call of an agent
    reply_lost: float = 0.0  # the server acted, the agent did not hear


Booted = Callable[[Machine, Order, Boot], None]


@dataclass(kw_only=True)
class FakeCloud:
    clock: Clock
    random: random.Random
    gpus: int = 16
    faults: Faults = field(default_factory=Faults)
    on_boot: Booted = field(default=lambda machine, order, boot: None)
    on_end: Callable[[MachineId], None] = field(default=lambda machine: None)
    name: str = "fake"
    facts: SellerFacts = field(
        default=SellerFacts(idempotent_create=True, visibility=timedelta(seconds=30), boot_time=timedelta(seconds=60))
    )
    bought: dict[OrderId, tuple[MachineId, ...]] = field(default_factory=dict)
    known: dict[MachineId, Machine] = field(default_factory=dict)
    gpus_of: dict[MachineId, int] = field(default_factory=dict)

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
                price_per_hour=MicroUsd(2_000_000 * gpus),
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
        return [self.known[machine] for machine in self.bought[order.id]]

    async def delete(self, machine: MachineId) -> None:
        if machine in self.known and not self._strikes(self.faults.lying_delete):
            self.end(machine, "deleted")

    async def machines(self) -> Sequence[Machine]:
        if self._strikes(self.faults.list_fails):
            raise ProviderError("listing failed", provider=self.name)
        return [m for m in self.known.values() if not self._strikes(self.faults.late_listing)]

    # --- what a test sees and does ------------------------------------------------------------------

    def alive(self) -> list[Machine]:
        return [m for m in self.known.values() if m.state is not MachineState.GONE]

    def used(self) -> int:
        return sum(self.gpus_of[m.id] for m in self.alive())

    def end(self, machine: MachineId, reason: str) -> None:
        self.known[machine] = replace(self.known[machine], state=MachineState.GONE, reason=reason)
        self.on_end(machine)

    def _buy(self, order: Order, boot: Boot) -> None:
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
            )
            self.known[machine.id] = machine
            self.gpus_of[machine.id] = order.gpus
            ids.append(machine.id)
            self.on_boot(machine, order, boot)
            if self._strikes(self.faults.machine_dies):
                asyncio.get_running_loop().call_later(self.random.uniform(1, 300), self._die, machine.id)
        self.bought[order.id] = tuple(ids)

    def _die(self, machine: MachineId) -> None:
        if self.known[machine].state is not MachineState.GONE:
            self.end(machine, "reclaimed")

    def _strikes(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability
