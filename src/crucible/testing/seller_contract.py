"""What everyone who sells machines must do (ports.seller). A test file subclasses SellerContract and gives a `world`
fixture; it adds tests only for what its own seller can suffer."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from crucible.model.errors import NoCapacity
from crucible.model.ids import JobId, MachineId, OrderId, TaskId
from crucible.model.lease import Boot, Machine, MachineState, Order
from crucible.model.offer import Offer
from crucible.ports.seller import Prepares, Seller

BOOT = Boot(("http://127.0.0.1:9",), "enrolment-token-of-a-test", agent_sha256="0" * 64)
# An emulated or local machine changes its state within seconds.
SOON_S = 20.0
POLL_S = 0.05

_numbers = itertools.count(1)


class Shop(Protocol):
    """Where offers are found: a seller that counts its stock, or the world around one that does not."""

    async def offers(self) -> Sequence[Offer]: ...


class SellerWorld(Protocol):
    """Where the seller sells: the part of it that outlives the adapter."""

    def open(self) -> Seller:
        """The adapter, as a process that has just started sees it."""
        ...

    def crash(self, machine: MachineId) -> None:
        """The machine dies, and nobody asked it to."""
        ...

    async def offers(self) -> Sequence[Offer]:
        """What can be bought here now: something of which there is plenty, and one GPU each of a stock that is counted.
        A seller that lists nothing leaves that to its world."""
        return await self.open().offers()


class SellerContract:
    @pytest.fixture
    def world(self) -> SellerWorld:
        raise NotImplementedError

    @pytest.fixture
    def seller(self, world: SellerWorld) -> Seller:
        return world.open()

    # --- offers -----------------------------------------------------------------------------------

    def test_offers_are_priced_and_named_once(self, world: SellerWorld, seller: Seller) -> None:
        assert bool(asyncio.run(seller.offers())) == seller.facts.counts_stock
        offers = asyncio.run(world.offers())
        assert offers and len({offer.id for offer in offers}) == len(offers)
        for offer in offers:
            assert isinstance(offer.price_per_hour, int) and offer.price_per_hour >= 0
            assert offer.target.provider == seller.name and offer.target.region and offer.target.backend
            assert offer.gpus >= 0 and offer.cpus > 0 and offer.memory_gib > 0
            assert (offer.gpu is None) == (offer.gpus == 0)
            assert offer.free_gpus is None or offer.free_gpus >= 0

    # --- buying -----------------------------------------------------------------------------------

    def test_what_was_bought_is_listed_with_its_order_and_index(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            order = await prepared(seller, order_of(await small_offer(world), count=2))
            bought = await seller.create(order, BOOT)
            assert [(m.order_id, m.index) for m in bought] == [(order.id, 0), (order.id, 1)]
            assert len({m.id for m in bought}) == 2
            listed = {m.id: m for m in await listed_of(seller, order)}
            assert {m.id for m in bought} == set(listed)
            assert [listed[m.id].index for m in bought] == [0, 1]
            # A cloud sells whole machines: which devices they have, their agents find out.
            devices = order.gpus if seller.facts.counts_stock else 0
            assert all(len(m.devices) == devices for m in bought)
            assert await all_become(seller, order, MachineState.RUNNING)

        asyncio.run(scenario())

    def test_the_same_token_never_buys_twice(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            order = await prepared(seller, order_of(await small_offer(world), count=2))
            first = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            second = await seller.create(order, BOOT)
            assert places(first) == places(second)
            assert len(await listed_of(seller, order)) == 2

        asyncio.run(scenario())

    def test_the_same_token_at_the_same_time_buys_once(self, world: SellerWorld) -> None:
        async def scenario() -> None:
            sellers = [world.open() for _ in range(4)]
            order = await prepared(sellers[0], order_of(await small_offer(world), count=2))
            bought = await asyncio.gather(*(seller.create(order, BOOT) for seller in sellers))
            assert len({tuple(places(machines)) for machines in bought}) == 1
            await all_become(sellers[0], order, MachineState.RUNNING)
            assert len(await listed_of(sellers[0], order)) == 2

        asyncio.run(scenario())

    def test_a_new_process_with_the_same_token_finds_the_same_machines(self, world: SellerWorld) -> None:
        async def scenario() -> None:
            order = await prepared(world.open(), order_of(await small_offer(world), count=2))
            first = await world.open().create(order, BOOT)
            second = await world.open().create(order, BOOT)
            assert places(first) == places(second)
            assert len(await listed_of(world.open(), order)) == 2

        asyncio.run(scenario())

    def test_an_order_that_does_not_fit_buys_nothing(self, world: SellerWorld, seller: Seller) -> None:
        """All or none: room for some of the machines is not enough."""

        async def scenario() -> None:
            offer = await scarce_offer(world)
            order = await prepared(seller, order_of(offer, count=stock_of(offer) + 1))
            before = await picture(seller, world)
            with pytest.raises(NoCapacity):
                await seller.create(order, BOOT)
            assert await picture(seller, world) == before

        asyncio.run(scenario())

    def test_a_sold_out_seller_refuses_and_changes_nothing(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            offer = await scarce_offer(world)
            held = await prepared(seller, order_of(offer, count=stock_of(offer)))
            await seller.create(held, BOOT)
            await all_become(seller, held, MachineState.RUNNING)
            before = await picture(seller, world)
            refused = await prepared(seller, order_of(offer))
            for _ in range(2):
                with pytest.raises(NoCapacity):
                    await seller.create(refused, BOOT)
            assert await picture(seller, world) == before
            assert await seller.create(held, BOOT), "what was bought before is still ours to ask for"

        asyncio.run(scenario())

    def test_no_device_is_given_to_two_machines(self, world: SellerWorld) -> None:
        """Even if they are bought at the same time by different processes."""

        async def scenario() -> None:
            offer = await scarce_offer(world)
            orders = [await prepared(world.open(), order_of(offer)) for _ in range(stock_of(offer) + 2)]
            results = await asyncio.gather(
                *(world.open().create(order, BOOT) for order in orders), return_exceptions=True
            )
            refused = [result for result in results if isinstance(result, NoCapacity)]
            assert len(refused) == 2 and not [r for r in results if isinstance(r, BaseException) and r not in refused]
            seller = world.open()
            live = [m for m in await seller.machines() if m.state is not MachineState.GONE]
            devices = [device for machine in live for device in machine.devices]
            assert len(live) == stock_of(offer) and len(set(devices)) == len(devices)
            assert (await scarce_offer(world)).free_gpus == 0

        asyncio.run(scenario())

    # --- giving back ------------------------------------------------------------------------------

    def test_deleting_what_is_absent_is_success(self, seller: Seller) -> None:
        for name in ("never-existed", "", "../../etc", "local-" + "0" * 20, "x" * 5000):
            asyncio.run(seller.delete(MachineId(name)))

    def test_a_deleted_machine_ends_and_its_stock_returns(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            offer = await scarce_offer(world)
            order = await prepared(seller, order_of(offer, count=stock_of(offer)))
            machines = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            for machine in machines:
                await seller.delete(machine.id)
            await gone(seller, order)
            assert (await scarce_offer(world)).free_gpus == offer.free_gpus
            again = await prepared(seller, order_of(offer, count=stock_of(offer)))
            assert len(await seller.create(again, BOOT)) == again.count

        asyncio.run(scenario())

    def test_a_machine_may_be_deleted_before_it_has_started(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            order = await prepared(seller, order_of(await small_offer(world)))
            (machine,) = await seller.create(order, BOOT)
            await seller.delete(machine.id)
            await gone(seller, order)

        asyncio.run(scenario())

    def test_deleting_twice_and_after_the_end_is_success(self, world: SellerWorld) -> None:
        async def scenario() -> None:
            seller = world.open()
            order = await prepared(seller, order_of(await small_offer(world)))
            (machine,) = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            await asyncio.gather(seller.delete(machine.id), world.open().delete(machine.id))
            await seller.delete(machine.id)
            await gone(seller, order)
            await seller.delete(machine.id)

        asyncio.run(scenario())

    def test_deleting_one_machine_leaves_the_others_of_its_order(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            order = await prepared(seller, order_of(await small_offer(world), count=2))
            first, second = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            await seller.delete(first.id)
            await until(lambda: state_is(seller, first.id, MachineState.GONE))
            assert await state_is(seller, second.id, MachineState.RUNNING)

        asyncio.run(scenario())

    # --- dying ------------------------------------------------------------------------------------

    def test_a_machine_that_ended_is_listed_as_gone_and_never_comes_back(self, world: SellerWorld) -> None:
        async def scenario() -> None:
            seller = world.open()
            order = await prepared(seller, order_of(await small_offer(world), count=2))
            first, second = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            world.crash(first.id)
            await until(lambda: state_is(seller, first.id, MachineState.GONE))
            (listed,) = [m for m in await seller.machines() if m.id == first.id]
            assert listed.reason
            again = await world.open().create(order, BOOT)
            assert places(again) == places([first, second])
            assert await state_is(seller, first.id, MachineState.GONE)
            assert await state_is(seller, second.id, MachineState.RUNNING)

        asyncio.run(scenario())

    def test_the_devices_of_a_dead_machine_are_sold_again(self, world: SellerWorld) -> None:
        async def scenario() -> None:
            seller = world.open()
            offer = await scarce_offer(world)
            order = await prepared(seller, order_of(offer, count=stock_of(offer)))
            machines = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            world.crash(machines[0].id)
            await until(lambda: state_is(seller, machines[0].id, MachineState.GONE))
            (bought,) = await seller.create(await prepared(seller, order_of(offer)), BOOT)
            assert sorted(bought.devices) == sorted(machines[0].devices)

        asyncio.run(scenario())


# --- orders and pictures --------------------------------------------------------------------------------


def order_of(offer: Offer, count: int = 1) -> Order:
    number = next(_numbers)
    now = datetime.now(UTC)
    return Order(
        id=OrderId(f"order-{number}"),
        job_id=JobId(f"job-{number}"),
        task_id=TaskId(f"task-{number}"),
        target=offer.target,
        offer=offer.id,
        zone="",
        instance_type=offer.instance_type,
        count=count,
        gpus=offer.gpus,
        is_spot=offer.is_spot,
        price_per_hour=offer.price_per_hour,
        body={},
        created_at=now,
        deadline_at=now + timedelta(minutes=10),
    )


async def prepared(seller: Seller, order: Order) -> Order:
    """With its exact request, where the seller needs one: as the engine stores it before the first call."""
    if not isinstance(seller, Prepares):
        return order
    return replace(order, body={"request": dict(await seller.prepare(order))})


async def small_offer(shop: Shop) -> Offer:
    """Of which there is plenty."""
    return min(await shop.offers(), key=lambda offer: (offer.gpus, offer.id))


async def scarce_offer(shop: Shop) -> Offer:
    """One GPU each, out of a stock that is counted."""
    return min(
        (offer for offer in await shop.offers() if offer.gpus == 1 and offer.free_gpus is not None),
        key=lambda offer: offer.id,
    )


def stock_of(offer: Offer) -> int:
    assert offer.free_gpus is not None
    return offer.free_gpus


def places(machines: Sequence[Machine]) -> list[tuple[MachineId, OrderId, int]]:
    return [(machine.id, machine.order_id, machine.index) for machine in machines]


async def picture(seller: Seller, shop: Shop | None = None) -> tuple[Any, Any]:
    """All that a refused order must leave as it was."""
    machines = sorted(await seller.machines(), key=lambda machine: machine.id)
    offers = sorted(await (shop or seller).offers(), key=lambda offer: offer.id)
    return [replace(machine, reason=None) for machine in machines], [(o.id, o.free_gpus) for o in offers]


async def listed_of(seller: Seller, order: Order) -> list[Machine]:
    return [machine for machine in await seller.machines() if machine.order_id == order.id]


async def state_is(seller: Seller, machine_id: MachineId, state: MachineState) -> bool:
    return any(machine.id == machine_id and machine.state is state for machine in await seller.machines())


async def all_become(seller: Seller, order: Order, state: MachineState) -> bool:
    async def look() -> bool:
        machines = await listed_of(seller, order)
        return len(machines) == order.count and all(machine.state is state for machine in machines)

    await until(look)
    return True


async def gone(seller: Seller, order: Order) -> None:
    """Listed as gone, or no longer listed."""

    async def look() -> bool:
        return all(machine.state is MachineState.GONE for machine in await listed_of(seller, order))

    await until(look)


async def until(look: Callable[[], Awaitable[bool]]) -> None:
    deadline = time.monotonic() + SOON_S
    while not await look():
        assert time.monotonic() < deadline, f"it did not happen within {SOON_S:g} s"
        await asyncio.sleep(POLL_S)
