"""The invariants of a workflow's plan, stated a second time without the planner's code: every step has a place that
keeps its own rules and begins after what it needs, every tree that is read elsewhere is carried there once, the sums
are those of their parts, and no limit is passed."""

from crucible.core.check import check_candidate
from crucible.core.check_tasks import require
from crucible.core.cost import transfer_cost
from crucible.core.flow.proposal import FlowPlan, Placed
from crucible.core.flow.question import Flow, FlowStep
from crucible.core.offers import OfferTable
from crucible.core.proposal import Candidate
from crucible.model.spec import JobSpec
from crucible.model.units import GIB, MicroUsd

TINY_H = 1e-6
# Limits are kept but for the last bits of a sum.
SLIGHT = 1.00001


def check_flow(made: FlowPlan, flow: Flow, table: OfferTable) -> None:
    """Raises InvariantBroken."""
    if made.blocked is not None:
        require(not made.steps, "what cannot be planned has no places")
        return
    require([placed.name for placed in made.steps] == [step.name for step in flow.steps], "every step is answered")
    for placed, step in zip(made.steps, flow.steps, strict=True):
        check_step(placed, step, made, flow)
    check_carried(made, flow, table)
    check_sums(made)
    check_limits(made, flow)


def check_step(placed: Placed, step: FlowStep, made: FlowPlan, flow: Flow) -> None:
    if step.home is not None:
        require(placed.candidate is None and placed.home == step.home, "what has ended stays where it is")
        return
    candidate = placed.candidate
    require(candidate is not None, "every step has a place")
    assert candidate is not None
    if step.given is None:
        check_candidate(candidate, step.question.spec, 1, flow.now)
    else:
        require(candidate == step.given, "what was given stands")
    largest = max(candidate.parts, key=lambda part: part.count).listing.target
    require(placed.home == f"{largest.provider}/{largest.region}", "what it leaves is where it runs")
    for need in (*step.needs, *step.reads):
        require(placed.begins_h >= made.steps[need].ends_h - TINY_H, "a step begins after what it needs")
    if candidate.expected_h is not None:
        took = candidate.expected_h + placed.fetch_h
        require(placed.ends_h >= placed.begins_h + took * (1 - TINY_H) - TINY_H, "a step takes its hours")
    paid = candidate.price_per_hour * placed.fetch_h
    require(abs(placed.fetch_cost - paid) <= len(step.reads) + 1, "machines are paid for while they fetch")
    if candidate.cost is not None:
        require(placed.cost == candidate.cost + placed.fetch_cost, "a step costs its machines")
    check_deadline(placed, step.question.spec, flow)


def check_deadline(placed: Placed, spec: JobSpec, flow: Flow) -> None:
    deadline, candidate = spec.constraints.deadline, placed.candidate
    if deadline is not None and is_timed(candidate):
        left_h = (deadline - flow.now).total_seconds() / 3600
        require(placed.ends_h <= left_h * SLIGHT + TINY_H, "a step keeps its own deadline")


def is_timed(candidate: Candidate | None) -> bool:
    """Whether the hours of a step are known."""
    return candidate is not None and candidate.expected_h is not None


def check_carried(made: FlowPlan, flow: Flow, table: OfferTable) -> None:
    wanted: dict[tuple[str, str, str], int] = {}
    for number, step in enumerate(flow.steps):
        size = round((step.leaves_gib or 0.0) * GIB)
        for other, reader in enumerate(flow.steps):
            source, target = made.steps[number].home, made.steps[other].home
            if number in reader.reads and reader.home is None and size and source != target:
                wanted[step.name, source, target] = size
    found = [(one.step, one.source, one.target) for one in made.carried]
    require(sorted(found) == sorted(wanted), "what is read in another region is carried there, once")
    for one in made.carried:
        paid = transfer_cost(table, one.source, one.target, wanted[one.step, one.source, one.target])
        require(one.cost == (paid or MicroUsd(0)), "lanes cost what they cost")
    for number, step in enumerate(flow.steps):
        if step.home is None:
            lanes = {(one.step, one.source, one.target): one.hours for one in made.carried}
            homes = [(flow.steps[s].name, made.steps[s].home, made.steps[number].home) for s in step.reads]
            hours = sum(lanes.get(home, 0.0) for home in homes)
            require(abs(made.steps[number].fetch_h - hours) <= TINY_H * (1 + hours), "data takes its time")


def check_sums(made: FlowPlan) -> None:
    require(made.moved == sum(one.cost for one in made.carried), "all lanes are counted")
    require(made.fetched == sum(step.fetch_cost for step in made.steps), "all waiting is counted")
    costs = [step.cost for step in made.steps]
    known = [cost for cost in costs if cost is not None]
    whole = sum(known) + made.moved if len(known) == len(costs) else None
    require(made.cost == whole, "the cost is that of all steps and lanes")
    if made.makespan_h is not None:
        last = max((step.ends_h for step in made.steps), default=0.0)
        require(abs(made.makespan_h - last) <= TINY_H * (1 + last), "the last step decides the hours")
    require(made.bound >= 0, "a bound is a share")


def check_limits(made: FlowPlan, flow: Flow) -> None:
    limits = flow.limits
    if made.cost is None or made.makespan_h is None:
        return
    require(limits.budget is None or made.cost <= limits.budget * SLIGHT, "all steps together keep the budget")
    if limits.deadline is not None:
        left_h = (limits.deadline - flow.now).total_seconds() / 3600
        require(made.makespan_h <= left_h * SLIGHT + TINY_H, "the last step ends before the deadline")
