"""Different tasks planned as one: groups of equal ones that share own machines, quotas, the price per hour and the
budget. One integer program for all groups; of many, what its relaxation says is rounded, mended and searched around,
and how far from the optimum that can be is told."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import TypeVar

import numpy as np

from crucible.core import fleets, plan, spread
from crucible.core.columns import Caps, Columns, Family, Sum, columns_of, cost_of, place_tasks, sums
from crucible.core.fleet_told import NOTHING, told
from crucible.core.goals import Goal, dollars, goals_of, per_seat
from crucible.core.integer import Model, Solved
from crucible.core.lots import Lots, joined
from crucible.core.offers import Floats, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Question, Study
from crucible.core.program import KEPT, Room, answer, filled, prepared
from crucible.core.proposal import Candidate
from crucible.model.quota import Quota
from crucible.model.spec import Constraints, JobSpec, Strategy
from crucible.model.units import MicroUsd

T = TypeVar("T", MicroUsd, datetime)

# Up to so many tasks are searched to the end; of more, so far from the optimum is good enough.
SMALL = 20
NEAR = 0.005
# Columns that are searched beside those that the relaxation uses: so many in all, or so many of each group.
SEARCHED = 5_000
BESIDE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    placed: tuple[Candidate, ...]  # one for each group, in their order; none if nothing keeps the limits
    cost: MicroUsd | None  # of all; None where somebody's hours are unknown
    price_per_hour: MicroUsd
    bound: float  # at most so far from the optimum, as a share
    why_not: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What is known of equal tasks, and what may be part of an optimum for them."""

    spec: JobSpec
    found: Study
    lots: Lots
    caps: Caps

    def in_waves(self, waves: int) -> "Group":
        """Who has a deadline works until then."""
        is_timed = fleets.left_h(self.found) is not None
        return self if is_timed else replace(self, lots=fleets.in_waves(self.lots, waves))


def propose_mixed(
    question: Question,
    groups: Sequence[tuple[JobSpec, int]],
    table: OfferTable,
    book: SpeedBook,
    quotas: Sequence[Quota] = (),
) -> Mixture:
    """The spec of the question says what is for all groups together: budget, deadline, price per hour and strategy.
    Each group keeps what its own spec says as well. Without a deadline all tasks run at the same time, or in as few
    waves as there is room for, doubling."""
    quotas = (*table.quotas, *quotas)
    made = [group_of(question, spec, count, table, book, quotas) for spec, count in groups]
    if not made:
        return nothing("there are no tasks")
    for number, group in enumerate(made):
        if not len(group.lots):
            return nothing(f"group {number + 1}: {nearest(group.found)}")
    most = max(group.caps.tasks for group in made)
    waves = 1
    while True:
        found = solved(question, [group.in_waves(waves) for group in made], table, quotas)
        if found is not None:
            return found
        if waves >= most:
            return nothing("together the groups pass a limit: own machines, quotas, price per hour or budget")
        waves = min(2 * waves, most)


def nothing(why_not: str) -> Mixture:
    return Mixture(placed=(), cost=None, price_per_hour=MicroUsd(0), bound=0.0, why_not=why_not)


def nearest(found: Study) -> str:
    refused = max(plan.refusals(found), key=lambda one: one.rule, default=None)
    return "nothing is for sale" if refused is None else refused.reason


def group_of(
    question: Question, spec: JobSpec, count: int, table: OfferTable, book: SpeedBook, quotas: Sequence[Quota]
) -> Group:
    """What is for all is for each as well."""
    ours, own = question.spec.constraints, spec.constraints
    limits = replace(
        own,
        deadline=least(own.deadline, ours.deadline),
        budget=least(own.budget, ours.budget),
        max_price_per_hour=least(own.max_price_per_hour, ours.max_price_per_hour),
    )
    asked = replace(question, spec=replace(spec, constraints=limits), strategy=aim(question.objective))
    found = plan.study(spread.of_one_task(asked, count), table, book)
    caps = spread.caps_of(asked, found, count, quotas)
    return Group(spec=spec, found=found, lots=fleets.useful(found, caps, is_by_region=False), caps=caps)


def least(one: T | None, other: T | None) -> T | None:
    return other if one is None else one if other is None else min(one, other)


def aim(strategy: Strategy) -> Strategy:
    """Among different tasks there is no last one to be fast for, and no share of a region to keep."""
    return {Strategy.FASTEST: Strategy.BALANCED, Strategy.SPREAD: Strategy.CHEAPEST}.get(strategy, strategy)


# --- the program ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """The columns of one group."""

    group: Group
    lots: Lots
    goals: Sequence[Goal]
    columns: Columns


