"""Small worlds for tests of the market: two types, three zones, round prices, chance only where it is asked for."""

from collections.abc import Callable
from typing import Any

import pytest

from crucible.world.facts import Account, Facts, MachineType, Market, PricePoint, Sale, Terms, Zone
from crucible.world.machine import Happening, Launch, Machine, Refused, RefusedBy, What
from crucible.world.world import World

EAST, WEST = "us-east-1", "us-west-2"
NEAR, NEXT, FAR = "us-east-1a", "us-east-1b", "us-west-2a"
BIG, SMALL = "p5.48xlarge", "g6.xlarge"
ME, YOU = "111111111111", "222222222222"
START = 1_000_000.0
FLAT = (PricePoint(0, 360_000),)  # 100 micro-dollars a second

TYPES = (
    MachineType(name=BIG, vcpus=192, memory_mib=2 << 20, gpus=8, gpu="H100", quota="p"),
    MachineType(name=SMALL, vcpus=4, memory_mib=16 << 10, gpus=1, gpu="L4", quota="g"),
)
ZONES = (
    Zone(name=NEAR, id="use1-az1", region=EAST),
    Zone(name=NEXT, id="use1-az2", region=EAST),
    Zone(name=FAR, id="usw2-az1", region=WEST),
)


def a_sale(zone: str = NEAR, type: str = SMALL, **changes: Any) -> Sale:
    return Sale(**{**dict(zone=zone, type=type, on_demand=720_000, spot=FLAT), **changes})


def some_facts(*sales: Sale, **changes: Any) -> Facts:
    fields: dict[str, Any] = dict(
        types=TYPES,
        zones=ZONES,
        sales=sales or (a_sale(),),
        accounts=(Account(id=ME), Account(id=YOU)),
        terms=Terms(),
        boot_s=(30.0, 30.0),
        stop_s=(5.0, 5.0),
    )
    return Facts(**{**fields, **changes})


def a_world(*sales: Sale, seed: int = 0, **changes: Any) -> World:
    return World(some_facts(*sales, **changes), seed=seed)


def an_ask(count: int = 1, **changes: Any) -> Launch:
    fields: dict[str, Any] = dict(
        account=ME, region=EAST, zone=None, type=SMALL, market=Market.ON_DEMAND, least=count, most=count
    )
    return Launch(**{**fields, **changes})


def launched(world: World, now: float = START, **changes: Any) -> Machine:
    """One machine."""
    (machine,) = world.launch(an_ask(**changes), now)
    return machine


def launched_spot(world: World, now: float = START, **changes: Any) -> Machine:
    return launched(world, now, market=Market.SPOT, **changes)


def refused_by(call: Callable[[], object]) -> RefusedBy:
    with pytest.raises(Refused) as caught:
        call()
    return caught.value.by


def whats(happenings: tuple[Happening, ...]) -> list[tuple[float, What]]:
    return [(happening.at, happening.what) for happening in happenings]
