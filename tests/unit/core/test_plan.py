"""Choosing one way: what was found wrong once stays right."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from crucible.core.proposal import Rule
from crucible.engine.plan_view import plan_view
from crucible.model.catalog import Lane
from crucible.model.offer import Market, Target
from crucible.model.spec import Data, Replication, Strategy
from making import an_offer
from market import NOW, a_job, a_price, a_table, a_type, bought, dollars, propose

SPOT = Market.SPOT
BOX = a_type("box")
OWN = Target("onprem", "dc1", "vm")


def test_the_cheapest_wins_and_the_rest_says_what_it_costs_more() -> None:
    made = propose(a_job(), a_table([BOX, a_type("tub")], [a_price("box", 4), a_price("tub", 6)]))
    assert bought(made.chosen) == [("aws/r1/a/box/on-demand", 1)]
    assert made.chosen is not None and made.chosen.cost == dollars(40) and made.chosen.why == "best balance"
    assert (made.considered, made.feasible) == (2, 2)


def test_spot_is_dearer_than_its_price_and_the_range_is_told() -> None:
    table = a_table([BOX], [a_price("box", 4, SPOT), a_price("box", 10)], hazard=0.1)
    chosen = propose(a_job(allow_spot=True), table).chosen
    assert chosen is not None and chosen.first.market is SPOT
    assert chosen.cost is not None and chosen.cost_p50 is not None and chosen.cost_p90 is not None
    assert dollars(40) < chosen.cost < dollars(50) and chosen.cost_p50 <= chosen.cost_p90
    assert chosen.interruptions == pytest.approx(1, rel=0.2) and chosen.on_demand_cost == dollars(100)


def test_some_machines_on_demand_keep_a_deadline_that_spot_alone_does_not() -> None:
    table = a_table([BOX], [a_price("box", 1, SPOT), a_price("box", 10)], hazard=0.02)
    spec = a_job(64, hours=40.0, allow_spot=True, deadline=NOW + timedelta(hours=42), min_reliability=0.95)
    made = propose(spec, table)
    assert made.chosen is not None and [part.listing.market for part in made.chosen.parts] == [SPOT, Market.ON_DEMAND]
    assert made.chosen.nodes == 8 and made.chosen.reliability >= 0.95
    assert made.feasible == 2, "offers that are part of it are not refused"


def test_mixes_that_were_not_tried_are_told_as_a_distance_to_the_optimum() -> None:
    """All on spot is too risky everywhere, so a mix wins, and not every one is tried."""
    limits = {"allow_spot": True, "deadline": NOW + timedelta(hours=42), "min_reliability": 0.95}

    def bound(zones: int) -> float:
        prices = [
            price
            for i in range(zones)
            for price in (a_price("box", 1, SPOT, zone=f"z{i}"), a_price("box", 10, zone=f"z{i}"))
        ]
        return propose(a_job(64, hours=40.0, **limits), a_table([BOX], prices, hazard=0.02)).bound

    assert bound(3) == 0
    assert 0 < bound(300) < 1


def test_a_mixed_gang_keeps_the_price_per_hour() -> None:
    table = a_table([BOX], [a_price("box", 1, SPOT), a_price("box", 10)], hazard=0.02)
    limits = {"allow_spot": True, "deadline": NOW + timedelta(hours=42), "min_reliability": 0.95}
    free = propose(a_job(64, hours=40.0, **limits), table).chosen
    assert free is not None and len(free.parts) == 2
    least = free.price_per_hour - 1
    assert propose(a_job(64, hours=40.0, max_price_per_hour=least, **limits), table).chosen is None


def test_a_mixed_gang_has_no_machine_at_a_price_that_is_too_old() -> None:
    old = a_price("box", 10, as_of=NOW - timedelta(days=30))
    table = a_table([BOX], [a_price("box", 1, SPOT), old], hazard=0.02)
    limits = {"allow_spot": True, "deadline": NOW + timedelta(hours=42), "min_reliability": 0.95}
    assert propose(a_job(64, hours=40.0, max_price_age=timedelta(days=7), **limits), table).chosen is None
    assert propose(a_job(64, hours=40.0, **limits), table).chosen is not None


def test_of_two_free_machines_the_faster_is_used() -> None:
    """Cost and risk are level: time decides even if it has no weight."""
    offers = [
        an_offer(8, target=OWN, stock="a", instance_type="slow"),
        an_offer(8, target=replace(OWN, provider="local"), stock="b", instance_type="near"),
    ]
    table = a_table([], [], live=offers)
    late = replace(table, sellers=replace(table.sellers, start_s=np.array([0.0, 0.0, 600.0, 1.0])))
    assert late.sellers.name == ("aws", "gcp", "onprem", "local")
    made = propose(a_job(), late, enabled=("onprem", "local"))
    assert made.chosen is not None and made.chosen.first.instance_type == "near"


@pytest.mark.parametrize("strategy", [Strategy.OWN_FIRST, Strategy.RELIABLE, Strategy.NEAR_DATA])
def test_a_wish_may_win_though_something_beats_it(strategy: Strategy) -> None:
    """Once this broke the check of every such plan."""
    types = [BOX, a_type("tub", provider="gcp")]
    prices = [
        a_price("box", 9),
        a_price("tub", 2, SPOT, provider="gcp"),
        a_price("tub", 2.5, provider="gcp"),
    ]
    own = an_offer(8, price=12_000_000, target=OWN, stock="own")
    table = a_table(types, prices, hazard=0.0, live=[own])
    data = Data(dataset="s3://b/d", replication_policy=Replication.PRE_STAGE)
    made = propose(a_job(data=data, allow_spot=True), table, strategy)
    wanted = "aws" if strategy is Strategy.NEAR_DATA else "onprem"
    assert made.chosen is not None and made.chosen.first.target.provider == wanted


def test_spot_that_was_never_taken_away_counts_as_steady() -> None:
    types = [BOX, a_type("tub", provider="gcp")]
    prices = [a_price("box", 5, SPOT), a_price("tub", 9, provider="gcp")]
    made = propose(a_job(allow_spot=True), a_table(types, prices, hazard=0.0), Strategy.RELIABLE)
    assert made.chosen is not None and made.chosen.first.market is SPOT


def test_a_preferred_region_may_win_though_something_beats_it() -> None:
    table = a_table([BOX], [a_price("box", 10), a_price("box", 10.3, region="r2")])
    made = propose(a_job(preferred_regions=("r2",)), table)
    assert made.chosen is not None and made.chosen.first.target.region == "r2"


def test_without_hours_budget_and_deadline_turn_nothing_down_and_it_is_said() -> None:
    table = a_table([BOX], [a_price("box", 400)])
    spec = a_job(hours=None, budget=dollars(1), deadline=NOW + timedelta(minutes=1))
    made = propose(spec, table)
    assert made.chosen is not None and made.chosen.cost is None and made.chosen.price_per_hour == dollars(400)
    assert "budget and deadline cannot be checked before the job runs" in made.notes


def test_a_deadline_that_has_passed_turns_everything_down_even_without_hours() -> None:
    made = propose(a_job(hours=None, deadline=NOW - timedelta(hours=1)), a_table([BOX], [a_price("box", 4)]))
    assert made.chosen is None and [one.rule for one in made.refusals] == [Rule.DEADLINE]


def test_a_weak_wish_for_reliability_is_no_licence_to_be_late() -> None:
    table = a_table([BOX], [a_price("box", 4, SPOT)], hazard=0.3)
    made = propose(a_job(allow_spot=True, min_reliability=0.1, deadline=NOW + timedelta(hours=10.4)), table)
    assert made.chosen is None and [one.rule for one in made.refusals] == [Rule.DEADLINE]


def test_work_that_would_never_end_is_no_choice() -> None:
    table = a_table([BOX], [a_price("box", 4, SPOT)], hazard=3.0)
    spec = a_job(128, hours=50.0, allow_spot=True)
    made = propose(replace(spec, checkpoint=replace(spec.checkpoint, interval=timedelta(days=2))), table)
    assert made.chosen is None
    assert made.refusals[0].reason == "would be taken away again and again, and never finish"


def test_only_enabled_providers_are_bought_from() -> None:
    types = [BOX, a_type("tub", provider="gcp")]
    table = a_table(types, [a_price("box", 9), a_price("tub", 2, provider="gcp")])
    made = propose(a_job(), table, enabled=("aws",))
    assert made.chosen is not None and not made.chosen.is_enabled
    assert made.runnable is not None and made.runnable.first.target.provider == "aws"
    assert propose(a_job(), table, enabled=()).runnable is None


def test_moving_data_costs_money_and_time() -> None:
    lanes = [Lane(source="aws:r1", target="gcp:r1", usd_per_gb=0.1, gbps=8.0)]
    types = [BOX, a_type("tub", provider="gcp")]
    prices = [a_price("box", 9), a_price("tub", 2, provider="gcp")]
    data = Data(dataset="s3://b/d", size_gib=93.13225746, region="r1", replication_policy=Replication.PRE_STAGE)
    made = propose(a_job(data=data), a_table(types, prices, lanes=lanes))
    assert made.chosen is not None and made.chosen.first.target.provider == "gcp"
    assert made.chosen.egress == pytest.approx(dollars(10), rel=1e-6)
    assert made.chosen.staging_h == pytest.approx(100 * 8 / 8 / 3600)


def test_an_empty_catalog_has_a_reason() -> None:
    view = plan_view(propose(a_job(), a_table([], [])), NOW, 0.0)
    assert view["chosen"] is None and "nothing is for sale" in view["reason"]


def test_zero_price_for_bought_machines_stays_finite() -> None:
    made = propose(a_job(budget=dollars(0)), a_table([BOX], [a_price("box", 0)]))
    assert made.chosen is not None and made.chosen.cost == 0 and made.chosen.reliability == 1.0
