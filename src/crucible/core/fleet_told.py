"""From a fleet to one candidate: money adds up, the slowest decides the time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crucible.core import plan
from crucible.core.lots import bill, serial
from crucible.core.offers import Ints
from crucible.core.plan import Study
from crucible.core.program import Fleet
from crucible.core.proposal import Candidate, Part
from crucible.core.wording import candidates_of
from crucible.model.spec import Strategy
from crucible.model.units import MicroUsd

# Shares below this are the arithmetic of the solver.
NOTHING = 1e-9


def told(found: Study, made: Fleet) -> Candidate:
    """Hours are until the last task ends; odds are those of one machine's share."""
    of_lot, waves, counts = stretches(made)
    each = told_each(found, made, of_lot, waves)
    slowest = max(each, key=lambda one: one.expected_h or 0.0)
    read = np.rint(made.lots.task * made.tasks + made.lots.data * made.gangs).sum()
    is_timed = all(one.cost is not None for one in each)
    total = summed([one.cost for one in each], counts) + int(read)
    risk = sum(((one.cost_p90 or 0) - (one.cost_p50 or 0)) ** 2 * n for one, n in zip(each, counts, strict=True))
    firm = summed([one.on_demand_cost or one.cost for one in each], counts) + int(read)
    return replace(
        slowest,
        parts=parts_of(found, made),
        is_enabled=all(one.is_enabled for one in each),
        price_per_hour=MicroUsd(int((made.lots.ways.price * made.gangs).sum())),
        work_h=None if slowest.work_h is None else float(made.lots.ways.work_h.max()),
        cost=MicroUsd(total) if is_timed else None,
        cost_p50=MicroUsd(total) if is_timed else None,
        cost_p90=MicroUsd(total + round(risk**0.5)) if is_timed else None,
        egress=MicroUsd(int(read)),
        interruptions=sum((one.interruptions or 0.0) * n for one, n in zip(each, counts, strict=True))
        if is_timed
        else None,
        on_demand_cost=MicroUsd(firm) if is_timed and any(one.on_demand_cost for one in each) else None,
        reliability=min(one.reliability for one in each),
        score=made.least,
    )


def stretches(made: Fleet) -> tuple[Ints, Ints, list[int]]:
    """Lots, waves and gangs that have so many: waves are shared out evenly."""
    few, more = np.divmod(made.waves, np.maximum(made.gangs, 1))
    of_lot = np.tile(np.arange(len(made.lots)), 2)
    waves, counts = np.concatenate([few, few + 1]), np.concatenate([made.gangs - more, more])
    used = np.flatnonzero(counts > 0)
    return of_lot[used], waves[used], counts[used].tolist()


def told_each(found: Study, made: Fleet, of_lot: Ints, waves: Ints) -> list[Candidate]:
    """One gang of each stretch, without data."""
    lots = made.lots.take(of_lot)
    ways = serial(lots.ways, waves)
    starts = np.where(lots.is_shared, 1, waves)
    course = replace(ways.course, wall_h=ways.course.wall_h + lots.ways.start_h * (starts - 1))
    ways = replace(
        ways,
        staging_h=lots.setup_h - lots.ways.start_h if lots.is_shared else lots.setup_h,
        course=course,
        wall_h=lots.setup_h + lots.wave_h * waves,
        cost=bill(found.table, lots, waves).astype(np.int64),
        egress=np.zeros(len(waves), dtype=np.int64),
    )
    ours = plan.is_enabled(found, ways)
    return candidates_of(found.table, found.hours, ways, lots.reliability, np.zeros(len(waves)), ours)


def summed(amounts: Sequence[int | None], counts: Sequence[int]) -> int:
    return sum((amount or 0) * n for amount, n in zip(amounts, counts, strict=True))


def parts_of(found: Study, made: Fleet) -> tuple[Part, ...]:
    """Where most tasks are first. Machines that are held are no part: they are there."""
    lots, waves = made.lots, -(-made.waves // np.maximum(made.gangs, 1))
    order = np.lexsort((lots.ways.row, -made.tasks))
    order = order[lots.source[order] >= 0]
    hours = lots.setup_h + lots.wave_h * waves
    is_timed = ~np.isnan(found.hours.hours[found.table.shape[lots.ways.row]])
    return tuple(
        Part(
            found.table.listing(int(lots.ways.row[i])),
            int(made.gangs[i] * lots.ways.nodes[i]),
            tasks=int(made.tasks[i]),
            waves=int(waves[i]),
            hours=float(hours[i]) if is_timed[i] else None,
        )
        for i in order.tolist()
    )


def distance(found: Study, made: Fleet, shown: Candidate) -> float:
    """How far from the optimum it is at most, as a share. Bills of several waves are rounded after the choice."""
    is_money = found.question.objective in (Strategy.CHEAPEST, Strategy.SPREAD)
    least = float(shown.cost) if is_money and shown.cost is not None else made.least
    far = 1 - made.bound / least if least > 0 else 0.0
    return far if far > NOTHING else 0.0
