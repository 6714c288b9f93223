"""Samples added up: into stretches of time, stretches into longer ones, and how long they must be for a chart. Adding
up in parts and in any order keeps count, lowest, highest and last, and but for rounding the mean."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from crucible.model.metrics import MINUTE_MS, QUARTER_MS, Bucket, Series

# Names in one chart: more than anybody looks at, fewer than a program may make up.
MOST_SERIES = 200
# Between single samples and minutes: nothing is kept so, samples are joined when somebody asks. Each is a multiple of
# the one before.
SECONDS_MS = (1_000, 5_000, 15_000, 30_000)
# Minutes that would leave so small a share of the points that were asked for are too coarse, while there are at most so
# many samples to be read instead.
SPARSE, SAMPLES_EACH = 4, 8

Sample = tuple[int, int, int | None, Mapping[str, float]]  # rank, time in ms, step, values
Key = tuple[int, str, int]  # rank, name, start
Buckets = dict[Key, Bucket]


def bucketed(samples: Iterable[Sample], resolution_ms: int) -> Buckets:
    found: Buckets = {}
    for rank, at_ms, step, values in samples:
        for name, value in values.items():
            put(found, rank, name, bucket_of(at_ms, step, value, resolution_ms))
    return found


def bucket_of(at_ms: int, step: int | None, value: float, resolution_ms: int) -> Bucket:
    """Of one sample; a resolution of 0 leaves it where it is."""
    start = at_ms - at_ms % resolution_ms if resolution_ms else at_ms
    if math.isfinite(value):
        return Bucket(start, 1, 0, value, value, value, value, at_ms, step)
    return Bucket(start, 0, 1, math.inf, -math.inf, 0.0, value, at_ms, step)


def put(into: Buckets, rank: int, name: str, bucket: Bucket) -> None:
    key = (rank, name, bucket.start_ms)
    known = into.get(key)
    into[key] = bucket if known is None else joined(known, bucket)


def joined(one: Bucket, other: Bucket) -> Bucket:
    """Both in one; the second counts as the later of two at the same time."""
    last = other if other.last_ms >= one.last_ms else one
    return Bucket(
        min(one.start_ms, other.start_ms),
        one.count + other.count,
        one.invalid + other.invalid,
        min(one.low, other.low),
        max(one.high, other.high),
        one.total + other.total,
        last.last,
        last.last_ms,
        last.step,
    )


def coarser(buckets: Iterable[Bucket], resolution_ms: int) -> tuple[Bucket, ...]:
    """In the order of time."""
    found: dict[int, Bucket] = {}
    for bucket in sorted(buckets, key=lambda one: (one.start_ms, one.last_ms)):
        moved = replace(bucket, start_ms=bucket.start_ms - bucket.start_ms % resolution_ms)
        known = found.get(moved.start_ms)
        found[moved.start_ms] = moved if known is None else joined(known, moved)
    return tuple(found.values())


def series_of(buckets: Buckets, rank: int | None) -> Series:
    """By name; of one rank, or of all together."""
    by_name: dict[str, dict[int, Bucket]] = {}
    for (of_rank, name, start), bucket in sorted(buckets.items()):
        if rank is None or of_rank == rank:
            mine = by_name.setdefault(name, {})
            mine[start] = bucket if start not in mine else joined(mine[start], bucket)
    return {name: tuple(found[start] for start in sorted(found)) for name, found in by_name.items()}


def within(series: Series, from_ms: int, to_ms: int, resolution_ms: int) -> Series:
    """Without stretches that are wholly outside, and names of which nothing is left."""
    cut = {
        name: tuple(one for one in found if one.start_ms < to_ms and one.start_ms + max(resolution_ms, 1) > from_ms)
        for name, found in series.items()
    }
    return {name: found for name, found in cut.items() if found}


def finest(series: Series, max_points: int) -> int:
    """From what is known by the quarter of an hour: the resolution to read at; 0 means every sample by itself. What is
    read so is not much more than was asked for, and `bounded` joins it."""
    samples = max((sum(one.count + one.invalid for one in found) for found in series.values()), default=0)
    minutes = max((_slots(found, MINUTE_MS) for found in series.values()), default=0)
    if samples <= max_points or (minutes * SPARSE <= max_points and samples <= max_points * SAMPLES_EACH):
        return 0
    return MINUTE_MS if minutes <= max_points else QUARTER_MS


def _slots(found: tuple[Bucket, ...], resolution_ms: int) -> int:
    """At most so many stretches of the finer kind: no more than samples, none after the last."""
    return sum(min(one.count + one.invalid, (one.last_ms - one.start_ms) // resolution_ms + 1) for one in found)


def bounded(series: Series, resolution_ms: int, max_points: int) -> tuple[int, Series]:
    """With stretches joined until no name has more points than asked for."""
    while any(len(found) > max_points for found in series.values()):
        resolution_ms = next((one for one in (*SECONDS_MS, MINUTE_MS) if one > resolution_ms), resolution_ms * 2)
        series = {name: coarser(found, resolution_ms) for name, found in series.items()}
    return resolution_ms, series


def some(series: Series, names: Iterable[str] | None) -> tuple[Series, int]:
    """Those asked for, or as many as there is room for, and how many had none."""
    wanted = sorted(series) if names is None else sorted(set(names) & series.keys())
    return {name: series[name] for name in wanted[:MOST_SERIES]}, max(0, len(wanted) - MOST_SERIES)
