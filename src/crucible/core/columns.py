"""The columns and limits of a program for many tasks: gangs of each lot, their waves, and the tasks that they run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

import numpy as np

from crucible.core import fronts
from crucible.core.goals import Goal, dollars
from crucible.core.integer import Model
from crucible.core.lots import UNLIMITED, Lots
from crucible.core.offers import Floats, Ints, OfferTable
from crucible.core.quota import drawn, is_under
from crucible.model.quota import Quota


class Family(StrEnum):
    """Limits of one kind."""

    BUDGET = "budget"
    PRICE = "price per hour"
    QUOTA = "quota"
    ROOM = "room"
    SEATS = "tasks at a time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    tasks: int
    at_once: int = UNLIMITED  # tasks at a time
    per_region: int = UNLIMITED  # tasks
    budget: float = inf
    price: float = inf  # of everything for an hour
    quotas: tuple[Quota, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Per lot. Lots whose tasks count alike have one column for them."""

    gangs: Ints
    waves: Ints  # of all gangs together; the column of the gangs where each has one
    tasks: Ints
    most_waves: Ints  # of one gang


def columns_of(model: Model, table: OfferTable, lots: Lots, caps: Caps, goals: Sequence[Goal]) -> Columns:
    useful = -(-caps.tasks // lots.seats)  # more gangs or waves have nothing to do
    high = np.maximum(useful, lots.least)  # what can be had of it is a limit, which may give way
    gangs = model.add(lots.least, high)
    most_waves = np.minimum(lots.waves, useful)
    several = np.flatnonzero(most_waves > 1)
    waves = gangs.copy()
    waves[several] = model.add(lots.least[several], high[several])
    model.limit_pairs(gangs[several], -most_waves[several].astype(np.float64), waves[several])
    region = table.place[lots.ways.row] if caps.per_region < caps.tasks else np.zeros(len(lots), dtype=np.int64)
    alike = fronts.numbered(region, fronts.numbered(*(goal.task for goal in (*goals, dollars(lots)))))
    tasks = model.add(np.zeros(alike.max() + 1), np.full(alike.max() + 1, caps.tasks), is_whole=False)
    return Columns(gangs, waves, tasks[alike], most_waves)


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over columns that is no more than `most`."""

    family: Family
    name: str
    most: float
    columns: Ints
    factors: Floats


def place_tasks(model: Model, table: OfferTable, lots: Lots, caps: Caps, columns: Columns) -> None:
    """All of them, on seats, within the share of a region."""
    classes, firsts = np.unique(columns.tasks, return_index=True)
    model.limit(caps.tasks, caps.tasks, classes, np.ones(len(classes)))
    for column in classes.tolist():
        mine = np.flatnonzero(columns.tasks == column)
        seats = -np.minimum(lots.seats[mine], caps.tasks).astype(np.float64)
        model.limit(-inf, 0.0, np.append(columns.waves[mine], column), np.append(seats, 1.0))
    if caps.per_region < caps.tasks:
        region = table.place[lots.ways.row[firsts]]
        for code in np.unique(region).tolist():
            here = classes[region == code]
            model.limit(-inf, caps.per_region, here, np.ones(len(here)))


def sums(table: OfferTable, lots: Lots, caps: Caps, columns: Columns) -> Iterator[Sum]:
    rows, gangs = lots.ways.row, columns.gangs
    for stock, free in enumerate(table.free_gpus):
        mine = np.flatnonzero((table.stock[rows] == stock) & (lots.source >= 0))  # what is held has been taken
        if len(mine):
            taken = lots.ways.nodes[mine] * table.shapes.gpus[table.shape[rows[mine]]]
            yield Sum(Family.ROOM, f"GPUs of {table.stocks[stock]}", free, gangs[mine], taken.astype(np.float64))
    for source in np.unique(lots.source[lots.most < UNLIMITED]).tolist():
        mine = np.flatnonzero(lots.source == source)
        name = f"machines of {table.id_of(int(rows[mine[0]]))}"
        yield Sum(Family.ROOM, name, int(lots.most[mine[0]]), gangs[mine], np.ones(len(mine)))
    for quota in caps.quotas:
        mine = np.flatnonzero(is_under(quota, table, rows))
        if len(mine):
            draws = drawn(quota, table, rows[mine], lots.ways.nodes[mine])
            yield Sum(Family.QUOTA, str(quota), quota.left, gangs[mine], draws)
    if np.isfinite(caps.price):
        yield Sum(Family.PRICE, "", caps.price, gangs, lots.ways.price.astype(np.float64))
    if np.isfinite(caps.budget):
        yield Sum(Family.BUDGET, "", caps.budget, *summed(columns, dearest(table, lots)))
    if caps.at_once < caps.tasks:
        yield Sum(Family.SEATS, "", caps.at_once, gangs, lots.seats.astype(np.float64))


def dearest(table: OfferTable, lots: Lots) -> Goal:
    """What they cost at most, however their bills are rounded."""
    money, seller = dollars(lots), table.seller[lots.ways.row]
    unit = lots.ways.price * table.sellers.unit_s[seller] / 3600
    return replace(money, gang=money.gang + np.where(lots.waves > 1, np.maximum(unit, lots.rounding), 0.0))


def summed(columns: Columns, goal: Goal) -> tuple[Ints, Floats]:
    """Each column once."""
    cost = np.zeros(int(columns.tasks.max()) + 1)
    np.add.at(cost, columns.gangs, goal.gang)
    np.add.at(cost, columns.waves, goal.wave)
    cost[columns.tasks] = goal.task
    used = np.flatnonzero(cost)
    return used, cost[used]


def cost_of(model: Model, columns: Columns, goal: Goal) -> Floats:
    used, factors = summed(columns, goal)
    cost = np.zeros(model.size)
    cost[used] = factors
    return cost
