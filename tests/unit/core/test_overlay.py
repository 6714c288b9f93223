"""Newer prices over a catalog: the same as a table made of both at once."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.offers import Listing, OfferTable, make_table, with_live
from crucible.core.overlay import with_prices
from crucible.model.catalog import Hazard, InstanceType, Price
from crucible.model.errors import InvariantBroken
from crucible.model.ids import OfferId
from crucible.model.offer import Market, Offer, Target
from crucible.model.units import MicroUsd
from crucible.ports.prices import key_of

OLD, NEW = (datetime(2026, month, 1, tzinfo=UTC) for month in (10, 11))
TYPES = [
    InstanceType(provider=provider, name=name, gpu="H100", gpus=gpus, gpu_memory_gib=80, cpus=8, memory_gib=64)
    for provider in ("aws", "gcp")
    for name, gpus in (("big", 8), ("one", 1))
]
HAZARD = Hazard(
    provider="aws", region="", instance_type="", per_hour=0.02, low=0, high=1, availability=0.9, method="", as_of=OLD
)


def a_price(**fields: Any) -> Price:
    price = Price(
        provider="aws",
        region="r1",
        zone="",
        instance_type="big",
        market=Market.SPOT,
        price=MicroUsd(5_000_000),
        as_of=OLD,
        source="catalog",
    )
    return replace(price, **fields)


def listings(table: OfferTable) -> list[Listing]:
    return [table.listing(row) for row in range(len(table))]


def prices(source: str, at: datetime) -> st.SearchStrategy[list[Price]]:
    return st.lists(
        st.builds(
            a_price,
            provider=st.sampled_from(["aws", "gcp"]),
            region=st.sampled_from(["r1", "r2", "r3"]),
            zone=st.sampled_from(["", "a", "b"]),
            instance_type=st.sampled_from(["big", "one", "unheard-of"]),
            market=st.sampled_from(Market),
            price=st.none() | st.integers(0, 10**8),
            as_of=st.just(at),
            source=st.just(source),
        ),
        max_size=20,
        unique_by=key_of,
    )


@given(prices("catalog", OLD), prices("refresh", NEW))
def test_an_overlay_is_the_same_as_a_table_of_both(old: list[Price], new: list[Price]) -> None:
    base = make_table(TYPES, old)
    before = listings(base)
    both = {key_of(price): price for price in [*old, *new]}
    # Risk is not what an overlay is about: without estimates it is unknown in both.
    assert listings(with_prices(base, new)) == listings(make_table(TYPES, both.values()))
    assert listings(base) == before


def test_a_price_replaces_the_row_of_its_key() -> None:
    base = make_table(TYPES, [a_price(), a_price(zone="a")], hazards=[HAZARD])
    table = with_prices(base, [a_price(price=MicroUsd(7), as_of=NEW, source="refresh")])
    first, second = listings(table)
    assert (first.price, first.as_of, first.source) == (7, NEW, "refresh")
    assert (second.price, second.as_of, second.source) == (5_000_000, OLD, "catalog")
    assert (first.hazard_per_hour, first.availability) == (0.02, 0.9)


def test_a_new_zone_is_as_risky_as_its_region() -> None:
    base = make_table(TYPES, [a_price()], hazards=[HAZARD])
    spot, on_demand, elsewhere = (
        a_price(zone="z"),
        a_price(zone="z", market=Market.ON_DEMAND),
        a_price(region="r9"),
    )
    found = {
        (one.target.region, one.zone, one.market): one
        for one in listings(with_prices(base, [spot, on_demand, elsewhere]))
    }
    assert found["r1", "z", Market.SPOT].hazard_per_hour == 0.02
    assert found["r1", "z", Market.ON_DEMAND].hazard_per_hour == 0
    assert found["r9", "", Market.SPOT].hazard_per_hour is None


def test_a_price_for_every_zone_replaces_all_of_the_region() -> None:
    base = make_table(TYPES, [a_price(zone=zone) for zone in ("a", "b")] + [a_price(region="r2", zone="c")])
    told = [a_price(zone="b", price=MicroUsd(9)), a_price(zone="*", price=MicroUsd(7)), a_price(region="r3", zone="*")]
    found = {(one.target.region, one.zone): one.price for one in listings(with_prices(base, told))}
    assert found == {
        ("r1", "a"): 7,
        ("r1", "b"): 9,
        ("r2", "c"): 5_000_000,
        ("r3", ""): 5_000_000,
    }


def test_nothing_new_is_the_same_table() -> None:
    base = make_table(TYPES, [a_price()])
    assert with_prices(base, []) is base
    assert with_prices(base, [a_price(instance_type="unheard-of")]) is base


def test_an_empty_catalog_takes_no_price_of_a_type_it_does_not_know() -> None:
    assert len(with_prices(make_table([], []), [a_price()])) == 0
    assert len(with_prices(make_table(TYPES, []), [a_price(), a_price(provider="gcp")])) == 2


def test_columns_stay_of_one_length_and_kind() -> None:
    base = make_table(TYPES, [a_price()])
    table = with_prices(base, [a_price(zone=zone) for zone in ("", "a", "b")])
    for name in ("shape", "place", "zone", "market", "price", "hazard", "availability", "as_of", "source", "stock"):
        column = getattr(table, name)
        assert len(column) == 3
        assert column.dtype == getattr(base, name).dtype, name
    assert np.array_equal(table.stock, [-1, -1, -1])


def test_prices_come_before_what_sellers_list() -> None:
    offer = Offer(
        id=OfferId("local/here"),
        target=Target("local", "here", "local"),
        instance_type="this",
        gpu=None,
        gpus=0,
        gpu_memory_gib=0,
        cpus=1,
        memory_gib=1,
        price_per_hour=MicroUsd(0),
    )
    table = with_live(make_table(TYPES, [a_price()]), [offer], NEW)
    with pytest.raises(InvariantBroken, match="with_live"):
        with_prices(table, [a_price()])