def solved(question: Question, groups: Sequence[Group], table: OfferTable, quotas: Sequence[Quota]) -> Mixture | None:
    model, blocks = Model(), []
    most = max(len(goals_of(group.found, group.lots, group.caps.tasks)) for group in groups)
    for group in groups:
        lots, goals = prepared(group.lots, group.caps, in_dollars(group, most))
        if not len(lots):
            return None
        columns = columns_of(model, table, lots, group.caps, goals)
        place_tasks(model, table, lots, group.caps, columns)
        blocks.append(Block(group, lots, goals, columns))
    limits = [*shared(question, blocks, table, quotas), *(one for block in blocks for one in alone(block, table))]
    for one in limits:
        model.limit(-inf, one.most, one.columns, one.factors)
    found = searched(model, blocks, table, limits, most)
    return None if found is None else mixture(blocks, found)


def in_dollars(group: Group, most: int) -> list[Goal]:
    """Balanced is a share of what a group costs at least: as dollars, groups can be added. All have as many goals."""
    found, lots, tasks = group.found, group.lots, group.caps.tasks
    *firsts, last = goals_of(found, lots, tasks)
    scale = 1.0
    if found.question.objective is not Strategy.CHEAPEST:
        scale = plan.least(per_seat(dollars(lots), lots)) * tasks
    zero = np.zeros(len(lots))
    padding = [Goal(zero, zero, zero)] * (most - 1 - len(firsts))
    return [*padding, *firsts, Goal(last.gang * scale, last.wave * scale, last.task * scale)]


def shared(question: Question, blocks: Sequence[Block], table: OfferTable, quotas: Sequence[Quota]) -> Iterator[Sum]:
    """Own machines, quotas, price per hour and budget of all groups together."""
    limits: Constraints = question.spec.constraints
    caps = Caps(
        tasks=sum(block.group.caps.tasks for block in blocks),
        budget=inf if limits.budget is None else float(limits.budget),
        price=inf if limits.max_price_per_hour is None else float(limits.max_price_per_hour),
        quotas=tuple(quotas),
    )
    every = Columns(*(np.concatenate([getattr(block.columns, name) for block in blocks]) for name in Columns.__slots__))
    return sums(table, joined([block.lots for block in blocks]), caps, every)


def alone(block: Block, table: OfferTable) -> Iterator[Sum]:
    """What a group has of its own."""
    limits = block.group.spec.constraints
    given = {
        Family.BUDGET: limits.budget is not None,
        Family.PRICE: limits.max_price_per_hour is not None,
        Family.SEATS: True,
    }
    for one in sums(table, block.lots, replace(block.group.caps, quotas=()), block.columns):
        if given.get(one.family):
            yield one


def searched(
    model: Model, blocks: Sequence[Block], table: OfferTable, limits: Sequence[Sum], goals: int
) -> Solved | None:
    """By one goal after the other; each keeps what the ones before it found."""
    is_small = sum(block.group.caps.tasks for block in blocks) <= SMALL
    few = max(SEARCHED, BESIDE * len(blocks))
    found: Solved | None = None
    for number in range(goals):
        cost = np.zeros(model.size)
        for block in blocks:
            cost += cost_of(model, block.columns, block.goals[number])
        relaxed = model.relaxed(cost)
        if relaxed is None:
            return None
        start = mended(model, blocks, table, limits, relaxed) if found is None else found.values
        found = model.minimise(cost, start, 0.0 if is_small else NEAR, few, relaxed)
        if found is None:
            return None
        used = np.flatnonzero(cost)
        model.limit(-inf, found.least + KEPT * max(abs(found.least), 1.0), used, cost[used])
    return found


def mended(
    model: Model, blocks: Sequence[Block], table: OfferTable, limits: Sequence[Sum], relaxed: Solved
) -> Floats | None:
    """The relaxation in whole numbers: each group takes what that uses most, then what it finds least too dear, as far
    as there is room. Who has the fewest choices takes first. None if somebody is left over."""
    values, room = np.zeros(model.size), Room(limits)
    for block in sorted(blocks, key=lambda one: len(one.lots)):
        columns = block.columns
        dear = relaxed.dearness[columns.gangs] + columns.most_waves * relaxed.dearness[columns.waves]
        order = np.lexsort((dear, -relaxed.values[columns.waves]))
        if filled(values, table, block.lots, block.group.caps, columns, order, room):
            return None
    return values


def mixture(blocks: Sequence[Block], found: Solved) -> Mixture:
    placed = tuple(told(block.group.found, answer(block.lots, block.columns, found, {})) for block in blocks)
    costs = [one.cost for one in placed]
    is_timed = all(cost is not None for cost in costs)
    far = 1 - found.bound / found.least if found.least > 0 else 0.0
    return Mixture(
        placed=placed,
        cost=MicroUsd(sum(cost or 0 for cost in costs)) if is_timed else None,
        price_per_hour=MicroUsd(sum(one.price_per_hour for one in placed)),
        bound=far if far > NOTHING else 0.0,
    )
