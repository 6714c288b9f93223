"""Tiny as a seller: the contract of all sellers, and what only this one can suffer."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from crucible_tiny.opening import open_provider
from crucible_tiny.seller import TinyRegion
from crucible_tiny.wire import Wire
from tiny_service import KEY, TinyService, running_tiny

from crucible.model.errors import (
    CredentialsRejected,
    InvalidRequest,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    QuotaReached,
    RateLimited,
)
from crucible.model.ids import MachineId
from crucible.ports.provider import Surroundings
from crucible.testing.seller_abilities import BillsContract, ExaminesContract, RemembersContract
from crucible.testing.seller_contract import BOOT, SellerContract, SellerWorld, listed_of, order_of, small_offer


class TinyWorld(SellerWorld):
    def __init__(self, service: TinyService) -> None:
        self.service = service

    def open(self, *, key: str = KEY) -> TinyRegion:
        return TinyRegion("here", "deployment-1", Wire(self.service.url, key, "here"))

    def crash(self, machine: MachineId) -> None:
        self.service.end(machine, "it died")

    def unreachable(self) -> TinyRegion:
        return TinyRegion("here", "deployment-1", Wire("http://127.0.0.1:9", KEY, "here"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[TinyWorld]:
    with running_tiny(tmp_path) as service:
        yield TinyWorld(service)


class TestTiny(SellerContract, BillsContract, RemembersContract, ExaminesContract):
    @pytest.fixture
    def world(self, world: TinyWorld) -> TinyWorld:
        return world


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [
        (401, None, CredentialsRejected),
        (409, "no_capacity", NoCapacity),
        (409, "quota", QuotaReached),
        (422, None, OrderRejected),
        (429, None, RateLimited),
        (500, None, OutcomeUnknown),
    ],
)
def test_their_refusals_say_what_to_do_next(
    world: TinyWorld, status: int, code: str | None, error: type[ProviderError]
) -> None:
    async def scenario() -> None:
        order = order_of(await small_offer(world))
        world.service.refusal = status, {"code": code, "message": "no"}
        with pytest.raises(error, match=f"Tiny here: HTTP {status} no"):
            await world.open().create(order, BOOT)

    asyncio.run(scenario())


def test_a_purchase_whose_answer_was_lost_is_found_again(world: TinyWorld) -> None:
    async def scenario() -> None:
        seller = world.open()
        order = order_of(await small_offer(world), count=2)
        world.service.loses_answer = True
        with pytest.raises(OutcomeUnknown):
            await seller.create(order, BOOT)
        assert [machine.index for machine in await listed_of(seller, order)] == [0, 1]
        world.service.loses_answer = False
        assert len(await seller.create(order, BOOT)) == 2
        assert len(await listed_of(seller, order)) == 2

    asyncio.run(scenario())


def test_machines_of_another_deployment_are_not_ours(world: TinyWorld) -> None:
    async def scenario() -> None:
        other = TinyRegion("here", "deployment-2", Wire(world.service.url, KEY, "here"))
        await other.create(order_of(await small_offer(world)), BOOT)
        assert await world.open().machines() == []

    asyncio.run(scenario())


def test_a_wrong_key_is_told_to_the_operator(world: TinyWorld) -> None:
    health = asyncio.run(world.open(key="wrong").health())
    assert (health["status"], health["problems"][0]["fix"]) == (
        "down",
        "set CRUCIBLE_TINY_KEY to a key that Tiny knows",
    )


def test_a_server_opens_a_seller_for_each_region(tmp_path: Path) -> None:
    def opened(**environ: str) -> list[str]:
        here = Surroundings(
            deployment="d",
            url="http://127.0.0.1:1",
            data_dir=tmp_path,
            agent=tmp_path,
            server_file=tmp_path,
            now=lambda: datetime.now(UTC),
            environ={f"CRUCIBLE_TINY_{name}": value for name, value in environ.items()},
        )
        return [seller.region for seller in open_provider(here).sellers]

    assert opened(URL="http://127.0.0.1:9", KEY=KEY, REGIONS="here,there") == ["here", "there"]
    with pytest.raises(InvalidRequest, match="CRUCIBLE_TINY_URL"):
        opened()
