"""What must hold of cost and risk for every input, one row or many."""

from dataclasses import fields, replace
from random import Random

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core.cost import billed_hours, expected_billed_hours, machine_cost
from crucible.core.risk import (
    Course,
    Exposure,
    billed_quantile,
    billed_within,
    course,
    finish_by,
    wall_quantile,
)

Floats = npt.NDArray[np.float64]
ASKED = st.one_of(st.just(float("nan")), st.floats(0.01, 24))
# Hours of work, hazard of the gang, checkpoint, restart, share of the restart that is paid for, interval.
ROW = st.tuples(
    st.floats(0.01, 500),
    st.one_of(st.just(0.0), st.floats(1e-6, 2)),
    st.floats(1e-4, 0.25),
    st.floats(0, 1),
    st.floats(0, 1),
    ASKED,
)
ROWS = st.lists(ROW, min_size=1, max_size=12)
FEW = settings(max_examples=80, deadline=None)


def exposed(rows: list[tuple[float, ...]]) -> Exposure:
    work, hazard, checkpoint, restart, share, interval = (np.array(column) for column in zip(*rows, strict=True))
    return Exposure(
        work_h=work,
        hazard=hazard,
        checkpoint_h=checkpoint,
        restart_h=restart,
        billed_restart_h=restart * share,
        interval_h=interval,
    )


def taken(columns: Exposure, rows: npt.NDArray[np.intp]) -> Exposure:
    return Exposure(**{field.name: getattr(columns, field.name)[rows] for field in fields(Exposure)})


def repeated(row: tuple[float, ...], count: int) -> Exposure:
    return exposed([row] * count)


def never_falls(values: Floats, slack: float = 0.0) -> bool:
    return bool(np.all(values[1:] >= values[:-1] * (1 - 1e-12) - slack))


def answers(exposure: Exposure) -> tuple[Course, Floats, Floats]:
    expected = course(exposure)
    limit = exposure.work_h * 1.3 + 0.5
    return expected, finish_by(exposure, expected, limit), billed_within(exposure, expected, limit)


@FEW
@given(ROWS)
def test_known_inputs_have_known_answers(rows: list[tuple[float, ...]]) -> None:
    exposure = exposed(rows)
    expected, in_time, in_budget = answers(exposure)
    for column in (expected.interval_h, expected.wall_h, expected.billed_h, expected.interruptions):
        assert not np.isnan(column).any()
    for odds in (in_time, in_budget):
        assert ((odds >= 0) & (odds <= 1)).all()
    assert (expected.billed_h >= exposure.work_h * (1 - 1e-9)).all()
    assert (expected.wall_h >= expected.billed_h).all()


@FEW
@given(ROWS, st.randoms(use_true_random=False))
def test_rows_do_not_know_each_other(rows: list[tuple[float, ...]], random: Random) -> None:
    order = np.arange(len(rows))
    random.shuffle(order)
    exposure = exposed(rows)
    (one, in_time, in_budget), (other, in_time_2, in_budget_2) = answers(exposure), answers(taken(exposure, order))
    assert np.array_equal(one.wall_h[order], other.wall_h)
    assert np.array_equal(one.interruptions[order], other.interruptions)
    assert np.allclose(in_time[order], in_time_2, rtol=0, atol=1e-12)
    assert np.allclose(in_budget[order], in_budget_2, rtol=0, atol=1e-12)


@FEW
@given(ROW, st.lists(st.floats(1e-5, 2), min_size=2, max_size=20))
def test_more_hazard_costs_more(row: tuple[float, ...], hazards: list[float]) -> None:
    exposure = replace(repeated(row, len(hazards)), hazard=np.sort(hazards))
    expected = course(exposure)
    assert never_falls(expected.wall_h)
    assert never_falls(expected.billed_h)


@FEW
@given(ROW, st.lists(st.floats(0.01, 500), min_size=2, max_size=20))
def test_more_work_costs_more(row: tuple[float, ...], hours: list[float]) -> None:
    expected = course(replace(repeated(row, len(hours)), work_h=np.sort(hours)))
    assert never_falls(expected.wall_h)
    assert never_falls(expected.billed_h)


@FEW
@given(ROW, st.floats(0.1, 24), st.lists(st.floats(1e-4, 2), min_size=2, max_size=20))
def test_more_hazard_is_less_reliable(row: tuple[float, ...], interval_h: float, hazards: list[float]) -> None:
    """Within what the odds are known to; with one interval, as another may suit this limit better."""
    exposure = repeated((*row[:5], interval_h), len(hazards))
    exposure = replace(exposure, hazard=np.sort(hazards))
    limit = exposure.work_h * 1.5 + 1
    assert never_falls(-finish_by(exposure, course(exposure), limit), slack=0.02)


@FEW
@given(ROW, st.lists(st.floats(0, 2000), min_size=2, max_size=30))
def test_more_time_is_never_less_likely_to_be_enough(row: tuple[float, ...], limits: list[float]) -> None:
    exposure = repeated(row, len(limits))
    expected = course(exposure)
    for odds in (finish_by, billed_within):
        assert never_falls(odds(exposure, expected, np.sort(limits)), slack=1e-12)


@FEW
@given(ROWS)
def test_quantiles_stand_in_order_around_the_median(rows: list[tuple[float, ...]]) -> None:
    exposure = exposed(rows)
    expected = course(exposure)
    for quantile in (wall_quantile, billed_quantile):
        low, middle, high = (quantile(exposure, expected, q) for q in (0.1, 0.5, 0.9))
        assert (exposure.work_h * (1 - 1e-9) <= low).all()
        assert (low <= middle).all()
        assert (middle <= high).all()


# --- bills ----------------------------------------------------------------------------------------------

UNITS = st.sampled_from([(1, 0), (1, 60), (60, 0), (60, 600), (3600, 0), (3600, 3600)])


@FEW
@given(st.lists(st.floats(0, 1e5), min_size=1, max_size=20), UNITS)
def test_a_bill_covers_the_life_and_at_most_a_unit_more(hours: list[float], rule: tuple[int, int]) -> None:
    lived, unit, minimum = np.array(hours), np.array([rule[0]]), np.array([rule[1]])
    billed = billed_hours(lived, unit, minimum)
    assert (billed >= lived * (1 - 1e-9)).all()
    assert (billed <= np.maximum(lived, minimum / 3600) + unit / 3600).all()


@FEW
@given(st.floats(0.01, 1e4), st.lists(st.floats(1, 200), min_size=2, max_size=20), UNITS)
def test_every_life_adds_a_unit_and_a_minimum_at_most(hours: float, lives: list[float], rule: tuple[int, int]) -> None:
    count = np.sort(lives)
    total, unit, minimum = np.full(len(count), hours), np.array([rule[0]]), np.array([rule[1]])
    billed = expected_billed_hours(total, count, unit, minimum)
    assert (billed >= total * (1 - 1e-9)).all()
    assert (billed <= total + count * (unit + minimum) / 3600 + 1e-9).all()


@FEW
@given(st.lists(st.integers(0, 500_000_000), min_size=2, max_size=20), st.integers(1, 1_000_000), st.floats(0, 87_600))
def test_a_higher_price_costs_more(prices: list[int], machines: int, hours: float) -> None:
    price = np.sort(np.array(prices, dtype=np.int64))
    cost = machine_cost(price, np.full(len(price), machines), np.full(len(price), hours))
    assert (np.diff(cost) >= 0).all()
    assert (cost >= 0).all()
