"""The sweep removes what costs money and belongs to nobody, and nothing else."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from crucible.engine.hub import Hub
from crucible.engine.poller import STRAY_SIGHTINGS, Poller
from crucible.engine.vitals import Vitals
from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Leftover, LeftoverKind, Machine, MachineState
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.virtual import virtual_clock
from making import an_order


@dataclass(kw_only=True)
class Cloud(FakeCloud):
    left: list[Leftover] = field(default_factory=list)
    strays: list[Machine] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    async def machines(self) -> Sequence[Machine]:
        return self.strays

    async def delete(self, machine: MachineId) -> None:
        self.removed.append(machine)

    async def leftovers(self) -> Sequence[Leftover]:
        return self.left

    async def remove(self, leftover: Leftover) -> None:
        self.removed.append(leftover.id)


class Store:
    """Nothing is leased; one order is under way."""

    orders = (an_order(id=OrderId("open")),)

    async def nothing(self, *_: Any) -> Sequence[Any]:
        return ()

    async def open_orders(self, *_: Any) -> Sequence[Any]:
        return self.orders

    async def order(self, order_id: OrderId) -> tuple[Any, tuple[()]]:
        return an_order(id=order_id), ()

    async def usages(self, *_: Any) -> dict[MachineId, Any]:
        return {}

    async def commit(self, changes: Sequence[Any], records: Sequence[Any], *, label: str) -> None:
        """What is told of a machine that nobody owns."""

    open_leases = open_usages = stranded = nothing


def looked(cloud: Cloud, looks: int) -> list[str]:
    async def story() -> None:
        clock = virtual_clock(asyncio.get_running_loop())
        wakes = SimpleNamespace(wake=lambda *_: None)
        context: Any = SimpleNamespace(
            store=Store(),
            clock=clock,
            failpoint=lambda name: None,
            wakes=wakes,
            policy=None,
            vitals=Vitals(clock),
            hub=Hub(clock),
        )
        poller = Poller(context, cloud, lambda: None)
        for _ in range(looks):
            await poller.sweep()

    asyncio.run(story())
    return cloud.removed


def cloud(**things: Any) -> Cloud:
    return Cloud(clock=None, random=random.Random(0), **things)  # type: ignore[arg-type]


def test_a_machine_that_no_lease_holds_is_removed_when_it_is_seen_again() -> None:
    stray = Machine(id=MachineId("m"), order_id=OrderId("gone"), index=0, state=MachineState.RUNNING)
    assert looked(cloud(strays=[stray]), STRAY_SIGHTINGS - 1) == []
    assert looked(cloud(strays=[stray]), STRAY_SIGHTINGS) == ["m"]


def test_what_has_ended_is_left_alone() -> None:
    ended = Machine(id=MachineId("m"), order_id=OrderId("gone"), index=0, state=MachineState.GONE)
    assert looked(cloud(strays=[ended]), 10) == []


def test_disks_and_addresses_that_no_machine_holds_are_removed() -> None:
    disk = Leftover(kind=LeftoverKind.VOLUME, id="vol", order_id=OrderId("gone"))
    address = Leftover(kind=LeftoverKind.ADDRESS, id="ip", order_id=None)
    assert looked(cloud(left=[disk, address]), STRAY_SIGHTINGS - 1) == []
    assert looked(cloud(left=[disk, address]), STRAY_SIGHTINGS) == ["vol", "ip"]


def test_a_disk_whose_machine_is_being_bought_is_not_a_leftover() -> None:
    disk = Leftover(kind=LeftoverKind.VOLUME, id="vol", order_id=OrderId("open"))
    assert looked(cloud(left=[disk]), 10) == []
