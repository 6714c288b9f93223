"""How often spot machines are taken away, and how often there is one: estimates with their method and an interval
that should hold in nine cases of ten. Where nothing is known nothing is said. The methods are headings of
docs/catalog.md."""

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import fmean, pvariance

from crucible.catalog import facts, traces
from crucible.catalog.traces import Trace
from crucible.model.catalog import Hazard

NINETY = 1.645  # standard deviations either side that hold 90 % of a normal distribution
DAYS_PER_YEAR = 365.25
LEAST_CORRELATION = 0.01  # so that what does not last at all fades quickly instead of changing its sign
# Of the machines in a pool AWS says which share was interrupted in a month: the middle of each of its five bands.
SHARES = (0.025, 0.075, 0.125, 0.175, 0.6)

ADVISED, ADVISED_TYPE, ADVISED_ALL = "aws-advisor", "aws-advisor-type", "aws-advisor-all"
TRACED_CPUS = "gcp-cpu-traces"


@dataclass(frozen=True, slots=True)
class Advice:
    as_of: date
    region: str
    instance_type: str
    band: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the recorded lives say. `life_h` turns a share of machines into a rate: so long are machines kept, on
    average, by those whom AWS counts."""

    life_h: float
    gap_h: float  # how long an empty pool stays empty
    spread: float  # standard deviation of the logarithm of the rate between pools of one band

    def per_hour(self, band: int) -> float:
        return SHARES[band] / (1 - SHARES[band]) / self.life_h

    def availability(self, per_hour: float) -> float:
        return 1 / (1 + per_hour * self.gap_h)


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """How much of a pool's place among others is left: `correlation` after `years`, and less and less."""

    correlation: float
    years: float

    def after(self, years: float) -> float:
        return float(max(self.correlation, LEAST_CORRELATION) ** (years / self.years))


def advice(own: Path) -> tuple[Advice, ...]:
    rows = facts.table(own, "spot_advisor.csv")
    return tuple(
        Advice(date.fromisoformat(row["as_of"]), row["region"], row["instance_type"], int(row["band"])) for row in rows
    )


def calibrate(traces: Iterable[Trace]) -> Calibration:
    """From pools that AWS had in its last band before and after they were recorded."""
    pools = [trace for trace in traces if trace.provider == "aws" and trace.has_gpus]
    rates = [math.log(trace.per_hour) for trace in pools]
    share = SHARES[-1]
    return Calibration(
        life_h=share / (1 - share) / math.exp(fmean(rates)),
        gap_h=math.exp(fmean(math.log(trace.gap_h) for trace in pools)),
        spread=math.sqrt(pvariance(rates)),
    )


def persistence(before: Sequence[Advice], after: Sequence[Advice], calibration: Calibration) -> Persistence:
    """From two readings of the same pools, each against the mean of its type."""
    older, newer = _within_types(before, calibration), _within_types(after, calibration)
    pairs = [(older[pool], newer[pool]) for pool in older if pool in newer]
    x, y = zip(*pairs, strict=True)
    return Persistence(correlation=correlation(x, y), years=_years(before[0].as_of, after[0].as_of))


def _within_types(said: Iterable[Advice], calibration: Calibration) -> dict[tuple[str, str], float]:
    rates = {(a.region, a.instance_type): math.log(calibration.per_hour(a.band)) for a in said}
    means = {kind: fmean(of_kind) for kind, of_kind in _by_type(rates).items()}
    return {(region, kind): rate - means[kind] for (region, kind), rate in rates.items()}


