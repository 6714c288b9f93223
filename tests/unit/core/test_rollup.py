"""Adding up samples: parts in any order come to the same, and a chart has no more points than it was asked for."""

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crucible.core.rollup import Sample, bounded, bucketed, coarser, finest, joined, put, series_of, some, within
from crucible.model.metrics import MINUTE_MS, QUARTER_MS, Bucket

NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=32)
SAMPLES = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.integers(0, 10 * QUARTER_MS),
        st.none() | st.integers(0, 10**6),
        st.dictionaries(st.sampled_from(["loss", "lr"]), NUMBERS, min_size=1),
    ),
    max_size=60,
)


def same(one: Bucket, other: Bucket) -> bool:
    exact = ("start_ms", "count", "invalid", "low", "high", "last_ms")
    return all(getattr(one, name) == getattr(other, name) for name in exact) and math.isclose(
        one.total, other.total, rel_tol=1e-6, abs_tol=1e-3 * max(1.0, abs(one.low), abs(one.high)) if one.count else 0
    )


def values(samples: Sequence[Sample], name: str) -> list[float]:
    return [value for _, _, _, told in samples for of, value in told.items() if of == name]


@given(SAMPLES, st.sampled_from([0, MINUTE_MS, QUARTER_MS]))
def test_adding_up_keeps_count_lowest_highest_and_mean(samples: list[Sample], resolution: int) -> None:
    for name, found in series_of(bucketed(samples, resolution), None).items():
        told = values(samples, name)
        finite = [value for value in told if math.isfinite(value)]
        assert sum(one.count for one in found) == len(finite)
        assert sum(one.invalid for one in found) == len(told) - len(finite)
        if finite:
            counted = [one for one in found if one.count]
            assert min(one.low for one in counted) == min(finite) and max(one.high for one in counted) == max(finite)
            total = sum(one.total for one in found)
            assert math.isclose(total, math.fsum(finite), rel_tol=1e-6, abs_tol=1e-6 * max(map(abs, finite)) * 60)


@given(SAMPLES, st.integers(0, 60), st.sampled_from([MINUTE_MS, QUARTER_MS]))
def test_two_halves_come_to_the_same_as_the_whole(samples: list[Sample], cut: int, resolution: int) -> None:
    whole, halves = bucketed(samples, resolution), bucketed(samples[:cut], resolution)
    for (rank, name, _), bucket in bucketed(samples[cut:], resolution).items():
        put(halves, rank, name, bucket)
    assert whole.keys() == halves.keys()
    assert all(same(whole[key], halves[key]) for key in whole)


@given(SAMPLES)
def test_minutes_come_to_quarters(samples: list[Sample]) -> None:
    minutes, quarters = (series_of(bucketed(samples, one), None) for one in (MINUTE_MS, QUARTER_MS))
    for name, found in minutes.items():
        again = coarser(found, QUARTER_MS)
        assert len(again) == len(quarters[name])
        assert all(same(one, other) for one, other in zip(again, quarters[name], strict=True))


@given(SAMPLES, st.integers(1, 20))
def test_a_chart_has_no_more_points_than_asked_for_and_loses_no_sample(samples: list[Sample], most: int) -> None:
    series = series_of(bucketed(samples, 0), None)
    resolution, chart = bounded(series, 0, most)
    assert all(len(found) <= most for found in chart.values())
    for name, found in chart.items():
        assert sum(one.count + one.invalid for one in found) == len(values(samples, name))
        assert [one.start_ms for one in found] == sorted({one.start_ms for one in found})
    assert resolution == 0 or any(len(found) > most for found in series.values())


def bucket(start_ms: int, count: int = 1) -> Bucket:
    return Bucket(start_ms, count, 0, 1.0, 1.0, float(count), 1.0, start_ms + 1000 * (count - 1), None)


def test_few_samples_are_shown_one_by_one_more_by_the_minute_many_by_the_quarter() -> None:
    few = {"loss": (bucket(0, 500), bucket(QUARTER_MS, 500))}
    assert finest(few, 1000) == 0
    assert finest(few, 100) == MINUTE_MS
    week = {"loss": tuple(bucket(n * QUARTER_MS, 900) for n in range(7 * 96))}
    assert finest(week, 1000) == QUARTER_MS


def test_a_little_too_many_samples_are_joined_by_the_second_and_not_by_the_minute() -> None:
    few = {"loss": (bucket(0, 500), bucket(QUARTER_MS, 500))}
    assert finest(few, 999) == 0
    single = series_of(bucketed([(0, n * 500, n, {"loss": float(n)}) for n in range(1000)], 0), None)
    resolution, chart = bounded(single, 0, 999)
    assert (resolution, len(chart["loss"])) == (1000, 500)
    assert bounded(single, 0, 30)[0] == 30_000


def test_a_stretch_without_samples_is_not_there() -> None:
    found = series_of(bucketed([(0, 0, 1, {"loss": 1.0}), (0, 5 * MINUTE_MS, 2, {"loss": 2.0})], MINUTE_MS), None)
    assert [one.start_ms for one in found["loss"]] == [0, 5 * MINUTE_MS]


def test_what_is_no_number_is_counted_apart() -> None:
    (found,) = series_of(bucketed([(0, 0, 1, {"loss": math.nan}), (0, 1, 2, {"loss": 3.0})], MINUTE_MS), None)["loss"]
    assert (found.count, found.invalid, found.low, found.high, found.mean) == (1, 1, 3.0, 3.0, 3.0)
    alone = joined(bucketed([(0, 0, 1, {"x": math.inf})], MINUTE_MS)[0, "x", 0], bucket(0))
    assert (alone.count, alone.invalid, alone.high) == (1, 1, 1.0)


def test_ranks_are_added_up_or_looked_at_alone() -> None:
    buckets = bucketed([(0, 0, 1, {"loss": 1.0}), (1, 0, 1, {"loss": 3.0})], MINUTE_MS)
    assert series_of(buckets, None)["loss"][0].mean == 2.0
    assert series_of(buckets, 1)["loss"][0].mean == 3.0


def test_a_range_keeps_every_stretch_that_touches_it() -> None:
    series = {"loss": tuple(bucket(n * MINUTE_MS) for n in range(5))}
    kept = within(series, MINUTE_MS + 1, 3 * MINUTE_MS, MINUTE_MS)
    assert [one.start_ms for one in kept["loss"]] == [MINUTE_MS, 2 * MINUTE_MS]


def test_names_without_end_are_left_out_and_counted() -> None:
    series = {f"m{n:04}": (bucket(0),) for n in range(250)}
    chosen, left_out = some(series, None)
    assert (len(chosen), left_out) == (200, 50)
    assert list(some(series, ["m0249", "absent"])[0]) == ["m0249"]
