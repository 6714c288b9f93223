"""The planner's egress and the ledger's charge are one function: the same bytes over the same lane cost the same."""

import math
from datetime import UTC, datetime

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core import transfers
from crucible.core.cost import moves, place_of, transfer_cost
from crucible.core.offers import OfferTable, make_table
from crucible.model.catalog import Billing, InstanceType, Lane, Price
from crucible.model.ids import JobId
from crucible.model.ledger import ChargeKind
from crucible.model.offer import Market
from crucible.model.units import GIB, MICRO, MicroUsd

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACES = ("aws/us-east-1", "aws/eu-west-1", "gcp/us-central1", "local/local")
RATES = st.one_of(st.none(), st.floats(0, 0.25, allow_nan=False), st.sampled_from([0.0, 0.02, 0.09, 0.0000005]))
UNHURRIED = settings(deadline=None)  # machines may be busy


@st.composite
def markets(draw: st.DrawFn) -> OfferTable:
    lanes = []
    for source in PLACES:
        for target in PLACES:
            rate = draw(RATES)
            if source != target and rate is not None:
                lanes.append(a_lane(source, target, rate))
    billing = [
        Billing(
            provider=provider,
            unit_s=1,
            minimum_s=0,
            start_s=1.0,
            egress_usd_per_gb=draw(RATES),
            max_nodes=8,
            source="test",
        )
        for provider in ("aws", "gcp", "local")
    ]
    return table_of(lanes, billing)


def table_of(lanes: list[Lane], billing: list[Billing]) -> OfferTable:
    types = [a_type(provider) for provider in ("aws", "gcp", "local")]
    prices = [a_price(place) for place in PLACES]
    return make_table(types, prices, billing=billing, lanes=lanes)


def a_lane(source: str, target: str, rate: float) -> Lane:
    return Lane(source=source.replace("/", ":"), target=target.replace("/", ":"), usd_per_gb=rate, gbps=5.0)


def a_type(provider: str) -> InstanceType:
    return InstanceType(
        provider=provider,
        name="m",
        gpu=None,
        gpus=0,
        gpu_memory_gib=0.0,
        cpus=4.0,
        memory_gib=16.0,
        disk_gib=None,
        network_gbps=None,
    )


def a_price(place: str) -> Price:
    provider, _, region = place.partition("/")
    return Price(
        provider=provider,
        region=region,
        zone="",
        instance_type="m",
        market=Market.ON_DEMAND,
        price=MicroUsd(1),
        as_of=NOW,
        source="test",
    )


@UNHURRIED
@given(markets(), st.sampled_from(PLACES), st.sampled_from(PLACES), st.integers(0, 1 << 44))
def test_the_charge_is_what_was_planned_for_the_same_bytes(
    market: OfferTable, home: str, target: str, size: int
) -> None:
    planned = moves(market, place_of(market, home), size / GIB).usd[place_of(market, target)]
    charged = transfer_cost(market, home, target, size)
    if charged is None:
        assert math.isnan(planned)
    else:
        assert int(np.rint(planned * MICRO)) == charged >= 0


@UNHURRIED
@given(markets(), st.sampled_from(PLACES), st.sampled_from(PLACES), st.integers(0, 1 << 44))
def test_what_is_posted_adds_up_to_nothing_and_is_the_charge(
    market: OfferTable, home: str, target: str, size: int
) -> None:
    moved = transfers.Transfer(name="t1", what="imagenet", source=home, target=target, size_bytes=size)
    postings = transfers.charge(market, moved, JobId("j1"), NOW)
    cost = transfer_cost(market, home, target, size)
    assert len(postings) == bool(cost)
    for posting in postings:
        assert posting.kind is ChargeKind.TRANSFER and posting.id == "transfer/t1"
        assert sum(entry.amount for entry in posting.entries) == 0
        assert {entry.account: entry.amount for entry in posting.entries}["job:j1"] == cost


@UNHURRIED
@given(markets(), st.sampled_from(PLACES))
def test_staying_where_one_is_costs_nothing(market: OfferTable, home: str) -> None:
    assert transfer_cost(market, home, home, 1 << 40) == 0
