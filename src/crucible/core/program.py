"""How many machines of which lots, for how many waves, so that every task has its place and no limit is passed: an
integer program. Where nothing keeps all limits, one kind of them may give way, by as little as can be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from crucible.core.columns import Caps, Columns, Family, Sum, columns_of, cost_of, place_tasks, sums
from crucible.core.goals import Goal
from crucible.core.integer import Model, Solved
from crucible.core.lots import Lots
from crucible.core.offers import Floats, Ints, OfferTable

# The first of several goals is kept to this, relatively, while the next is looked for.
KEPT = 1e-9
# Among equals, what the last place of the list counts for against one turn of a machine.
EARLIER = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The answer, per lot of `lots`; none is empty."""

    lots: Lots
    gangs: Ints
    waves: Ints  # of all gangs of a lot together
    tasks: Ints
    least: float  # of the last goal
    bound: float  # what that cannot be below
    given: tuple["Given", ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """By how much a limit gave way, in its own measure."""

    family: Family
    name: str  # of the limit
    amount: float


def fleet(
    table: OfferTable,
    lots: Lots,
    caps: Caps,
    goals: Sequence[Goal],
    gap: float = 0.0,
    yielding: frozenset[Family] = frozenset(),
) -> Fleet | None:
    """None if nothing keeps the limits. `gap` is how far from the least, as a share, is good enough. Limits of
    `yielding` give way, by the least that is enough, whatever the goals."""
    lots, goals = prepared(lots, caps, goals, can_grow=Family.ROOM in yielding)
    if not len(lots):
        return None
    model = Model()
    columns = columns_of(model, table, lots, caps, goals)
    place_tasks(model, table, lots, caps, columns)
    limits = [*sums(table, lots, caps, columns)]
    given = limited(model, limits, yielding)
    start = None if given else greedy(model, table, lots, caps, columns, limits, goals[-1])
    return solved(model, lots, columns, goals, given, start, gap)


def prepared(lots: Lots, caps: Caps, goals: Sequence[Goal], can_grow: bool = False) -> tuple[Lots, list[Goal]]:
    """What can run a task. Where only so many may run at a time, a machine may have to leave seats empty: each number
    of them is a lot."""
    kept = np.flatnonzero((lots.waves > 0) & (lots.seats > 0) & ((lots.most > 0) | can_grow))
    lots, goals = lots.take(kept), [part_of(goal, kept) for goal in goals]
    if caps.at_once >= caps.tasks:
        return lots, goals
    most = np.minimum(lots.seats, caps.at_once)
    of_lot = np.repeat(np.arange(len(lots)), most)
    seats = np.arange(len(of_lot)) - np.repeat(np.cumsum(most) - most, most) + 1
    return replace(lots.take(of_lot), seats=seats), [part_of(goal, of_lot) for goal in goals]


def part_of(goal: Goal, kept: Ints) -> Goal:
    return Goal(goal.gang[kept], goal.wave[kept], goal.task[kept])


def limited(model: Model, limits: Sequence[Sum], yielding: frozenset[Family]) -> dict[int, Sum]:
    """The columns by which limits give way."""
    given: dict[int, Sum] = {}
    for one in limits:
        where, factors = one.columns, one.factors
        if one.family in yielding:
            extra = model.add(np.zeros(1), np.full(1, inf), is_whole=False)
            given[int(extra[0])] = one
            where, factors = np.append(where, extra), np.append(factors, -1.0)
        model.limit(-inf, one.most, where, factors)
    return given


# --- the answer -------------------------------------------------------------------------------------------


def solved(
    model: Model,
    lots: Lots,
    columns: Columns,
    goals: Sequence[Goal],
    given: dict[int, Sum],
    start: Floats | None,
    gap: float,
) -> Fleet | None:
    """By one goal after the other; each keeps what the ones before it found."""
    costs = [yielded(model, given)] if given else [cost_of(model, columns, goal) for goal in goals]
    *firsts, last = costs
    for cost in firsts:
        first = model.minimise(cost, start)
        if first is None:
            return None
        used = np.flatnonzero(cost)
        model.limit(-inf, first.least + KEPT * max(abs(first.least), 1.0), used, cost[used])
        start = first.values
    found = model.minimise(last, start, gap)
    if found is None:
        return None
    if not given and gap < inf:
        found = replace(found, values=canonical(model, columns, last, found))
    return answer(lots, columns, found, given)


def canonical(model: Model, columns: Columns, cost: Floats, found: Solved) -> Floats:
    """Of what is as good as `found`: large machines, and the first lots. So that a plan does not depend on the
    way by which the solver came to it."""
    used = np.flatnonzero(cost)
    model.limit(-inf, found.least + KEPT * max(abs(found.least), 1.0), used, cost[used])
    wish, count = np.zeros(model.size), len(columns.waves)
    wish[columns.waves] = 1.0 + EARLIER * np.arange(count) / count
    made = model.minimise(wish, found.values)
    return found.values if made is None else made.values


def answer(lots: Lots, columns: Columns, found: Solved, given: Mapping[int, Sum]) -> Fleet:
    values = found.values
    gangs, tasks = values[columns.gangs].astype(np.int64), tasks_of(lots, columns, values)
    # What costs nothing may have been taken for nothing.
    waves = np.maximum(-(-tasks // lots.seats), lots.least)
    used = np.flatnonzero(waves > 0)
    amounts = [Given(one.family, one.name, float(values[column])) for column, one in given.items()]
    return Fleet(
        lots=lots.take(used),
        gangs=np.maximum(np.minimum(gangs, waves), lots.least)[used],
        waves=waves[used],
        tasks=tasks[used],
        least=found.least,
        bound=found.bound,
        given=tuple(one for one in amounts if one.amount > KEPT),
    )


def yielded(model: Model, given: dict[int, Sum]) -> Floats:
    """As shares of the limits, where several kinds are compared."""
    cost = np.zeros(model.size)
    is_mixed = len({one.family for one in given.values()}) > 1
    for column, one in given.items():
        cost[column] = 1.0 / max(one.most, 1.0) if is_mixed else 1.0
    return cost


def tasks_of(lots: Lots, columns: Columns, values: Floats) -> Ints:
    """The tasks of a class on its lots, as far as they have seats, in their order."""
    tasks, waves = np.zeros(len(lots), dtype=np.int64), values[columns.waves].astype(np.int64)
    for column in np.unique(columns.tasks).tolist():
        mine = np.flatnonzero(columns.tasks == column)
        room = lots.seats[mine] * waves[mine]
        before = np.cumsum(room) - room
        tasks[mine] = np.clip(round(values[column]) - before, 0, room)
    return tasks


def greedy(
    model: Model, table: OfferTable, lots: Lots, caps: Caps, columns: Columns, limits: Sequence[Sum], goal: Goal
) -> Floats | None:
    """A solution to begin with: what is cheapest per task when its seats are full, as much as can be had of it, then
    the next. None if that leaves tasks over; the solver sees whether it keeps the budget."""
    room_of = columns.most_waves * lots.seats  # tasks of one gang
    per_task = (goal.gang + columns.most_waves * goal.wave) / room_of + goal.task
    order, values = np.lexsort((per_task, -lots.least)), np.zeros(model.size)
    left = filled(values, table, lots, caps, columns, order, Room(limits))
    return values if left == 0 else None


class Room:
    """What is left of limits on gangs while they are handed out. The budget is none of them: it is for all columns."""

    def __init__(self, limits: Sequence[Sum]) -> None:
        self._left = [one.most for one in limits]
        self._draws: dict[int, list[tuple[int, float]]] = {}
        for number, one in enumerate(limits):
            if one.family is not Family.BUDGET:
                for column, draw in zip(one.columns.tolist(), one.factors.tolist(), strict=True):
                    if draw > 0:
                        self._draws.setdefault(column, []).append((number, draw))

    def take(self, column: int, wanted: int, least: int) -> int:
        """Gangs that can be had, no more than are wanted; `least` are held and stay."""
        draws = self._draws.get(column, ())
        gangs = max(min([wanted, *(int(self._left[limit] // draw) for limit, draw in draws)]), least, 0)
        for limit, draw in draws:
            self._left[limit] -= gangs * draw
        return gangs


def filled(values: Floats, table: OfferTable, lots: Lots, caps: Caps, columns: Columns, order: Ints, room: Room) -> int:
    """Seats tasks on lots, in an order; tells how many have none."""
    place, left = table.place[lots.ways.row], caps.tasks
    regions = dict.fromkeys(place.tolist(), caps.per_region)
    for i in order.tolist():
        if left == 0 and not lots.least[i]:
            break
        each, here = int(columns.most_waves[i] * lots.seats[i]), int(place[i])
        tasks = min(left, regions[here])
        gangs = room.take(int(columns.gangs[i]), -(-tasks // each), int(lots.least[i]))
        tasks = min(tasks, gangs * each)
        values[columns.gangs[i]] = gangs
        values[columns.waves[i]] = max(-(-tasks // int(lots.seats[i])), gangs)
        values[columns.tasks[i]] += tasks
        left, regions[here] = left - tasks, regions[here] - tasks
    return left