def _by_type(rates: Mapping[tuple[str, str], float]) -> dict[str, list[float]]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for (_, kind), rate in rates.items():
        found[kind].append(rate)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of the logarithm of a rate."""

    middle: float
    deviation: float


class Advised:
    """Pools of AWS by what AWS said of them, as seen from `now`: what was said of a pool fades towards what is said of
    its type, and that towards all types, the less it is based on."""

    def __init__(self, said: Sequence[Advice], calibration: Calibration, persistence: Persistence, now: date) -> None:
        self._calibration = calibration
        self._said = {(a.region, a.instance_type): math.log(calibration.per_hour(a.band)) for a in said}
        self._weight = persistence.after(_years(said[0].as_of, now))
        by_type = _by_type(self._said)
        self._mean = fmean(self._said.values())
        within = fmean((rate - fmean(by_type[kind])) ** 2 for (_, kind), rate in self._said.items())
        self._within = within * len(self._said) / max(len(self._said) - len(by_type), 1)
        self._between = max(pvariance([fmean(rates) for rates in by_type.values()]) - self._within / 3, 0.01)
        self._types = {kind: self._shrunk(rates) for kind, rates in by_type.items()}

    @property
    def pools(self) -> Iterable[tuple[str, str]]:
        return self._said

    @property
    def types(self) -> Iterable[str]:
        return self._types

    def pool(self, region: str, kind: str) -> Estimate:
        rate, weight = self._said[region, kind], self._weight
        return self._with_spread(weight * rate + (1 - weight) * self._types[kind], (1 - weight**2) * self._within)

    def type(self, kind: str) -> Estimate:
        return self._with_spread(self._types[kind], self._within)

    def all(self) -> Estimate:
        return self._with_spread(self._mean, self._within + self._between)

    def _shrunk(self, rates: Sequence[float]) -> float:
        weight = self._between / (self._between + self._within / len(rates))
        return weight * fmean(rates) + (1 - weight) * self._mean

    def _with_spread(self, middle: float, variance: float) -> Estimate:
        return Estimate(middle=middle, deviation=math.sqrt(variance + self._calibration.spread**2))


def of_aws(advised: Advised, calibration: Calibration, now: date) -> list[Hazard]:
    def hazard(region: str, kind: str, estimate: Estimate, method: str) -> Hazard:
        rate = math.exp(estimate.middle)
        return Hazard(
            provider="aws",
            region=region,
            instance_type=kind,
            per_hour=_rounded(rate),
            low=_rounded(rate * math.exp(-NINETY * estimate.deviation)),
            high=_rounded(rate * math.exp(NINETY * estimate.deviation)),
            availability=_rounded(calibration.availability(rate)),
            method=method,
            as_of=now,
        )

    return [
        hazard("", "", advised.all(), ADVISED_ALL),
        *(hazard("", kind, advised.type(kind), ADVISED_TYPE) for kind in sorted(advised.types)),
        *(hazard(region, kind, advised.pool(region, kind), ADVISED) for region, kind in sorted(advised.pools)),
    ]


def of_google(traces: Iterable[Trace], calibration: Calibration, now: date) -> list[Hazard]:
    """From the only public record there is, of machines without GPUs: a guess of the right order at best."""
    pools = [trace for trace in traces if trace.provider == "gcp"]
    losses, hours = sum(trace.losses for trace in pools), sum(trace.held_h for trace in pools)
    rate = (losses + 0.5) / hours  # Jeffreys: no loss at all would not mean that there are none
    spread = math.exp(NINETY * math.sqrt(1 / (losses + 0.5) + calibration.spread**2))
    return [
        Hazard(
            provider="gcp",
            region="",
            instance_type="",
            per_hour=_rounded(rate),
            low=_rounded(rate / spread),
            high=_rounded(rate * spread),
            availability=None,
            method=TRACED_CPUS,
            as_of=now,
        )
    ]


def _years(start: date, end: date) -> float:
    return (end - start).days / DAYS_PER_YEAR


def correlation(x: Sequence[float], y: Sequence[float]) -> float:
    mx, my = fmean(x), fmean(y)
    covariance = fmean((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    scale = math.sqrt(pvariance(x) * pvariance(y))
    return covariance / scale if scale else 0.0  # where nothing varies, nothing follows


def _rounded(value: float) -> float:
    """To what an estimate can know."""
    return float(f"{value:.3g}")


def estimate(data: Path, own: Path, sold: Container[str], now: date) -> list[Hazard]:
    """Of the types `sold`, as far as anything is known of them."""
    recorded = traces.read(data / "spot_traces")
    calibration = calibrate(recorded)
    said = advice(own)
    readings = sorted({a.as_of for a in said})
    first, second = ([a for a in said if a.as_of == as_of] for as_of in readings[:2])
    lasting = persistence(first, second, calibration)
    advised = Advised([a for a in second if a.instance_type in sold], calibration, lasting, now)
    return [*of_aws(advised, calibration, now), *of_google(recorded, calibration, now)]
