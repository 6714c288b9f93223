"""How wrong the estimates are: each is made from what was known before a day and compared with what came after."""

import csv
import gzip
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import fmean

from crucible.catalog import interruptions, spot_history, traces
from crucible.catalog.interruptions import NINETY, Advice, Advised, Calibration
from crucible.catalog.spot_history import History, Listing
from crucible.catalog.traces import Trace

TRACES_CUT = date(2023, 8, 1)
LISTING_CUT = date(2026, 1, 1)
WINDOW = timedelta(days=31)  # AWS speaks of the month before
MONTH_H = 730.5


def lines(data: Path, own: Path) -> Iterator[str]:
    recorded = traces.read(data / "spot_traces")
    said = interruptions.advice(own)
    history = spot_history.read(data)
    yield from of_traces(recorded)
    yield from of_advice(said, interruptions.calibrate(recorded))
    yield from of_listing(history)
    yield from of_price(data, said)


def of_traces(recorded: Iterable[Trace]) -> Iterator[str]:
    """The rate and the availability of the last band, from the recordings of before on those of after."""
    gpus = [trace for trace in recorded if trace.provider == "aws" and trace.has_gpus]
    after = [trace for trace in gpus if trace.began >= TRACES_CUT]
    calibration = interruptions.calibrate(trace for trace in gpus if trace.began < TRACES_CUT)
    rate = calibration.per_hour(len(interruptions.SHARES) - 1)
    errors = [math.log(trace.per_hour / rate) for trace in after]
    inside = sum(abs(error) <= NINETY * calibration.spread for error in errors)
    missed = fmean(abs(trace.availability - calibration.availability(rate)) for trace in after)
    yield (
        f"traces: {len(gpus) - len(after)} pools before {TRACES_CUT} predict {rate:.3f}/h for {len(after)} after; "
        f"they lost {math.exp(fmean(math.log(t.per_hour) for t in after)):.3f}/h; typical factor "
        f"{math.exp(fmean(abs(error) for error in errors)):.2f}, {inside} of {len(after)} inside the 90 % interval; "
        f"availability off by {missed:.2f} on average"
    )


def of_advice(said: Sequence[Advice], calibration: Calibration) -> Iterator[str]:
    """What AWS says in its third reading, from the first two."""
    first, second, third = ([a for a in said if a.as_of == as_of] for as_of in sorted({a.as_of for a in said}))
    lasting = interruptions.persistence(first, second, calibration)
    yield f"advisor: correlation {lasting.correlation:.2f} of pools of one type, {lasting.years:.1f} years apart"
    advised = Advised(second, calibration, lasting, third[0].as_of)
    last = {(a.region, a.instance_type): math.log(calibration.per_hour(a.band)) for a in second}
    truth = {(a.region, a.instance_type): math.log(calibration.per_hour(a.band)) for a in third}
    made = {key: advised.pool(*key) for key in truth}
    ways = {
        "ours": {key: estimate.middle for key, estimate in made.items()},
        "unchanged": {key: last[key] for key in truth},
        "mean of all": dict.fromkeys(truth, advised.all().middle),
    }
    factors = ", ".join(f"{name} {_factor(way, truth):.2f}" for name, way in ways.items())
    inside = sum(abs(truth[key] - e.middle) <= NINETY * e.deviation for key, e in made.items())
    yield (
        f"advisor: {len(truth)} pools of {third[0].as_of} from {second[0].as_of}: typical factor {factors}; "
        f"{inside} of {len(truth)} inside the 90 % interval"
    )


def of_listing(history: History) -> Iterator[str]:
    """How often AWS stops to list a pool, and for how long: whether that can be told from the months before. It cannot,
    so nothing is made of it."""
    cut = datetime(LISTING_CUT.year, LISTING_CUT.month, LISTING_CUT.day, tzinfo=UTC).timestamp()
    before, after = history.between(0, cut), history.between(cut, math.inf)
    pools = [(before[key], after[key]) for key in after if before[key].listed_h and after[key].seen_h]
    rate = sum(known.left for known, _ in pools) / sum(known.seen_h for known, _ in pools)
    left, expected = sum(seen.left for _, seen in pools), rate * sum(seen.seen_h for _, seen in pools)
    off = fmean(abs(seen.left / seen.seen_h - rate) * MONTH_H for _, seen in pools)
    share = fmean(abs(_listed(known) - _listed(seen)) for known, seen in pools)
    always = fmean(1 - _listed(seen) for _, seen in pools)
    yield (
        f"listing: {len(pools)} pools after {LISTING_CUT}: {left} left, {expected:.0f} expected; off by {off:.3f} a "
        f"pool and month; listed share off by {share:.3f}, by {always:.3f} if all were always listed"
    )


def of_price(data: Path, said: Sequence[Advice]) -> Iterator[str]:
    """Whether a dear pool is a risky one: it is not."""
    as_of = sorted({a.as_of for a in said})[1]
    bands = {(a.region, a.instance_type): a.band for a in said if a.as_of == as_of}
    end = datetime(as_of.year, as_of.month, as_of.day, tzinfo=UTC)
    ratios: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with gzip.open(data / spot_history.FILE, "rt", newline="", encoding="utf-8") as file:
        for ts, kind, region, _, spot, on_demand in list(csv.reader(file))[1:]:
            if (end - WINDOW).timestamp() <= int(ts) <= end.timestamp() and spot and on_demand:
                ratios[region, kind].append(float(spot) / float(on_demand))
    pools = [key for key in ratios if key in bands]
    rank = _rank_correlation([fmean(ratios[key]) for key in pools], [bands[key] for key in pools])
    yield f"price: rank correlation {rank:+.2f} between spot to on-demand price and AWS's band, {len(pools)} pools"


def _factor(way: dict[tuple[str, str], float], truth: dict[tuple[str, str], float]) -> float:
    return math.exp(fmean(abs(way[key] - rate) for key, rate in truth.items()))


def _listed(seen: Listing) -> float:
    return seen.listed_h / seen.seen_h


def _rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    return interruptions.correlation(_ranks(x), _ranks(y))


def _ranks(values: Sequence[float]) -> list[float]:
    """Equal values share their mean rank."""
    ordered = sorted(values)
    first = {value: index for index, value in reversed(list(enumerate(ordered)))}
    last = {value: index for index, value in enumerate(ordered)}
    return [(first[value] + last[value]) / 2 for value in values]
