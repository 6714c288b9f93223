"""Which ways of a step may be part of the best plan of its workflow: of each region those that nothing there beats, and
only if what they cost more than the best anywhere could be saved on data. Risk is the dear part: it is asked of those
that are left."""

from dataclasses import dataclass

import numpy as np

from crucible.core import cost, fronts, plan, strategy
from crucible.core.candidates import Ways
from crucible.core.flow.problem import Labels
from crucible.core.offers import UNKNOWN, Bools, Floats, Ints, OfferTable
from crucible.core.plan import Study
from crucible.core.proposal import Candidate
from crucible.model.spec import Strategy

# Ways whose worth is found out first, to measure all others by: the best and, where time matters, the fastest.
SEEDS = 64
# Bills are whole micro-dollars; what they come to if nothing happens is not.
ROUNDING = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is made least."""

    objective: Strategy
    performance_weight: float = 0.0
    is_timed: bool = False  # whether it matters when steps end

    @property
    def weight(self) -> float:
        """Of a dollar."""
        return 1.0 - self.performance_weight if self.is_weighed else 1.0

    @property
    def is_weighed(self) -> bool:
        """Cheapest is dollars alone."""
        return self.objective not in (Strategy.CHEAPEST, Strategy.SPREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Data of a step, in GB, and who reads it."""

    reads: float = 0.0
    leaves: float = 0.0
    readers: int = 0
    readers_price: float = 0.0  # of an hour of all of them, at most

    def covers(self, other: "Reach") -> bool:
        return all(getattr(self, name) >= getattr(other, name) for name in REACH)

    def beyond(self, other: "Reach") -> "Reach":
        """Both, and somewhat dearer readers."""
        most = {name: max(getattr(self, name), getattr(other, name)) for name in REACH}
        return Reach(**{**most, "readers_price": MARGIN * most["readers_price"]})


REACH = ("reads", "leaves", "readers", "readers_price")
# Of equal steps the ways are found once, for whoever has most data, and readers so many times as dear as the first's.
MARGIN = 4.0


def trimmed(labels: Labels, table: OfferTable, aim: Aim, reach: Reach) -> Labels:
    """What is left of the ways for more data."""
    far, place = farthest(table), labels.place
    fetch_h, others_h = reach.reads * far.in_h[place], reach.leaves * far.out_h[place]
    moved = reach.reads * far.in_usd[place] + reach.leaves * reach.readers * far.out_usd[place]
    paid = fetch_h * labels.price + others_h * reach.readers_price
    dearest, latest = labels.value + aim.weight * (moved + paid), labels.hours + fetch_h + others_h
    if aim.is_timed:
        return labels.take(~is_beaten(labels.value, labels.hours, dearest, latest))
    return labels.take(labels.value <= dearest.min(initial=np.inf))


def labels_of(found: Study, aim: Aim, reach: Reach, *, is_enabled: bool = False, leads: bool = True) -> Labels:
    """`is_enabled`: only what may be bought. `leads`: only what comes first within the step's strategy."""
    among = np.arange(len(found.rough.row))
    if is_enabled:
        among = among[plan.is_enabled(found, found.rough)]
    if leads and len(among):
        lead = leading(found, among)
        among = among[lead == lead.min()]
    if not len(among):
        return NOTHING
    return judged(found, aim, reach, plan.ways_at(found, hopeful(found, aim, reach, among)))


def leading(found: Study, among: Ints) -> Floats:
    """As `core.strategy` has it; certain beforehand."""
    table, view, objective = found.table, found.view, found.question.objective
    row = found.rough.row[among]
    if objective is Strategy.OWN_FIRST:
        return (~plan.flagged(view.own, table.seller[row])).astype(float)
    if objective is Strategy.NEAR_DATA:
        return (~plan.flagged(view.near, table.place[row])).astype(float)
    if objective is Strategy.RELIABLE:
        is_own = plan.flagged(view.own, table.seller[row])
        return 2.0 * (~table.is_steady[row]).astype(np.float64) + (~is_own).astype(np.float64)
    return np.zeros(len(among))


# --- what may be good enough --------------------------------------------------------------------------------


def hopeful(found: Study, aim: Aim, reach: Reach, among: Ints) -> Ints:
    """Whoever is dearer than another way even if nothing happens, and though the other's data were as dear as can be,
    and no sooner done, is out."""
    rough = found.rough
    row = rough.row[among]
    value = worth_of(found, aim, rough.cost[among], row)
    hours = rough.wall_h[among]
    seeds = first_few(value)
    if aim.is_timed:
        seeds = np.union1d(seeds, first_few(hours))
    ways = plan.ways_at(found, among[seeds])
    good = plan.turned_down(found, ways, plan.odds_of(found, ways)) == 0
    ways = ways.take(good)
    if not len(ways):
        return among
    dearest, latest = worst(found, aim, reach, ways)
    if not aim.is_timed:
        is_out: Bools = value > dearest.min()
    else:
        is_out = is_beaten(value, hours, dearest, latest)
    return among[np.flatnonzero(~is_out)]


def first_few(column: Floats) -> Ints:
    if len(column) <= SEEDS:
        return np.arange(len(column))
    return np.sort(np.argpartition(column, SEEDS)[:SEEDS])


