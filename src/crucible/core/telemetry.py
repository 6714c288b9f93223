"""What past jobs say of the speeds in the book. Each job is one observation: how fast it was beside what was predicted.
Few observations move a speed a little, many take over; a team has its own factor only where it differs from the others
by more than chance. Pure: who stores the rows, and when, is not decided here."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log, sqrt

from crucible.core.perf import Origin
from crucible.core.speeds import Factor, Key, SpeedBook
from crucible.core.work import work_of
from crucible.model.spec import JobSpec

_BELIEF = 5.0  # observations that the table is worth
_HALF_LIFE = timedelta(days=90)  # drivers, libraries and code change
_SPREAD = 0.25  # of single observations around their mean, where too few say it themselves
_LEAST_SPREAD = 0.05
_MOST = log(10.0)  # an observation further off than ten times is a slip; it counts as ten times
_SURE = 2.0  # standard errors that a team must be away from the others
_LONG = 1.0  # hours: a shorter run is also compiling and warming up, and counts in proportion
# How much a run says of the GPU; the rest it says of the user's estimate. Nothing, if that holds for any GPU.
_WORTH = {Origin.MEASURED: 1.0, Origin.RECKONED: 1.0, Origin.SCALED: 0.25}
_FEWEST = 3  # observations of a team before it is looked at by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One run of one job on one kind of GPU."""

    framework: str  # pytorch, tensorflow, horovod, plain
    kind: str  # of model: Kind.label, "llm" or "llm/inference"
    gpu: str
    team: str  # "" for none
    ratio: float  # rate measured / rate predicted by the book without telemetry
    weight: float  # 1 for a run of hours; less for a short one, or one predicted from the user's own estimate
    at: datetime


def observed(
    spec: JobSpec, book: SpeedBook, *, gpu: str, origin: Origin, predicted_h: float, actual_h: float, at: datetime
) -> Observation | None:
    """What a finished run says; None if nothing. `predicted_h` is of the work, by the book without telemetry, and
    `actual_h` the time in which ranks ran: no start, no wait, nothing lost to interruptions."""
    if origin not in _WORTH or predicted_h <= 0 or actual_h <= 0 or book.find(gpu) is None:
        return None
    work = work_of(spec, book)
    return Observation(
        framework=work.framework,
        kind=work.kind.label,
        gpu=gpu,
        team=work.team,
        ratio=predicted_h / actual_h,
        weight=_WORTH[origin] * min(1.0, actual_h / _LONG),
        at=at,
    )


@dataclass(frozen=True, slots=True)
class Sample:
    log: float
    weight: float


def factors_of(observations: Iterable[Observation], now: datetime) -> Mapping[Key, Factor]:
    """Of every (kind, GPU), every framework there, and the teams that differ."""
    samples: dict[Key, list[Sample]] = defaultdict(list)
    for seen in observations:
        if seen.ratio > 0 and seen.weight > 0:
            sample = Sample(max(-_MOST, min(_MOST, log(seen.ratio))), seen.weight * _freshness(seen.at, now))
            for who in {("", ""), ("", seen.framework), (seen.team, seen.framework)}:
                samples[*who, seen.kind, seen.gpu].append(sample)
    factors: dict[Key, Factor] = {}
    # The more general come first: each is the belief that the next starts from.
    for key in sorted(samples, key=lambda key: (bool(key[0]), bool(key[1]), key)):
        team, framework, kind, gpu = key
        general = factors.get(("", framework, kind, gpu) if team else ("", "", kind, gpu), Factor(0.0, 1.0))
        if not team or _differs(samples[key], general.log):
            factors[key] = shrunk(samples[key], general)
    return factors


def shrunk(samples: Sequence[Sample], belief: Factor) -> Factor:
    """n observations count n / (n + k) against the belief."""
    weight = sum(sample.weight for sample in samples)
    mean = sum(sample.weight * sample.log for sample in samples) / weight
    share = weight / (weight + _BELIEF)
    return Factor(belief.log + share * (mean - belief.log), belief.doubt * sqrt(1 - share))


def _freshness(at: datetime, now: datetime) -> float:
    age = max(now - at, timedelta(0))
    return float(0.5 ** (age / _HALF_LIFE))


def _differs(samples: Sequence[Sample], belief: float) -> bool:
    if len(samples) < _FEWEST:
        return False
    weight = sum(sample.weight for sample in samples)
    mean = sum(sample.weight * sample.log for sample in samples) / weight
    variance = sum(sample.weight * (sample.log - mean) ** 2 for sample in samples) / weight
    # A few runs that happen to agree prove little: their spread is mixed with the usual one.
    spread = sqrt((variance * weight + _SPREAD**2 * _FEWEST) / (weight + _FEWEST))
    return abs(mean - belief) > _SURE * max(spread, _LEAST_SPREAD) / sqrt(weight)


# --- how good predictions were (requirement C10) ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Errors are shares of what happened: 0.1 is 10 % off."""

    count: int
    median_error: float
    p90_error: float
    bias: float  # median of the signed error: above 0, predictions were too high
    within: float  # share of the predictions that were at most `goal` off
    goal: float


def accuracy_of(pairs: Iterable[tuple[float, float]], goal: float = 0.15) -> Accuracy | None:
    """Of (predicted, actual), hours or money. None without a single pair that can be compared."""
    signed = sorted(predicted / actual - 1.0 for predicted, actual in pairs if predicted > 0 and actual > 0)
    if not signed:
        return None
    errors = sorted(abs(error) for error in signed)
    return Accuracy(
        count=len(errors),
        median_error=quantile(errors, 0.5),
        p90_error=quantile(errors, 0.9),
        bias=quantile(signed, 0.5),
        within=sum(error <= goal for error in errors) / len(errors),
        goal=goal,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of sorted values, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
