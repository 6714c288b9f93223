"""The next purchase of a job that has been under way: planned for what is left of its work and its budget, with the
deadline as it stands. So a cheap machine that may be taken away gives way to a dearer one when time gets short, by the
same rules as ever. A job is not abandoned half-way: when nothing keeps its limits any more, it goes on with what loses
least, gives up no more than it must, and says so."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import numpy as np

from crucible.core import candidates, plan
from crucible.core.offers import Floats, Ints, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Pool, Question, Study
from crucible.core.proposal import Candidate
from crucible.model.offer import Market
from crucible.model.record import Progress
from crucible.model.spec import JobSpec
from crucible.model.units import MICRO, MicroUsd

# A job that has not ended has something left to do, whatever its steps say: it loads, and it has an end to write.
LEAST_LEFT = 0.01
HOUR_S = 3600.0
# Odds are known to about a hundredth: ways that differ by less are as likely to be in time.
ALIKE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What earlier attempts have left behind."""

    saved_step: int | None  # of the newest committed checkpoint
    done: float  # the share of the work that it holds
    spent: MicroUsd


NO_PAST = Past(saved_step=None, done=0.0, spent=MicroUsd(0))


class Limit(StrEnum):
    DEADLINE = "deadline"
    BUDGET = "budget"


# In this order. Who must miss one of them is late rather than over the budget: money that is spent does not come back.
CONCESSIONS: tuple[tuple[Limit, ...], ...] = ((Limit.DEADLINE,), (Limit.BUDGET,), (Limit.DEADLINE, Limit.BUDGET))


@dataclass(frozen=True, slots=True)
class Relaunch:
    way: Candidate
    given_up: tuple[Limit, ...] = ()


def share_done(saved_step: int | None, spec: JobSpec, progress: Progress | None) -> float:
    """What a checkpoint holds of the work; what was done after it has to be done again. Nothing known is nothing
    done."""
    if saved_step is None or saved_step <= 0:
        return 0.0
    total = spec.progress.total_steps or spec.workload.steps or (progress.total_steps if progress else None)
    if total:
        return min(1.0, saved_step / total)
    if progress is None or progress.fraction is None or not progress.step:
        return 0.0
    return min(max(progress.fraction, 0.0), 1.0) * min(1.0, saved_step / progress.step)


def remaining(spec: JobSpec, past: Past) -> JobSpec:
    """The same job with only what is left to do and to spend."""
    left = max(1.0 - past.done, LEAST_LEFT)
    load, need, limits = spec.workload, spec.resources, spec.constraints
    return replace(
        spec,
        resources=replace(need, estimated_hours=less(need.estimated_hours, left)),
        workload=replace(
            load,
            steps=less(load.steps or spec.progress.total_steps, left),
            tokens=less(load.tokens, left),
            samples=less(load.samples, left),
        ),
        constraints=limits if limits.budget is None else replace(limits, budget=unspent(limits.budget, past.spent)),
    )


def less(amount: float | None, share: float) -> float | None:
    return None if amount is None else amount * share


def unspent(budget: MicroUsd, spent: MicroUsd) -> MicroUsd:
    return MicroUsd(max(0, budget - spent))


def relaunch(question: Question, table: OfferTable, book: SpeedBook) -> Relaunch | None:
    """The best buy for what is left; if nothing keeps the limits, what loses least. None: what would keep them is only
    taken at the moment, or nothing fits at all."""
    found = plan.purchase(question, table, book)
    if found is not None:
        return Relaunch(found)
    if plan.purchase(question, table.emptied, book) is not None:
        return None
    for given_up in CONCESSIONS:
        way = least_bad(question, given_up, table, book) if set(given_up) <= limits_of(question.spec) else None
        if way is not None:
            return Relaunch(way, given_up)
    return None


def limits_of(spec: JobSpec) -> set[Limit]:
    limits = spec.constraints
    given = {Limit.DEADLINE: limits.deadline, Limit.BUDGET: limits.budget}
    return {limit for limit, value in given.items() if value is not None}


def without(spec: JobSpec, given_up: Sequence[Limit]) -> JobSpec:
    limits = spec.constraints
    return replace(
        spec,
        constraints=replace(
            limits,
            deadline=None if Limit.DEADLINE in given_up else limits.deadline,
            budget=None if Limit.BUDGET in given_up else limits.budget,
        ),
    )


def least_bad(question: Question, given_up: Sequence[Limit], table: OfferTable, book: SpeedBook) -> Candidate | None:
    """Of everything enabled that is one order and keeps every other rule."""
    found = plan.study(replace(question, spec=without(question.spec, given_up)), table, book)
    pool = plan.pool_of(found, plan.ways_at(found, np.flatnonzero(plan.is_enabled(found, found.rough))))
    keys = dearness(pool) if Limit.BUDGET in given_up else lateness(found, pool, question)
    best: Ints = np.lexsort(tuple(reversed(keys)))[:1]
    return next(iter(plan.tell(found, plan.subset(pool, best))), None)


def dearness(pool: Pool) -> tuple[Floats | Ints, ...]:
    """The cheapest finish that is to be expected."""
    return pool.ways.cost, pool.ways.wall_h, pool.ways.row


def lateness(found: Study, pool: Pool, question: Question) -> tuple[Floats | Ints, ...]:
    """The best odds to be in time after all; then the least late, on demand before spot."""
    in_time = candidates.odds(question.spec.constraints, pool.ways, question.now).in_time
    is_risky = ~found.table.is_steady[pool.ways.row]
    return -np.round(in_time, ALIKE), pool.ways.wall_h, is_risky.astype(np.int64), pool.ways.cost, pool.ways.row


# --- words ------------------------------------------------------------------------------------------------


def said(relaunch: Relaunch, spec: JobSpec, now: datetime) -> str | None:
    """What is given up, for a person; None if nothing is."""
    if not relaunch.given_up:
        return None
    names = " and the ".join(relaunch.given_up)
    return f"the {names} cannot be kept any more: goes on with {named(relaunch.way)}{outlook(relaunch, spec, now)}"


def named(way: Candidate) -> str:
    first = way.first
    market = "spot" if first.market is Market.SPOT else "on demand"
    return f"{way.nodes} × {first.target.provider}/{first.target.region} {first.instance_type} {market}"


def outlook(relaunch: Relaunch, spec: JobSpec, now: datetime) -> str:
    """`spec` is what is left of the job."""
    way, limits = relaunch.way, spec.constraints
    parts: list[str] = []
    if Limit.DEADLINE in relaunch.given_up and limits.deadline is not None and way.expected_h is not None:
        late_h = way.expected_h - (limits.deadline - now).total_seconds() / HOUR_S
        parts.append(f"{span(late_h)} late" if late_h > 0 else "less likely in time than asked for")
    if Limit.BUDGET in relaunch.given_up and limits.budget is not None and way.cost is not None:
        parts.append(f"${max(way.cost - limits.budget, 0) / MICRO:.2f} over what is left")
    return f", expected {' and '.join(parts)}" if parts else ""


def span(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{max(hours * 60, 1):.0f} min"
