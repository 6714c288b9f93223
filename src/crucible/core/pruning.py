"""Which trials are given up: those that do worse than others did at the same step. Trials are compared at marks, steps
that lie further and further apart, so that what is kept of a trial stays small. Pure: whoever has the same curves stops
the same trials, and none that is the best at its mark."""

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from crucible.core.sweep import is_better, worth
from crucible.model.sweep import Curve, Goal, Objective, Pruner, Pruning

K = TypeVar("K")

# From one mark of the median rule to the next: near enough to stop a bad trial soon, thirty of them in a million steps.
_GROWTH = 1.5


# --- what is kept of a trial ----------------------------------------------------------------------------------------

Report = tuple[int, int | None, float | None]  # the number of the record, its step, the objective if it is in it


def followed(
    curve: Curve | None, attempt: int, reports: Iterable[Report], objective: Objective | None, pruning: Pruning | None
) -> Curve:
    """`curve` with the records of that attempt that it does not know yet. Of an attempt before the newest nothing
    counts, and of records that were sent twice one does."""
    curve = curve or Curve()
    if attempt < curve.attempt:
        return curve
    if attempt > curve.attempt:
        curve = replace(curve, attempt=attempt, number=0)
    for number, step, value in reports:
        if number >= curve.number:
            curve = replace(curve, number=number + 1)
            if value is not None and objective is not None:
                curve = with_report(curve, step, value, objective, pruning)
    return curve


def with_report(curve: Curve, step: int | None, value: float, objective: Objective, pruning: Pruning | None) -> Curve:
    last = value if math.isfinite(value) else None
    best = curve.best
    if last is not None and (best is None or is_better(last, best, objective.goal)):
        best = last
    curve = replace(curve, last=last, best=best, reports=curve.reports + 1)
    at = curve.reports if step is None else step
    mark = newest_mark(pruning, at) if pruning is not None else None
    if mark is None or (curve.marks and curve.marks[-1][0] >= mark):
        return curve
    return replace(curve, marks=(*curve.marks, (mark, worth(curve, objective))))


def newest_mark(pruning: Pruning, step: int) -> int | None:
    """The last mark up to `step`; None before the first."""
    mark, following = None, pruning.after_step
    while following <= step:
        mark, following = following, next_mark(pruning, following)
    return mark


def next_mark(pruning: Pruning, mark: int) -> int:
    if pruning.rule is Pruner.ASHA:
        return mark * pruning.reduction
    return max(mark + 1, math.floor(mark * _GROWTH))


# --- who is stopped -------------------------------------------------------------------------------------------------

# What trials were worth at each mark, as costs in order: less is better, nothing is worst.
Peers = dict[int, list[float]]


def joined(peers: Peers, before: Curve | None, curve: Curve, goal: Goal) -> None:
    """Enters the marks that `curve` has beyond `before`: a mark that was reached stays, so each is entered once."""
    known = len(before.marks) if before is not None else 0
    for mark, value in curve.marks[known:]:
        insort(peers.setdefault(mark, []), cost_of(value, goal))


def given_up(
    curves: Mapping[K, Curve], running: Iterable[K], peers: Peers, objective: Objective, pruning: Pruning
) -> dict[K, str]:
    """Which of those that run are to be stopped, and why. `peers` are of all trials, those that have ended too."""
    found: dict[K, str] = {}
    for key in running:
        curve = curves.get(key)
        if curve is not None and curve.marks:
            mark, value = curve.marks[-1]
            reason = verdict(value, peers[mark], mark, objective, pruning)
            if reason is not None:
                found[key] = reason
    return found


def cost_of(value: float | None, goal: Goal) -> float:
    if value is None:
        return math.inf
    return value if goal is Goal.MINIMIZE else -value


def verdict(
    value: float | None, peers: Sequence[float], mark: int, objective: Objective, pruning: Pruning
) -> str | None:
    """Why a trial that is worth `value` at that mark is given up; None: it goes on. `peers` are all, its own among
    them."""
    cost = cost_of(value, objective.goal)
    better = bisect_left(peers, cost)  # so many are strictly better
    said = f"{objective.metric} {shown(value)} at step {mark}"
    if pruning.rule is Pruner.ASHA:
        kept = len(peers) // pruning.reduction
        if kept == 0 or better < kept:
            return None
        return f"stopped early: {said} is not among the best {kept} of {len(peers)} there"
    others = len(peers) - 1
    if others < pruning.least_trials:
        return None
    middle = median_without(peers, better)
    if cost <= middle:
        return None
    median = middle if objective.goal is Goal.MINIMIZE else -middle
    return f"stopped early: {said} is worse than the median of {others} others there, {shown(median)}"


def median_without(ordered: Sequence[float], left_out: int) -> float:
    """Of all but one, whose place is told; there are others."""

    def at(place: int) -> float:
        return ordered[place if place < left_out else place + 1]

    others = len(ordered) - 1
    return at(others // 2) if others % 2 else (at(others // 2 - 1) + at(others // 2)) / 2


def shown(value: float | None) -> str:
    return "that is no finite number" if value is None or math.isinf(value) else f"{value:.6g}"
