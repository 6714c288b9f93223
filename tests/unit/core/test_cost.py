import math
from datetime import UTC, datetime

import numpy as np
import pytest

from crucible.core.cost import (
    MOST,
    USUAL_GBPS,
    Moves,
    billed_hours,
    expected_billed_hours,
    machine_cost,
    moves,
    staging,
    with_brought,
)
from crucible.core.offers import UNKNOWN, OfferTable, make_table
from crucible.model.catalog import Billing, InstanceType, Lane, Price
from crucible.model.offer import Market
from crucible.model.spec import Brought, Replication
from crucible.model.units import MicroUsd

NAN = math.nan
SECOND, MINUTE, HOUR = (np.array([s]) for s in (1, 60, 3600))
NONE = np.array([0])


def hours(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array(values)


# --- bills ----------------------------------------------------------------------------------------------


def test_a_life_is_billed_in_whole_units() -> None:
    assert list(billed_hours(hours(0.2, 1.0, 1.01, 5.5), HOUR, NONE)) == [1.0, 1.0, 2.0, 6.0]


def test_a_short_life_is_billed_for_the_minimum() -> None:
    assert billed_hours(hours(0.001, 0.5), SECOND, MINUTE) == pytest.approx([1 / 60, 0.5])


def test_what_never_lived_costs_nothing() -> None:
    assert billed_hours(hours(0.0), HOUR, HOUR)[0] == 0.0
    assert expected_billed_hours(hours(0.0), hours(1.0), HOUR, HOUR)[0] == 0.0


@pytest.mark.parametrize("minutes", range(1, 200))
def test_whole_units_are_not_rounded_up_by_the_last_bit(minutes: int) -> None:
    assert billed_hours(hours(minutes / 60), MINUTE, NONE)[0] == pytest.approx(minutes / 60, rel=1e-12)


def test_one_life_is_rounded_as_it_is() -> None:
    assert expected_billed_hours(hours(1.2), hours(1.0), HOUR, NONE)[0] == pytest.approx(2.0)


def test_every_life_adds_about_half_a_unit() -> None:
    assert expected_billed_hours(hours(100.0), hours(11.0), HOUR, NONE)[0] == pytest.approx(105.5, abs=0.2)


def test_lives_of_seconds_are_billed_for_the_minimum_each() -> None:
    billed = expected_billed_hours(hours(0.01), hours(50.0), SECOND, MINUTE)[0]
    assert billed == pytest.approx(50 / 60, rel=0.02)


def test_a_bill_without_end_has_no_end() -> None:
    assert expected_billed_hours(hours(math.inf), hours(math.inf), SECOND, MINUTE)[0] == math.inf


def test_unknown_hours_stay_unknown() -> None:
    assert math.isnan(expected_billed_hours(hours(NAN), hours(NAN), SECOND, MINUTE)[0])


# --- money ----------------------------------------------------------------------------------------------


def test_half_a_micro_dollar_goes_to_the_even_side() -> None:
    price, one = np.array([1, 3, 5]), np.ones(3, dtype=np.int64)
    assert list(machine_cost(price, one, np.full(3, 0.5))) == [0, 2, 2]


def test_a_million_machines_for_ten_years_are_counted_to_the_dollar() -> None:
    cost = machine_cost(np.array([32_772_600]), np.array([10**6]), hours(87_600.0))
    assert abs(int(cost[0]) - 32_772_600 * 10**6 * 87_600) < 10**6


def test_what_never_ends_costs_the_most_there_is_and_can_still_be_added_to() -> None:
    cost = machine_cost(np.array([10**9]), np.array([10**6]), hours(math.inf))
    assert (cost[0], (cost + np.array([10**12]))[0] > 0) == (MOST, True)


def test_what_is_free_is_free_for_ever() -> None:
    assert machine_cost(np.array([0]), np.array([4]), hours(math.inf))[0] == 0


def test_an_unknown_price_or_time_is_an_unknown_cost() -> None:
    cost = machine_cost(np.array([UNKNOWN, 5]), np.array([1, 1]), hours(1.0, NAN))
    assert list(cost) == [UNKNOWN, UNKNOWN]
    assert cost.dtype == np.int64


# --- data -----------------------------------------------------------------------------------------------


def table() -> OfferTable:
    def priced(provider: str, region: str) -> Price:
        return Price(
            provider=provider,
            region=region,
            zone="",
            instance_type="large",
            market=Market.ON_DEMAND,
            price=MicroUsd(1_000_000),
            as_of=datetime(2025, 1, 1, tzinfo=UTC),
            source="test",
        )

    def sold_by(provider: str) -> InstanceType:
        return InstanceType(provider=provider, name="large", gpu=None, gpus=0, gpu_memory_gib=0, cpus=4, memory_gib=16)

    def bills(provider: str, egress: float | None) -> Billing:
        return Billing(
            provider=provider,
            unit_s=1,
            minimum_s=0,
            start_s=0,
            egress_usd_per_gb=egress,
            max_nodes=8,
            source="test",
        )

    return make_table(
        [sold_by("aws"), sold_by("gcp")],
        [
            priced("aws", "east"),
            priced("aws", "west"),
            priced("aws", "north"),
            priced("gcp", "one"),
            priced("gcp", "two"),
        ],
        [bills("aws", 0.09), bills("gcp", None)],
        lanes=[
            Lane(source="aws:east", target="aws:west", usd_per_gb=0.02, gbps=16.0),
            Lane(source="aws:east", target="gcp:one", usd_per_gb=0.05, gbps=4.0),
        ],
    )


def place(offers: OfferTable, provider: str, region: str) -> int:
    return offers.places.find(offers.seller_code(provider), region)


def test_data_stays_in_its_region_for_nothing() -> None:
    offers = table()
    home = place(offers, "aws", "east")
    moved = moves(offers, home, 100)
    assert (moved.usd[home], moved.hours[home]) == (0.0, 0.0)


def test_a_lane_has_its_price_and_its_speed() -> None:
    offers = table()
    moved = moves(offers, place(offers, "aws", "east"), 1000)
    west = place(offers, "aws", "west")
    assert moved.usd[west] == pytest.approx(0.02 * 1073.741824)
    assert moved.hours[west] == pytest.approx(1073.741824 * 8 / 16 / 3600)
    assert moved.usd[place(offers, "gcp", "one")] == pytest.approx(0.05 * 1073.741824)


def test_without_a_lane_another_provider_is_reached_over_the_internet() -> None:
    offers = table()
    moved = moves(offers, place(offers, "aws", "east"), 1000)
    two = place(offers, "gcp", "two")
    assert moved.usd[two] == pytest.approx(0.09 * 1073.741824)
    assert moved.hours[two] == pytest.approx(1073.741824 * 8 / USUAL_GBPS / 3600)


def test_a_price_that_nobody_states_is_not_made_up() -> None:
    offers = table()
    inside = moves(offers, place(offers, "aws", "east"), 10).usd[place(offers, "aws", "north")]
    without_price = moves(offers, place(offers, "gcp", "one"), 10).usd[place(offers, "aws", "east")]
    assert math.isnan(inside)
    assert math.isnan(without_price)


def test_data_from_nowhere_can_be_moved_at_no_known_price() -> None:
    moved = moves(table(), UNKNOWN, 10)
    assert np.isnan(moved.usd).all()
    assert np.isnan(moved.hours).all()


def test_a_copy_made_first_delays_the_start_and_one_made_on_the_way_slows_the_work() -> None:
    offers = table()
    moved = moves(offers, place(offers, "aws", "east"), 1000)
    west = place(offers, "aws", "west")
    first, cached = (staging(moved, policy) for policy in (Replication.PRE_STAGE, Replication.ON_DEMAND_CACHE))
    assert (first.before_h[west], first.during_h[west]) == (moved.hours[west], 0.0)
    assert cached.before_h[west] == 0.0
    assert 0 < cached.during_h[west] < moved.hours[west]
    assert first.usd[west] == cached.usd[west] == moved.usd[west]


def test_inputs_are_moved_while_machines_are_paid_for_and_unknown_homes_cost_nothing() -> None:
    offers = table()
    east, west, north = (place(offers, "aws", region) for region in ("east", "west", "north"))
    nothing = np.zeros(len(offers.places.region))
    plain = staging(Moves(usd=nothing, hours=nothing), Replication.NONE)
    moved = moves(offers, east, 100)
    brought = with_brought(plain, offers, [Brought(home="aws/east", size_gib=100)])
    assert brought.usd[west] == moved.usd[west] > 0 and brought.during_h[west] == moved.hours[west] > 0
    assert brought.usd[east] == brought.during_h[east] == 0 and not brought.before_h.any()
    assert brought.usd[north] == 0, "nobody knows that lane"
    twice = with_brought(plain, offers, [Brought(home="aws/east", size_gib=100)] * 2)
    assert twice.usd[west] == 2 * brought.usd[west]
    unknown = [Brought(home="aws/", size_gib=100), Brought(home="nowhere/x", size_gib=1)]
    assert not with_brought(plain, offers, unknown).usd.any()
