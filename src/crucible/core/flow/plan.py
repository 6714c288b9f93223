"""One plan for a workflow: for every step the way that makes all of them together best, with the data between them,
within the workflow's budget and deadline. Pure, and always done soon: what is not proven best says how far from it it
can be. No gang is mixed of spot and on demand, and own machines are planned as if steps that run at the same time did
not share them."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from math import inf

import numpy as np

from crucible.core import cost, plan
from crucible.core.candidates import SECONDS
from crucible.core.cost import Lanes
from crucible.core.flow import blocked
from crucible.core.flow.labels import Aim, Reach, given, labels_of, single, trimmed
from crucible.core.flow.links import Prices
from crucible.core.flow.problem import Labels, Problem, Tree, order_of
from crucible.core.flow.proposal import FlowPlan
from crucible.core.flow.question import Flow, FlowStep, Studied
from crucible.core.flow.search import Found, solve
from crucible.core.flow.thinning import floor, kept_of
from crucible.core.flow.told import told
from crucible.core.offers import Ints, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Question, Study
from crucible.model.spec import Constraints, Strategy
from crucible.model.units import GIB

# Pairs of ways that are looked at together, of all trees; where it matters when steps end, fewer. Of each step as many
# ways as this allows. What is left out for this counts in the bound.
MOST_PAIRS = 2_500_000
MOST_TIMED_PAIRS = 80_000


def study(flow: Flow, table: OfferTable, book: SpeedBook) -> Studied:
    known: list[tuple[Question, Study]] = []
    studies: list[Study | None] = []
    for step in flow.steps:
        if step.given is not None or step.home is not None:
            studies.append(None)
            continue
        found = next((one for asked, one in known if asked == step.question), None)
        if found is None:
            found = plan.study(step.question, table, book)
            known.append((step.question, found))
        studies.append(found)
    return Studied(flow, table, tuple(studies))


def propose(studied: Studied, *, is_enabled: bool = False) -> FlowPlan:
    """`is_enabled`: only what may be bought."""
    aim = aim_of(studied)
    made = chosen(studied, aim, is_enabled, leads=True)
    if made.blocked is None or not any(leading(step) for step in studied.flow.steps):
        return made
    free = chosen(studied, aim, is_enabled, leads=False)
    if free.blocked is not None:
        return made
    return replace(free, notes=(*free.notes, f"{aim.objective} gives way to budget and deadline"))


def leading(step: FlowStep) -> bool:
    return step.question.objective in (Strategy.OWN_FIRST, Strategy.NEAR_DATA, Strategy.RELIABLE)


def aim_of(studied: Studied) -> Aim:
    flow = studied.flow
    has_deadline = studied.is_timed and any(
        limits.deadline is not None
        for limits in (flow.limits, *(step.question.spec.constraints for step in flow.steps))
    )
    weight = flow.limits.performance_weight
    aim = Aim(objective=flow.objective, performance_weight=weight)
    is_timed = has_deadline or flow.objective is Strategy.FASTEST or (aim.is_weighed and weight > 0)
    return replace(aim, is_timed=is_timed)


def chosen(studied: Studied, aim: Aim, is_enabled: bool, *, leads: bool) -> FlowPlan:
    labels = all_labels(studied, aim, is_enabled, leads=leads)
    for number, some in enumerate(labels):
        if not len(some):
            return blocked.by_step(studied.flow.steps[number].name, studied.studies[number], aim.objective)
    problem = problem_of(studied, aim, labels)
    most = MOST_TIMED_PAIRS if problem.is_timed else MOST_PAIRS
    ways = int((most / max(1, sum(len(tree.readers) for tree in problem.trees))) ** 0.5)
    kept = kept_of(problem, ways, ways // 8)
    found = best(problem, kept, aim)
    few = problem.only(kept)
    return blocked.by_limits(few, aim.objective) if found is None else told(studied, few, found, aim.objective)


def best(problem: Problem, kept: Sequence[Ints], aim: Aim) -> Found | None:
    """Among the ways that are kept. The fastest is the soonest done; of those the best balance."""
    if aim.objective is not Strategy.FASTEST:
        return bounded(problem, kept)
    soonest = bounded(blocked.hurried(problem), kept)
    if soonest is None:
        return None
    problem = problem.only(kept)
    last = soonest.worth.makespan_h
    balanced = solve(replace(problem, deadline_h=min(problem.deadline_h, last), hour=0.0))
    choice = soonest.choice if balanced is None else balanced.choice
    # How far it can be from the optimum is told of its hours.
    return replace(soonest, choice=choice)


def bounded(problem: Problem, kept: Sequence[Ints]) -> Found | None:
    """What is not kept counts in the bound."""
    found = solve(problem.only(kept))
    if found is None:
        return None
    free = Prices(np.zeros(len(kept)))
    lowest = max(floor(problem, kept, found.prices, found.earned), floor(problem, kept, free, 0.0))
    return replace(found, bound=min(found.bound, lowest))


# --- the problem --------------------------------------------------------------------------------------------


def all_labels(studied: Studied, aim: Aim, is_enabled: bool, *, leads: bool) -> list[Labels]:
    """Those that read come first: what they cost an hour says how dear it can be to keep them waiting."""
    flow, table = studied.flow, studied.table
    made: dict[int, Labels] = {}
    known: dict[int, tuple[Reach, Labels]] = {}  # by study
    for number in reversed(in_order(flow.steps)):
        step, found = flow.steps[number], studied.studies[number]
        if found is not None:
            reach = reach_of(flow, number, made)
            wide, every = known.get(id(found), (Reach(), None))
            if every is None or not wide.covers(reach):
                is_shared = sum(one is found for one in studied.studies) > 1
                for other, one in enumerate(studied.studies) if is_shared else ():
                    wide = wide.beyond(reach_of(flow, other, {})) if one is found else wide
                wide = wide.beyond(reach) if is_shared else reach
                every = labels_of(found, aim, wide, is_enabled=is_enabled, leads=leads)
                known[id(found)] = wide, every
            made[number] = trimmed(every, table, aim, reach) if wide != reach else every
        elif step.home is not None:
            made[number] = single(place=cost.place_of(table, step.home))
        else:
            assert step.given is not None
            made[number] = given(step.given, table)
    return [made[number] for number in range(len(flow.steps))]


def in_order(steps: Sequence[FlowStep]) -> tuple[int, ...]:
    return order_of(tuple((*step.needs, *step.reads) for step in steps))


def reach_of(flow: Flow, number: int, made: dict[int, Labels]) -> Reach:
    readers = [other for other, step in enumerate(flow.steps) if number in step.reads]
    return Reach(
        reads=sum(gigabytes(flow.steps[source]) for source in flow.steps[number].reads),
        leaves=gigabytes(flow.steps[number]) if readers else 0.0,
        readers=len(readers),
        readers_price=sum(float(made[reader].price.max(initial=0.0)) for reader in readers if reader in made),
    )


def gigabytes(step: FlowStep) -> float:
    return size_bytes(step) / cost.GB


def size_bytes(step: FlowStep) -> int:
    return round((step.leaves_gib or 0.0) * GIB)


def problem_of(studied: Studied, aim: Aim, labels: Sequence[Labels]) -> Problem:
    flow, limits = studied.flow, studied.flow.limits
    places, local = np.unique(np.concatenate([some.place for some in labels]), return_inverse=True)
    ends = np.cumsum([len(some) for some in labels])[:-1]
    parts = np.split(local.reshape(-1), ends)
    is_timed = studied.is_timed
    deadline_h = until(limits, flow.now) if is_timed else inf
    latest = tuple(until(step.question.spec.constraints, flow.now) for step in flow.steps) if is_timed else ()
    return Problem(
        labels=tuple(by_place(replace(some, place=part)) for some, part in zip(labels, parts, strict=True)),
        needs=tuple(tuple(sorted({*step.needs, *step.reads})) for step in flow.steps),
        trees=trees_of(studied, places),
        weight=aim.weight,
        hour=hour_of(studied, aim),
        deadline_h=deadline_h,
        latest_h=latest if min(latest, default=inf) < deadline_h else (),
        budget=float(limits.budget) if limits.budget is not None and is_timed else inf,
    )


def by_place(labels: Labels) -> Labels:
    return labels.take(np.argsort(labels.place, kind="stable"))


def until(limits: Constraints, now: datetime) -> float:
    return inf if limits.deadline is None else (limits.deadline - now).total_seconds() / SECONDS


def trees_of(studied: Studied, places: Ints) -> tuple[Tree, ...]:
    """Where nobody knows a home, carrying costs nothing."""
    steps, lanes = studied.flow.steps, cost.lanes(studied.table)
    known = places >= 0
    at = np.ix_(np.where(known, places, 0), np.where(known, places, 0))
    is_known = known[:, None] & known[None, :]
    usd, hours = (np.where(is_known, lane[at], 0.0) if len(lane) else np.zeros(is_known.shape)
                  for lane in (lanes.usd, lanes.hours))  # fmt: skip
    made = []
    for number, step in enumerate(steps):
        readers = tuple(other for other, reader in enumerate(steps) if number in reader.reads and reader.home is None)
        size = size_bytes(step)
        if readers and size:
            made.append(Tree(source=number, readers=readers, size_bytes=size, lanes=Lanes(usd, hours)))
    return tuple(made)


def hour_of(studied: Studied, aim: Aim) -> float:
    """An hour of the whole, as the strategy weighs it: the fastest is worth as much as the cheapest."""
    if not aim.is_weighed or aim.performance_weight == 0 or aim.objective is Strategy.FASTEST:
        return 0.0
    views = [None if found is None else found.view for found in studied.studies]
    took = [0.0 if view is None else view.least_h for view in views]
    ends: dict[int, float] = {}
    for number in in_order(studied.flow.steps):
        step = studied.flow.steps[number]
        ends[number] = took[number] + max((ends[need] for need in (*step.needs, *step.reads)), default=0.0)
    least = sum(0.0 if view is None else view.least_cost for view in views)
    return aim.performance_weight * least / max(max(ends.values(), default=0.0), 1e-9)
