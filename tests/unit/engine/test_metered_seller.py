"""Sellers that are counted are as able as they are, and fail as they fail."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from crucible.engine.metered_seller import metered
from crucible.exporting.prometheus import PrometheusMeter
from crucible.model.errors import NoCapacity
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Leftover, Machine, Order
from crucible.model.offer import Offer
from crucible.ports.seller import Examines, Prepares, Quotas, Reaps, Remembers, Seller
from crucible.system import SystemClock
from making import FACTS, an_order

BOOT = Boot((), "token")


class Plain:
    name, region, facts = "fake", "nowhere-1", FACTS

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    async def offers(self) -> Sequence[Offer]:
        return ()

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        if self.error is not None:
            raise self.error
        return ()

    async def delete(self, machine: MachineId) -> None:
        await asyncio.sleep(3600)

    async def machines(self) -> Sequence[Machine]:
        return ()


class Able(Plain):
    async def prepare(self, order: Order) -> dict[str, Any]:
        return {"for": order.id}

    async def leftovers(self) -> Sequence[Leftover]:
        return ()

    async def remove(self, leftover: Leftover) -> None:
        return None


def made(seller: Plain) -> tuple[Seller, PrometheusMeter]:
    meter = PrometheusMeter()
    return metered(seller, meter, SystemClock()), meter


def count(meter: PrometheusMeter, call: str, outcome: str) -> float:
    start = f'crucible_provider_calls_total{{call="{call}",outcome="{outcome}",provider="fake",region="nowhere-1"}} '
    found = [line for line in meter.text()[0].decode().splitlines() if line.startswith(start)]
    return float(found[0].removeprefix(start)) if found else 0.0


def test_it_has_the_abilities_of_the_seller_inside_and_no_others() -> None:
    plain, able = made(Plain())[0], made(Able())[0]
    assert not any(isinstance(plain, ability) for ability in (Prepares, Reaps, Remembers, Quotas, Examines))
    assert isinstance(able, Prepares) and isinstance(able, Reaps)
    assert not any(isinstance(able, ability) for ability in (Remembers, Quotas, Examines))
    assert (able.name, able.region, able.facts) == ("fake", "nowhere-1", FACTS)


async def asked(seller: Seller) -> None:
    assert isinstance(seller, Prepares)
    assert await seller.prepare(an_order()) == {"for": "o"}
    await seller.create(an_order(), BOOT)


def test_calls_are_counted_and_answered() -> None:
    seller, meter = made(Able())
    asyncio.run(asked(seller))
    assert count(meter, "prepare", "ok") == count(meter, "create", "ok") == 1


@pytest.mark.parametrize(
    ("error", "outcome"), [(NoCapacity("full"), "no_capacity"), (OSError(), "os_error"), (ValueError(), "broken")]
)
def test_a_failure_is_counted_by_its_code_and_passed_on(error: Exception, outcome: str) -> None:
    seller, meter = made(Plain(error))
    with pytest.raises(type(error)):
        asyncio.run(seller.create(an_order(), BOOT))  # type: ignore[arg-type]
    assert count(meter, "create", outcome) == 1 and count(meter, "create", "ok") == 0


def test_who_waits_no_longer_counts_as_a_timeout() -> None:
    async def impatient(seller: Seller) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(seller.delete(MachineId("m")), 0.01)

    seller, meter = made(Plain())
    asyncio.run(impatient(seller))
    assert count(meter, "delete", "timeout") == 1
