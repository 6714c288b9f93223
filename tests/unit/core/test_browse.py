"""Looking around in what is on sale."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.core.browse import (
    Grouping,
    OfferQuery,
    Sort,
    after,
    billed_s,
    grouped,
    matching,
    ranked,
    side_by_side,
)
from crucible.core.offers import OfferTable, make_table, with_live
from crucible.model.catalog import Billing, InstanceType, Price
from crucible.model.ids import OfferId
from crucible.model.offer import Market, Offer, Target
from crucible.model.units import MicroUsd

AT = datetime(2026, 11, 1, tzinfo=UTC)


def a_type(provider: str, name: str, gpu: str | None, gpus: int, memory: float = 80) -> InstanceType:
    return InstanceType(provider=provider, name=name, gpu=gpu, gpus=gpus, gpu_memory_gib=memory, cpus=8, memory_gib=64)


def a_price(
    provider: str, name: str, dollars: float | None, market: Market = Market.ON_DEMAND, region: str = "r1"
) -> Price:
    price = None if dollars is None else MicroUsd(round(dollars * 1e6))
    return Price(
        provider=provider, region=region, zone="", instance_type=name, market=market, price=price, as_of=AT, source="s"
    )


TABLE = make_table(
    [
        a_type("aws", "p4d", "A100-40GB", 8, 40),
        a_type("aws", "p5", "H100-SXM", 8),
        a_type("aws", "m5", None, 0, 0),
        a_type("lambda", "h100x1", "H100-PCIe", 1),
        a_type("lambda", "h100x8", "H100-SXM", 8),
        a_type("azure", "nd96", "H100-SXM", 8),
    ],
    [
        a_price("aws", "p4d", 32),
        a_price("aws", "p5", 55),
        a_price("aws", "p5", 20, Market.SPOT),
        a_price("aws", "p5", 60, region="r2"),
        a_price("aws", "m5", 0.2),
        a_price("lambda", "h100x1", 2.5),
        a_price("lambda", "h100x8", 24),
        a_price("azure", "nd96", None),
    ],
    billing=[
        Billing(
            provider="lambda", unit_s=60, minimum_s=0, start_s=120, egress_usd_per_gb=0, max_nodes=1, source="docs"
        ),
        Billing(provider="aws", unit_s=1, minimum_s=60, start_s=90, egress_usd_per_gb=0.09, max_nodes=8, source="docs"),
    ],
)


def ids(table: OfferTable, rows: object) -> list[str]:
    return [table.id_of(int(row)) for row in rows]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        (OfferQuery(), 8),
        (OfferQuery(gpu="h100"), 6),
        (OfferQuery(gpu="H100-SXM"), 5),
        (OfferQuery(gpu="H100", gpus=1), 1),
        (OfferQuery(gpu="H1"), 0),
        (OfferQuery(provider="aws", region="r2"), 1),
        (OfferQuery(provider="nobody"), 0),
        (OfferQuery(market=Market.SPOT), 1),
        (OfferQuery(max_price=MicroUsd(24_000_000)), 4),
        (OfferQuery(gpu_memory_gib=41), 6),
        (OfferQuery(instance_type="nd96"), 1),
        (OfferQuery(instance_type="nd96", has_price=True), 0),
    ],
)
def test_offers_are_found_by_what_was_asked(query: OfferQuery, count: int) -> None:
    assert len(matching(TABLE, query)) == count


def test_the_cheapest_gpu_comes_first_and_the_unknown_last() -> None:
    rows = matching(TABLE, OfferQuery(gpu="H100"))
    by_gpu, by_machine, by_name = (ids(TABLE, ranked(TABLE, rows, sort)) for sort in Sort)
    assert [one.split("/")[3] for one in by_gpu] == ["p5", "h100x1", "h100x8", "p5", "p5", "nd96"]
    assert [one.split("/")[3] for one in by_machine] == ["h100x1", "p5", "h100x8", "p5", "p5", "nd96"]
    assert by_name == sorted(by_name)


def test_groups_tell_their_best_and_how_many_there_are() -> None:
    rows = ranked(TABLE, matching(TABLE, OfferQuery(gpu="H100")), Sort.GPU_PRICE)
    groups = grouped(TABLE, rows, Grouping.PROVIDER, 10)
    assert [(group.name, group.offers, group.priced) for group in groups] == [
        ("aws", 3, 3),
        ("lambda", 2, 2),
        ("azure", 1, 0),
    ]
    assert groups[0].best.market is Market.SPOT
    regions = grouped(TABLE, rows, Grouping.REGION, 10)
    assert [group.name for group in regions] == ["aws/r1", "lambda/r1", "aws/r2", "azure/r1"]
    assert [group.name for group in grouped(TABLE, rows, Grouping.GPU, 10)] == ["H100-SXM", "H100-PCIe"]
    assert grouped(TABLE, rows[:0], Grouping.GPU, 10) == []
    assert grouped(TABLE, rows, Grouping.REGION, 2) == regions[:2]


def test_every_page_goes_on_where_the_last_one_ended() -> None:
    rows = matching(TABLE, OfferQuery())
    found: list[str] = []
    while len(rest := after(TABLE, rows, found[-1] if found else "")):
        found += ids(TABLE, rest[:3])
    assert found == ids(TABLE, rows)
    assert ids(TABLE, after(TABLE, rows, "aws/r1/-/p5/gone"))[0] == "aws/r1/-/p5/on-demand"


def test_providers_stand_side_by_side() -> None:
    sides = side_by_side(TABLE, "H100", 8, 1.5, ["lambda"])
    assert [side.provider for side in sides] == ["aws", "lambda", "azure"]
    aws, lam, azure = sides
    assert aws.spot is not None and aws.on_demand is not None and lam.on_demand is not None
    assert (aws.spot.price_per_hour, aws.spot.total, aws.on_demand.total) == (20_000_000, 30_000_000, 82_500_000)
    assert (lam.on_demand.listing.instance_type, lam.on_demand.count, lam.is_enabled) == ("h100x8", 1, True)
    assert (azure.on_demand, azure.offers, azure.priced) == (None, 1, 0)


def test_more_gpus_than_a_machine_has_are_several_machines() -> None:
    lam = next(side for side in side_by_side(TABLE, "H100", 16, None, []) if side.provider == "lambda")
    assert lam.on_demand is not None
    assert (lam.on_demand.count, lam.on_demand.price_per_hour, lam.on_demand.total) == (2, 48_000_000, None)


def test_hours_are_billed_as_the_provider_rounds_them() -> None:
    (lam,) = (side for side in side_by_side(TABLE, "H100", 8, 0.01, []) if side.provider == "lambda")
    assert lam.on_demand is not None
    assert (lam.on_demand.billed_s, lam.on_demand.total) == (60, 400_000)


def test_nobody_sells_what_does_not_exist() -> None:
    assert side_by_side(TABLE, "Z9000", 8, 1, []) == []
    assert side_by_side(make_table((), ()), "H100", 8, 1, []) == []


def test_what_a_seller_lists_is_found_as_well() -> None:
    slot = Offer(
        id=OfferId("local/here/slots-8"),
        target=Target("local", "here", "local"),
        instance_type="slots-8",
        gpu="slot",
        gpus=8,
        gpu_memory_gib=80,
        cpus=8,
        memory_gib=64,
        price_per_hour=MicroUsd(0),
        stock="local",
        free_gpus=4,
    )
    table = with_live(TABLE, [slot], AT)
    assert ids(table, ranked(table, matching(table, OfferQuery(gpus=8)), Sort.GPU_PRICE))[0] == slot.id
    assert slot.id not in ids(table, matching(table, OfferQuery(gpu="A100")))
    assert len(after(table, matching(table, OfferQuery()), "zzz")) == 1


@given(st.floats(0, 1e6), st.integers(1, 3600), st.integers(0, 3600))
def test_a_bill_is_whole_units_and_never_less_than_was_used(seconds: float, unit: int, minimum: int) -> None:
    billed = billed_s(seconds, unit, minimum)
    assert billed >= seconds - 1e-6 and billed >= minimum
    assert billed == minimum or billed % unit == 0
    assert billed - seconds < unit + 1e-6 or billed == minimum
