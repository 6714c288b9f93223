"""What past jobs say of the speeds in the book. Each job is one observation: how fast it was beside what was predicted.
Few observations move a speed a little, many take over; a team has its own factor only where it differs from the others
by more than chance. Pure: who stores the rows, and when, is not decided here."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import log, sqrt

from crucible.core.perf import Origin
from crucible.core.speeds import Factor, Key, SpeedBook
from crucible.model.job import JobStatus
from crucible.model.record import Prediction
from crucible.model.units import MICRO

_BELIEF = 5.0  # observations that the table is worth
_HALF_LIFE = timedelta(days=90)  # drivers, libraries and code change
_SPREAD = 0.25  # of single observations around their mean, where too few say it themselves
_LEAST_SPREAD = 0.05
_MOST = log(10.0)  # an observation further off than ten times is a slip; it counts as ten times
_SURE = 2.0  # standard errors that a team must be away from the others
_LONG = 1.0  # hours: a shorter run is also compiling and warming up, and counts in proportion
# How much a run says of the GPU; the rest it says of the user's estimate. Nothing, if that holds for any GPU.
_WORTH: Mapping[str, float] = {Origin.MEASURED: 1.0, Origin.RECKONED: 1.0, Origin.SCALED: 0.25}
_FEWEST = 3  # observations of a team before it is looked at by itself
GOAL = 0.15  # predictions should be at most so far off (requirement C10)


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


def observation_of(done: Prediction, book: SpeedBook) -> Observation | None:
    """What a job that has ended says; None if nothing: it did not complete, ran elsewhere than planned or in several
    attempts (what was lost to interruptions says nothing of the GPU), or its hours hold for any GPU."""
    gpu = book.find(done.gpu) if done.gpu else None
    worth = _WORTH.get(done.origin or "")
    if gpu is None or worth is None or not done.book_hours or not done.actual_hours or done.ended_at is None:
        return None
    if done.status != JobStatus.COMPLETED or done.attempts != 1 or done.ran_on != done.planned_on:
        return None
    return Observation(
        framework=done.framework or "",
        kind=done.model_class or "",
        gpu=gpu.name,
        team=done.team or "",
        ratio=done.book_hours / done.actual_hours,
        weight=worth * min(1.0, done.actual_hours / _LONG),
        at=done.ended_at,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """None where nothing can be compared; `within_range` is the share of the jobs that kept within what was told as
    their upper end."""

    key: Mapping[str, str]  # what its jobs have in common; empty: of all
    hours: Accuracy | None
    cost: Accuracy | None
    within_range: float | None = None


KEYS: Mapping[str, Callable[[Prediction], str]] = {
    "gpu": lambda one: one.gpu or "none",
    "model_class": lambda one: one.model_class or "any",
    "framework": lambda one: one.framework or "any",
    "team": lambda one: one.team or "-",
    "provider": lambda one: one.provider or "any",
    "week": lambda one: "" if one.ended_at is None else f"{monday(one.ended_at):%Y-%m-%d}",
}
USUAL_KEYS = ("gpu", "model_class")


def scores_of(predictions: Sequence[Prediction], by: Sequence[str] = USUAL_KEYS) -> tuple[Scores, ...]:
    """Of all jobs that completed, then of each group of them, the most jobs first."""
    done = [one for one in predictions if one.status == JobStatus.COMPLETED]
    groups: dict[tuple[str, ...], list[Prediction]] = defaultdict(list)
    for one in done:
        groups[tuple(KEYS[name](one) for name in by)].append(one)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    parts = (_scores(dict(zip(by, key, strict=True)), members) for key, members in ordered)
    return (_scores({}, done), *(part for part in parts if part.hours or part.cost))


def trend_of(predictions: Sequence[Prediction], weeks: int) -> tuple[Scores, ...]:
    """Of the last weeks in which a job ended, the oldest first."""
    found = scores_of(predictions, ("week",))[1:]
    return tuple(sorted(found, key=lambda one: one.key["week"])[-weeks:])


def monday(at: datetime) -> datetime:
    return at - timedelta(days=at.weekday())


def _scores(key: Mapping[str, str], done: Sequence[Prediction]) -> Scores:
    ranges = [one.actual_cost <= one.estimated_cost_high for one in done if one.actual_cost and one.estimated_cost_high]
    return Scores(
        key=key,
        hours=accuracy_of((one.estimated_hours or 0.0, one.actual_hours or 0.0) for one in done),
        cost=accuracy_of(((one.estimated_cost or 0) / MICRO, (one.actual_cost or 0) / MICRO) for one in done),
        within_range=sum(ranges) / len(ranges) if ranges else None,
    )


def accuracy_of(pairs: Iterable[tuple[float, float]], goal: float = GOAL) -> Accuracy | None:
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


def is_within_goal(done: Prediction) -> bool | None:
    """None where its cost cannot be compared."""
    if not done.estimated_cost or not done.actual_cost:
        return None
    return abs(done.estimated_cost / done.actual_cost - 1.0) <= GOAL


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of sorted values, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
