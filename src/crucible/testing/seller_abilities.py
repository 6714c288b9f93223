"""What a seller that can do more must do (the small Protocols of ports.seller, and telling what machines cost). A test
file adds those that its seller has: `class TestAws(SellerContract, PreparesContract, …)`."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, timedelta
from typing import Protocol

import pytest

from crucible.model.errors import ProviderError
from crucible.model.ids import MachineId
from crucible.model.lease import Leftover, LeftoverKind, MachineState
from crucible.ports.seller import Examines, Prepares, Quotas, Reaps, Remembers, Seller
from crucible.testing.seller_contract import (
    BOOT,
    SellerWorld,
    all_become,
    gone,
    listed_of,
    order_of,
    prepared,
    scarce_offer,
    small_offer,
    state_is,
    until,
)


class PreparesContract:
    def test_a_prepared_order_is_prepared_the_same_again(self, world: SellerWorld) -> None:
        async def scenario() -> None:
            order = order_of(await small_offer(world), count=2)
            bodies = []
            for seller in (world.open(), world.open()):
                assert isinstance(seller, Prepares)
                bodies += [await seller.prepare(order), await seller.prepare(order)]
            assert len({json.dumps(body, sort_keys=True) for body in bodies}) == 1
            assert json.loads(json.dumps(bodies[0])) == bodies[0], "it is stored as JSON"
            assert order.id in json.dumps(bodies[0]), "whatever is bought carries the order"

        asyncio.run(scenario())

    def test_preparing_buys_nothing(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            await prepared(seller, order_of(await scarce_offer(world), count=2))
            assert await seller.machines() == []

        asyncio.run(scenario())


class BillsContract:
    """A seller whose machines cost money says when they began and ended, by its own clock, in whole seconds."""

    def test_a_machine_is_listed_with_its_start_and_its_end(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            order = await prepared(seller, order_of(await small_offer(world), count=2))
            first, second = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            starts = {machine.id: machine.started_at for machine in await listed_of(seller, order)}
            await seller.delete(first.id)
            await until(lambda: state_is(seller, first.id, MachineState.GONE))
            ended, alive = sorted(await listed_of(world.open(), order), key=lambda machine: machine.index)
            assert alive.ended_at is None and ended.ended_at is not None and ended.started_at is not None
            assert {ended.id: ended.started_at, alive.id: alive.started_at} == starts
            for moment in (ended.started_at, ended.ended_at):
                assert moment.tzinfo is UTC and moment.microsecond == 0
            assert ended.started_at <= ended.ended_at
            assert not ended.was_taken and ended.reason
            assert second.id == alive.id

        asyncio.run(scenario())

    def test_what_a_machine_costs_is_told_the_same_after_its_end(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            order = await prepared(seller, order_of(await small_offer(world)))
            (machine,) = await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            (alive,) = await listed_of(seller, order)
            await seller.delete(machine.id)
            await gone(seller, order)
            (ended,) = await listed_of(world.open(), order)
            assert ended.extras == alive.extras
            assert ended.prices[: len(alive.prices)] == alive.prices

        asyncio.run(scenario())


class LeavingWorld(SellerWorld, Protocol):
    """Where things may be left behind."""

    def leave(self) -> Leftover:
        """Something of ours without a machine, as a machine may leave it."""
        ...

    def leave_foreign(self) -> None:
        """The same, and not ours."""
        ...

    def later(self) -> Seller:
        """The adapter when what was left is old enough to be sure."""
        ...


class ReapsContract:
    def test_what_was_left_behind_is_listed_and_removed_for_good(self, world: LeavingWorld) -> None:
        async def scenario() -> None:
            left = world.leave()
            world.leave_foreign()
            seller = world.later()
            assert isinstance(seller, Reaps)
            assert await seller.leftovers() == [left]
            await seller.remove(left)
            assert await seller.leftovers() == []
            await seller.remove(left)

        asyncio.run(scenario())

    def test_what_belongs_to_a_machine_or_is_new_is_not_left_behind(self, world: LeavingWorld) -> None:
        async def scenario() -> None:
            seller = world.later()
            assert isinstance(seller, Reaps)
            order = await prepared(seller, order_of(await small_offer(world), count=2))
            await seller.create(order, BOOT)
            await all_become(seller, order, MachineState.RUNNING)
            assert await seller.leftovers() == []
            world.leave()
            now = world.open()
            assert isinstance(now, Reaps)
            assert await now.leftovers() == []

        asyncio.run(scenario())

    def test_removing_what_is_absent_is_success(self, seller: Seller) -> None:
        assert isinstance(seller, Reaps)
        for kind, name in ((LeftoverKind.VOLUME, "vol-0123456789abcdef0"), (LeftoverKind.ADDRESS, "eipalloc-01234567")):
            asyncio.run(seller.remove(Leftover(kind=kind, id=name, order_id=None)))


class RemembersContract:
    def test_the_last_words_of_a_machine_outlive_it(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            assert isinstance(seller, Remembers)
            order = await prepared(seller, order_of(await small_offer(world)))
            (machine,) = await seller.create(order, BOOT)

            async def has_spoken() -> bool:
                assert isinstance(seller, Remembers)
                return order.id in (await seller.last_words(machine.id) or "")

            await until(has_spoken)
            await seller.delete(machine.id)
            await gone(seller, order)
            assert await has_spoken()

        asyncio.run(scenario())

    def test_who_never_was_has_said_nothing(self, seller: Seller) -> None:
        assert isinstance(seller, Remembers)
        for name in ("never-existed", "", "../../etc", "i-0123456789abcdef0"):
            assert asyncio.run(seller.last_words(MachineId(name))) is None


class QuotasContract:
    def test_quotas_are_of_the_seller_and_nothing_is_said_of_their_use(self, seller: Seller) -> None:
        assert isinstance(seller, Quotas)
        told = asyncio.run(seller.quotas())
        assert told and {(one.provider, one.region) for one in told} == {(seller.name, seller.region)}
        assert all(one.most >= 0 and one.used == 0 for one in told)
        assert len({replace(one, most=0) for one in told}) == len(told), "each is told once"

    def test_asking_again_changes_nothing(self, world: SellerWorld, seller: Seller) -> None:
        async def scenario() -> None:
            assert isinstance(seller, Quotas)
            before = await seller.quotas()
            order = await prepared(seller, order_of(await small_offer(world)))
            await seller.create(order, BOOT)
            assert await seller.quotas() == before, "what is in use is not the seller's to say"

        asyncio.run(scenario())

    def test_quotas_that_cannot_be_read_are_an_error_of_the_provider(self, world: "ExaminedWorld") -> None:
        seller = world.unreachable()
        assert isinstance(seller, Quotas)
        with pytest.raises(ProviderError):
            asyncio.run(seller.quotas())


class ExaminedWorld(SellerWorld, Protocol):
    def unreachable(self) -> Seller:
        """The adapter where nobody answers."""
        ...


class ExaminesContract:
    def test_a_seller_in_order_has_no_problems(self, seller: Seller) -> None:
        assert isinstance(seller, Examines)
        health = asyncio.run(seller.health())
        assert (health["status"], health["problems"]) == ("healthy", [])
        assert json.loads(json.dumps(health)) == health

    def test_a_seller_that_cannot_be_reached_is_down_and_says_what_to_do(self, world: ExaminedWorld) -> None:
        seller = world.unreachable()
        assert isinstance(seller, Examines)

        async def bounded() -> object:
            return await asyncio.wait_for(seller.health(), timedelta(minutes=1).total_seconds())

        health = asyncio.run(bounded())
        assert isinstance(health, dict) and health["status"] == "down"
        assert health["problems"] and all(one["problem"] and one["fix"] for one in health["problems"])
