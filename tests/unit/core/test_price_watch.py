"""A price that somebody waits for."""

from dataclasses import replace
from datetime import UTC, datetime

from crucible.core.offers import OfferTable, make_table
from crucible.core.price_watch import best, per_gpu, watched
from crucible.model.alert import AlertRule, PriceSeen, PriceWish
from crucible.model.catalog import InstanceType, Price
from crucible.model.ids import AlertChannelId, AlertRuleId, UserId
from crucible.model.offer import Market
from crucible.model.units import MicroUsd, micro_usd

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
WISH = PriceWish(gpu="H100")


def rule(seen: tuple[float, float] | None = None, **wish: object) -> AlertRule:
    return AlertRule(
        id=AlertRuleId("r"),
        name="cheap",
        user_id=UserId("ann"),
        price=replace(WISH, **wish),  # type: ignore[arg-type]
        price_seen=None if seen is None else PriceSeen(micro_usd(seen[0]), micro_usd(seen[1])),
        channels=(AlertChannelId("c"),),
        created_at=NOW,
    )


def table(**prices: float) -> OfferTable:
    """`spot=2.0`: of one GPU; machines have eight."""
    kind = InstanceType(
        provider="aws", name="p5.48xlarge", gpu="H100", gpus=8, gpu_memory_gib=80, cpus=192, memory_gib=2048
    )
    listed = [
        Price(
            provider="aws",
            region="us-east-1",
            zone="",
            instance_type=kind.name,
            market=Market[market.upper()],
            price=micro_usd(price * 8),
            as_of=NOW,
            source="test",
        )
        for market, price in prices.items()
    ]
    return make_table([kind], listed)


def price_of(**prices: float) -> float:
    listing = best(table(**prices), WISH)
    assert listing is not None
    return per_gpu(listing) / 1e6


def told(one: AlertRule, price: float) -> tuple[PriceSeen, bool]:
    listing = best(table(spot=price), WISH)
    assert listing is not None
    seen, notice = watched(one, listing, NOW)
    return seen, notice is not None


def test_the_cheapest_gpu_counts_in_the_market_that_is_asked_for() -> None:
    assert price_of(on_demand=4.0, spot=2.5) == 2.5
    found = best(table(on_demand=4.0, spot=2.5), replace(WISH, market=Market.ON_DEMAND))
    assert found is not None and per_gpu(found) == 4_000_000
    assert best(table(spot=1.0), replace(WISH, provider="gcp")) is None


def test_a_price_below_the_line_is_told_when_it_crosses_it() -> None:
    line = {"below": micro_usd(2)}
    assert told(rule(**line), 1.9)[1]
    assert told(rule((2.5, 2.5), **line), 1.9)[1]
    assert not told(rule((1.95, 1.95), **line), 1.9)[1]
    assert not told(rule((2.5, 2.5), **line), 2.0)[1]


def test_a_fall_is_measured_from_the_highest_price_since_it_was_told() -> None:
    assert not told(rule(drop=0.2), 2.0)[1]
    seen, is_told = told(rule((2.0, 2.0), drop=0.2), 2.4)
    assert (seen, is_told) == (PriceSeen(MicroUsd(2_400_000), MicroUsd(2_400_000)), False)
    seen, is_told = told(rule((2.4, 2.4), drop=0.2), 2.0)
    assert seen.peak == 2_400_000 and not is_told
    seen, is_told = told(rule((2.0, 2.4), drop=0.2), 1.9)
    assert is_told and seen == PriceSeen(MicroUsd(1_900_000), MicroUsd(1_900_000))
    assert not told(rule((1.9, 1.9), drop=0.2), 1.85)[1]


def test_what_is_told_names_the_price_and_the_place() -> None:
    listing = best(table(spot=1.9), WISH)
    assert listing is not None
    notice = watched(rule((2.5, 2.5), below=micro_usd(2)), listing, NOW)[1]
    assert notice is not None and notice.title == "H100 at $1.9 an hour: aws/us-east-1 p5.48xlarge"
    assert "after $2.5" in notice.text and notice.details["rule"] == "r" and notice.user_id == "ann"
