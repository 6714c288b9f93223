"""The best fleet for many equal tasks: what may be part of it, how many waves there are, and what the strategy makes
least. With a deadline, machines work until then. Without one, all tasks run at the same time, or as many as may and
can; the others follow, in as few waves as there is room for."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf

import numpy as np

from crucible.core import fronts
from crucible.core.candidates import SECONDS
from crucible.core.columns import Caps
from crucible.core.goals import dollars, goals_of
from crucible.core.lots import Lots, likely, lots_of, until
from crucible.core.offers import UNKNOWN, Bools, Floats, Ints
from crucible.core.plan import EVEN, Study
from crucible.core.program import Fleet, fleet
from crucible.core.proposal import Rule
from crucible.model.spec import Strategy

# Spread: over so many regions at least, if there are as many; none gets more than its share of the tasks.
REGIONS = 3
# Ends of waves that are looked through for the fastest fleet, of each lot.
MOST_ENDS = 4096


def left_h(found: Study) -> float | None:
    """Until the deadline; None if there is none that can be checked."""
    deadline = found.limits.deadline
    return None if deadline is None else (deadline - found.question.now).total_seconds() / SECONDS


# --- what may be part of an optimum -----------------------------------------------------------------------


def useful(found: Study, caps: Caps, rows: Ints | None = None, is_by_region: bool = True) -> Lots:
    """Of each region, or of all of them, what nothing else beats. Risk is the dear part: it is asked of those only, and
    again of what comes up where they do not keep the deadline."""
    lots = lots_of(found, found.rough.row if rows is None else rows)
    lots = without(found, lots, ~np.isfinite(lots.wave_h), Rule.RELIABILITY)
    time = left_h(found)
    if time is not None:
        lots = needed(until(lots, time), caps)
        lots = without(found, lots, lots.waves == 0, Rule.DEADLINE)
    groups = grouped(found, lots, caps)
    if is_by_region:
        groups = fronts.numbered(found.table.place[lots.ways.row], groups)
    if time is None:
        return lots.take(undominated(found, lots, caps, groups))
    return lots.take(proven(found, lots, caps, groups, time))


def needed(lots: Lots, caps: Caps) -> Lots:
    """No more waves than there are tasks for: the odds of more need not be known. Where only so many tasks may run at a
    time, machines may leave seats empty."""
    seats = np.maximum(lots.seats, 1) if caps.at_once >= caps.tasks else np.ones_like(lots.seats)
    return replace(lots, waves=np.minimum(lots.waves, -(-caps.tasks // seats)))


def proven(found: Study, lots: Lots, caps: Caps, groups: Ints, time: float) -> Ints:
    """A group is done when all that is undominated in it is known to be in time."""
    judged = lots.ways.hazard == 0
    done, left = [np.zeros(0, dtype=np.int64)], np.arange(len(lots))
    while len(left):
        kept = left[undominated(found, lots.take(left), caps, groups[left])]
        fresh = kept[~judged[kept]]
        some = likely(lots.take(fresh), time, found.question.least_odds)
        lots.waves[fresh], lots.reliability[fresh], judged[fresh] = some.waves, some.reliability, True
        found.rule[some.ways.row[some.waves == 0]] = unlikely(found)
        again = np.isin(groups, groups[fresh])
        done.append(kept[~again[kept]])
        left = left[again[left] & (lots.waves[left] > 0)]
    return np.sort(np.concatenate(done))


def unlikely(found: Study) -> Rule:
    return Rule.RELIABILITY if found.question.spec.constraints.min_reliability > EVEN else Rule.DEADLINE


def without(found: Study, lots: Lots, refused: Bools, rule: Rule) -> Lots:
    found.rule[lots.ways.row[refused]] = rule
    return lots.take(~refused) if refused.any() else lots


def grouped(found: Study, lots: Lots, caps: Caps) -> Ints:
    """Numbers that tell apart what never stands in for one another, wherever it is."""
    # Where seats are counted, a machine with more of them is another thing.
    seats = lots.seats if caps.at_once < caps.tasks else np.zeros_like(lots.seats)
    quotas = fronts.under_quotas(found.table, lots, caps.quotas)
    return fronts.numbered(seats, quotas, fronts.limited_apart(found.table, lots))


def undominated(found: Study, lots: Lots, caps: Caps, groups: Ints) -> Ints:
    goals = goals_of(found, lots, caps.tasks)
    # More waves than there are tasks are no better.
    waves = np.minimum(lots.waves, -(-caps.tasks // np.maximum(lots.seats, 1)))
    columns: list[Floats | Ints] = [-waves, -lots.seats]
    columns += fronts.drawn_columns(found.table, lots, caps.quotas)
    for goal in (*goals, *([dollars(lots)] if np.isfinite(caps.budget) else [])):
        # Whoever has one wave pays for both.
        columns += (
            [goal.gang + goal.wave, goal.task] if waves.max(initial=0) <= 1 else [goal.gang, goal.wave, goal.task]
        )
    if np.isfinite(caps.price):
        columns.append(lots.ways.price)
    if found.question.objective is Strategy.FASTEST:
        columns += [lots.setup_h, lots.wave_h]
    return fronts.undominated(columns, groups)


# --- how many waves ---------------------------------------------------------------------------------------


def best(found: Study, lots: Lots, caps: Caps, gap: float = 0.0) -> Fleet | None:
    """`gap` is how far from the optimum, as a share, is good enough."""
    for some in spread_caps(found, lots, caps):
        made = timed(found, lots, some, gap)
        if made is not None:
            return widened(found, made, some)
    return None


def spread_caps(found: Study, lots: Lots, caps: Caps) -> Iterator[Caps]:
    """Spread over regions if that is wished; if it cannot be, not."""
    if found.question.objective is Strategy.SPREAD and len(lots):
        regions = min(REGIONS, len(np.unique(found.table.place[lots.ways.row])))
        yield replace(caps, per_region=-(-caps.tasks // regions))
    yield caps


def timed(found: Study, lots: Lots, caps: Caps, gap: float) -> Fleet | None:
    if found.question.objective is Strategy.FASTEST:
        return fastest(found, lots, caps, gap)
    if left_h(found) is not None:
        return asked(found, lots, caps, gap)
    return in_fewest_waves(found, lots, caps, gap)


def asked(found: Study, lots: Lots, caps: Caps, gap: float = 0.0) -> Fleet | None:
    groups = grouped(found, lots, caps)
    if caps.per_region < caps.tasks:
        groups = fronts.numbered(groups, found.table.place[lots.ways.row])
    lots = lots.take(undominated(found, lots, caps, groups))
    return fleet(found.table, lots, caps, goals_of(found, lots, caps.tasks), gap)


def in_fewest_waves(found: Study, lots: Lots, caps: Caps, gap: float) -> Fleet | None:
    """More waves need less room, fewer machines per hour, and less to set them up."""
    low = high = -(-caps.tasks // min(caps.at_once, caps.tasks))
    made = asked(found, in_waves(lots, high), caps, gap)
    if made is not None:
        return made
    while not is_possible(found, in_waves(lots, high), caps):
        if high >= caps.tasks:
            return None
        low, high = high, min(2 * high, caps.tasks)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_possible(found, in_waves(lots, middle), caps) else (middle, high)
    return asked(found, in_waves(lots, high), caps, gap)


def is_possible(found: Study, lots: Lots, caps: Caps) -> bool:
    """The first fleet that keeps the limits is enough."""
    return asked(found, lots, caps, gap=inf) is not None


def in_waves(lots: Lots, waves: int) -> Lots:
    return replace(lots, waves=np.minimum(lots.waves, waves))


def fastest(found: Study, lots: Lots, caps: Caps, gap: float = 0.0) -> Fleet | None:
    """The least time until the last task ends, then balanced: of all moments at which a wave ends the first by which
    everything can be done."""
    ends = ends_of(lots, caps)
    low, high = -1, len(ends) - 1
    if not len(ends) or not is_possible(found, until(lots, float(ends[high])), caps):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_possible(found, until(lots, float(ends[middle])), caps) else (middle, high)
    return asked(found, until(lots, float(ends[high])), caps, gap)


def ends_of(lots: Lots, caps: Caps) -> Floats:
    """Sorted. No lot has more waves than it takes to run everything on one seat of it."""
    most = np.minimum(lots.waves, min(caps.tasks, MOST_ENDS))
    of_lot = np.repeat(np.arange(len(lots)), most)
    wave = np.arange(len(of_lot)) - np.repeat(np.cumsum(most) - most, most) + 1
    return np.unique(lots.setup_h[of_lot] + lots.wave_h[of_lot] * wave)


def widened(found: Study, made: Fleet, caps: Caps) -> Fleet:
    """What costs nothing to set up works side by side rather than one after another, as far as there is room."""
    lots, gangs, table = made.lots, made.gangs.copy(), found.table
    for i in np.flatnonzero((lots.setup + lots.ways.price == 0) & (made.gangs < made.waves)).tolist():
        more = [made.waves[i] - gangs[i], lots.most[i] - gangs[i]]
        if caps.at_once < caps.tasks:
            more.append((caps.at_once - (gangs * lots.seats).sum()) // lots.seats[i])
        stock = table.stock[lots.ways.row[i]]
        draws = lots.ways.nodes * table.shapes.gpus[table.shape[lots.ways.row]]
        if stock != UNKNOWN and draws[i]:
            mine = (table.stock[lots.ways.row] == stock) & (lots.source >= 0)
            more.append((table.free_gpus[stock] - (gangs * draws)[mine].sum()) // draws[i])
        gangs[i] += max(0, int(min(more)))
    return replace(made, gangs=gangs)