def worst(found: Study, aim: Aim, reach: Reach, ways: Ways) -> tuple[Floats, Floats]:
    """What these ways come to wherever the steps around them are: value and hours."""
    far = farthest(found.table)
    place = found.table.place[ways.row]
    fetch_h, others_h = reach.reads * far.in_h[place], reach.leaves * far.out_h[place]
    moved = reach.reads * far.in_usd[place] + reach.leaves * reach.readers * far.out_usd[place]
    paid = fetch_h * ways.price + others_h * reach.readers_price
    reliability = plan.odds_of(found, ways).reliability
    value = worth_of(found, aim, ways.cost.astype(np.float64), ways.row) + risk_of(found, aim, reliability)
    return value + aim.weight * (moved + paid) + ROUNDING, ways.wall_h + fetch_h + others_h


@dataclass(frozen=True, slots=True)
class Farthest:
    """Per place and GB: micro-dollars and hours to and from the place that is worst."""

    in_usd: Floats
    out_usd: Floats
    in_h: Floats
    out_h: Floats


def farthest(table: OfferTable) -> Farthest:
    known = table.worked_out
    if "farthest" not in known:
        lanes = cost.lanes(table)
        columns = [axis for lane in (lanes.usd * 1e6, lanes.hours) for axis in (lane.max(axis=0), lane.max(axis=1))]
        known["farthest"] = np.array(columns)
    in_usd, out_usd, in_h, out_h = known["farthest"]
    return Farthest(in_usd, out_usd, in_h, out_h)


def is_beaten(value: Floats, hours: Floats, dearest: Floats, latest: Floats) -> Bools:
    """By one that is cheaper and as soon done."""
    order = np.argsort(dearest, kind="stable")
    soonest = np.minimum.accumulate(latest[order])
    below = np.searchsorted(dearest[order], value, side="left") - 1
    return (below >= 0) & (hours >= soonest[np.maximum(below, 0)])


# --- what is good enough ------------------------------------------------------------------------------------


def judged(found: Study, aim: Aim, reach: Reach, ways: Ways) -> Labels:
    """Of each region the ways that nothing beats and that keep the step's own limits; what comes up where one does not
    keep them is asked in its turn."""
    place = found.table.place[ways.row]
    value = worth_of(found, aim, ways.cost.astype(np.float64), ways.row)
    is_limited = found.limits.deadline is not None or found.limits.budget is not None
    is_good, is_known = np.isfinite(ways.wall_h), np.full(len(ways), not is_limited)
    while True:
        left = np.flatnonzero(is_good)
        columns: list[Floats | Ints] = [value[left]]
        columns += [ways.price[left]] if reach.reads else []
        columns += [ways.wall_h[left]] if aim.is_timed else []
        front = left[fronts.undominated(columns, place[left])]
        fresh = front[~is_known[front]]
        if not len(fresh):
            break
        some = ways.take(fresh)
        odds = plan.odds_of(found, some)
        is_good[fresh] = plan.turned_down(found, some, odds) == 0
        value[fresh] += risk_of(found, aim, odds.reliability)
        is_known[fresh] = True
    kept = ways.take(front)
    return Labels(
        row=kept.row,
        place=place[front],
        value=value[front],
        money=kept.cost.astype(np.float64),
        hours=kept.wall_h,
        price=kept.price.astype(np.float64),
    )


def worth_of(found: Study, aim: Aim, money: Floats, row: Ints) -> Floats:
    """In micro-dollars, as `core.strategy` weighs it: a step's share of its cheapest way is worth that way's cost."""
    if not aim.is_weighed:
        return money
    preferred = plan.flagged(found.view.preferred, found.table.place[row])
    return aim.weight * money - strategy.PREFERENCE * found.view.least_cost * preferred


def risk_of(found: Study, aim: Aim, reliability: Floats) -> Floats:
    return strategy.RISK_WEIGHT * found.view.least_cost * (1 - reliability) if aim.is_weighed else 0.0 * reliability


# --- where there is nothing to choose -------------------------------------------------------------------------


def given(candidate: Candidate, table: OfferTable) -> Labels:
    """A step that was planned by itself, such as one of many tasks: it counts where most of its machines are."""
    largest = max(candidate.parts, key=lambda part: part.count)
    target = largest.listing.target
    return single(
        place=cost.place_of(table, f"{target.provider}/{target.region}"),
        money=float(candidate.cost or 0),
        hours=candidate.expected_h or 0.0,
        price=float(candidate.price_per_hour),
    )


def single(*, place: int, money: float = 0.0, hours: float = 0.0, price: float = 0.0) -> Labels:
    return Labels(
        row=np.array([UNKNOWN]),
        place=np.array([place]),
        value=np.array([money]),
        money=np.array([money]),
        hours=np.array([hours]),
        price=np.array([price]),
    )


_NONE = np.zeros(0)
NOTHING = Labels(
    row=np.zeros(0, dtype=np.int64),
    place=np.zeros(0, dtype=np.int64),
    value=_NONE,
    money=_NONE,
    hours=_NONE,
    price=_NONE,
)
