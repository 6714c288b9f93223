"""Why a workflow has no plan: the step that nothing fits, or the limit of all steps that nothing keeps, and by how
much."""

from dataclasses import replace
from math import inf

import numpy as np

from crucible.core import plan
from crucible.core.flow.problem import SLIGHT, Problem
from crucible.core.flow.proposal import Blocked, FlowPlan
from crucible.core.flow.search import solve
from crucible.core.plan import Study
from crucible.model.spec import Strategy
from crucible.model.units import MICRO

# What an hour is worth where only hours count, in micro-dollars: so many that none is lost to rounding.
HOUR = 1e9
BUDGET, DEADLINE = "constraints.budget", "constraints.deadline"


def by_step(name: str, found: Study | None, objective: Strategy) -> FlowPlan:
    refused = [] if found is None else plan.refusals(found)
    nearest = max(refused, key=lambda one: one.rule, default=None)
    said = "nothing is for sale" if nearest is None else nearest.reason
    field = "" if nearest is None else nearest.rule.field
    return FlowPlan(strategy=objective, steps=(), blocked=Blocked(field=field, reason=f"step {name}: {said}"))


def by_limits(problem: Problem, objective: Strategy) -> FlowPlan:
    return FlowPlan(strategy=objective, steps=(), blocked=limit_of(problem))


def limit_of(problem: Problem) -> Blocked:
    """Each limit alone, then both."""
    soonest = solve(hurried(free(problem)))
    if soonest is not None and soonest.bound / HOUR > problem.deadline_h * (1 + SLIGHT):
        took, left = soonest.worth.makespan_h, problem.deadline_h
        said = (
            f"the fastest way through all steps takes {took:.3g} h, {took - left:.3g} h more than the deadline leaves"
        )
        return Blocked(field=DEADLINE, reason=said)
    cheapest = solve(thrifty(free(problem)))
    if cheapest is not None and cheapest.bound > problem.budget * (1 + SLIGHT):
        return Blocked(field=BUDGET, reason=f"all steps cost {dollars(cheapest.worth.money, problem)}")
    in_time = solve(thrifty(replace(problem, budget=inf)))
    if in_time is not None and problem.budget < inf:
        field = BUDGET
        said = f"within the deadline all steps cost {dollars(in_time.worth.money, problem)}"
    else:
        field, said = DEADLINE, "no choice was found in which every step keeps its deadline"
    return Blocked(field=field, reason=said)


def dollars(money: float, problem: Problem) -> str:
    over = (money - problem.budget) / MICRO
    return f"${money / MICRO:,.2f} at least, ${over:,.2f} more than the budget"


def free(problem: Problem) -> Problem:
    return replace(problem, deadline_h=inf, latest_h=(), budget=inf)


def hurried(problem: Problem) -> Problem:
    """Only the end of the last step counts."""
    labels = tuple(replace(some, value=np.zeros(len(some))) for some in problem.labels)
    return replace(problem, labels=labels, weight=0.0, hour=HOUR)


def thrifty(problem: Problem) -> Problem:
    """Only dollars count."""
    labels = tuple(replace(some, value=some.money) for some in problem.labels)
    return replace(problem, labels=labels, weight=1.0, hour=0.0)
