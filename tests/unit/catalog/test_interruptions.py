"""Estimates of interruptions: what follows from which evidence, and how sure it is."""

import math
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.catalog import backtest, interruptions, traces
from crucible.catalog.interruptions import Advice, Advised, Calibration, Persistence
from crucible.catalog.spot_history import History
from crucible.catalog.traces import Trace

from .small_sources import LIFE, write_trace

THEN, NOW = date(2025, 6, 28), date(2026, 8, 22)
CALIBRATION = Calibration(life_h=4.0, gap_h=2.0, spread=0.7)
LASTING = Persistence(correlation=0.25, years=4.0)


def said(*pools: tuple[str, str, int], as_of: date = THEN) -> list[Advice]:
    return [Advice(as_of, *pool) for pool in pools]


POOLS = said(("us", "small", 0), ("eu", "small", 1), ("us", "large", 4), ("eu", "large", 4), ("us", "other", 2))


def advised(now: date = NOW, lasting: Persistence = LASTING) -> Advised:
    return Advised(POOLS, CALIBRATION, lasting, now)


def test_a_trace_is_read_as_losses_and_hours_held(tmp_path: Path) -> None:
    write_trace(tmp_path, "aws-02-15-2023", "us-east-1a_v100_1", LIFE)
    (trace,) = traces.read(tmp_path / "spot_traces")
    assert (trace.provider, trace.zone, trace.machine, trace.began) == (
        "aws",
        "us-east-1a",
        "v100_1",
        date(2023, 2, 15),
    )
    assert trace.held_h == 72 and trace.losses == 24 and trace.availability == 0.75
    assert trace.gap_h == pytest.approx(1.0)


def trace(losses: int, held_h: float, availability: float = 0.75, began: date = THEN, machine: str = "v100_1") -> Trace:
    return Trace(
        provider="aws",
        zone="z",
        machine=machine,
        began=began,
        losses=losses,
        held_h=held_h,
        availability=availability,
    )


def test_the_last_band_is_as_bad_as_the_recorded_pools_and_cpus_do_not_count() -> None:
    calibration = interruptions.calibrate([trace(30, 100), trace(30, 100), trace(1, 9999, machine="intel_64")])
    assert calibration.per_hour(4) == pytest.approx(0.3)
    assert calibration.spread == 0
    assert calibration.availability(0.3) == pytest.approx(0.75)


def test_a_worse_band_is_a_higher_rate_and_fewer_machines() -> None:
    rates = [CALIBRATION.per_hour(band) for band in range(5)]
    assert rates == sorted(rates) and len(set(rates)) == 5
    assert [CALIBRATION.availability(rate) for rate in rates] == sorted(
        map(CALIBRATION.availability, rates), reverse=True
    )


def test_what_was_said_of_a_pool_fades_towards_its_type() -> None:
    exact = math.log(CALIBRATION.per_hour(0))
    fresh, old, ancient = (advised(date(year, 6, 28)).pool("us", "small").middle for year in (2025, 2029, 2080))
    assert fresh == pytest.approx(exact)
    assert exact < old < ancient
    assert ancient == pytest.approx(advised().type("small").middle, rel=1e-3)


def test_a_type_that_was_seen_once_leans_on_all_others_more_than_one_seen_often() -> None:
    others = [("us", "x", 0), ("eu", "x", 0), ("us", "y", 1), ("eu", "y", 4), ("ap", "y", 2)]
    once = Advised(said(*others, ("us", "bad", 4)), CALIBRATION, LASTING, NOW)
    often = Advised(said(*others, *((str(n), "bad", 4) for n in range(9))), CALIBRATION, LASTING, NOW)
    worst = math.log(CALIBRATION.per_hour(4))
    assert once.type("bad").middle < often.type("bad").middle < worst


def test_the_less_is_known_the_wider_is_the_interval() -> None:
    estimates = advised()
    pool, kind, every = estimates.pool("us", "small"), estimates.type("small"), estimates.all()
    assert CALIBRATION.spread < pool.deviation < kind.deviation < every.deviation


def test_hazards_are_given_for_pools_types_and_the_provider() -> None:
    found = interruptions.of_aws(advised(), CALIBRATION, NOW)
    assert [(h.region, h.instance_type) for h in found] == [
        ("", ""),
        ("", "large"),
        ("", "other"),
        ("", "small"),
        ("eu", "large"),
        ("eu", "small"),
        ("us", "large"),
        ("us", "other"),
        ("us", "small"),
    ]
    assert all(h.low < h.per_hour < h.high for h in found)


def test_google_is_told_from_the_machines_that_were_recorded() -> None:
    recorded = Trace(provider="gcp", zone="z", machine="c3-88", began=THEN, losses=0, held_h=100.0, availability=1.0)
    (hazard,) = interruptions.of_google([recorded], CALIBRATION, NOW)
    assert hazard.per_hour == 0.005 and hazard.low < 0.001 and hazard.high > 0.05
    assert hazard.availability is None


@given(bands=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30))
def test_persistence_never_turns_an_estimate_around(bands: list[tuple[int, int]]) -> None:
    before = said(*((str(n), f"t{n % 2}", first) for n, (first, _) in enumerate(bands)), as_of=date(2021, 2, 10))
    after = said(*((str(n), f"t{n % 2}", second) for n, (_, second) in enumerate(bands)))
    lasting = interruptions.persistence(before, after, CALIBRATION)
    assert -1.0001 <= lasting.correlation <= 1.0001
    assert 0 < lasting.after(1.0) <= 1.0001


def test_a_pool_that_leaves_the_list_is_seen_to_leave() -> None:
    hour = 3600
    history = History(
        {
            ("us", "a", "small"): {0: True, 2 * hour: False, 3 * hour: True},
            ("us", "b", "small"): {0: True, 4 * hour: True},
        }
    )
    seen = history.between(0, math.inf)
    assert (seen["us", "a", "small"].left, seen["us", "a", "small"].listed_h, seen["us", "a", "small"].seen_h) == (
        1,
        3,
        4,
    )
    assert (seen["us", "b", "small"].left, seen["us", "b", "small"].listed_h) == (0, 4)


def test_a_time_in_which_nobody_looked_is_not_counted() -> None:
    day = 86_400
    history = History({("us", "a", "small"): {0: True, day: True, 40 * day: True, 41 * day: True}})
    assert history.between(0, math.inf)["us", "a", "small"].seen_h == 48


def test_the_backtest_says_how_far_off_it_was() -> None:
    before = [trace(30, 100, began=date(2023, 2, 15)), trace(60, 100, began=date(2023, 2, 15))]
    after = [trace(90, 100, 0.5, began=date(2023, 8, 3))]
    (line,) = backtest.of_traces([*before, *after])
    assert "2 pools before 2023-08-01 predict 0.424/h for 1 after; they lost 0.900/h" in line
