"""The plan of a workflow as JSON: what all steps come to together, and what each adds to its own plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from crucible.core.flow.proposal import Carried, FlowPlan, Placed
from crucible.engine.plan_view import PlanView, candidate_view, dollars, rounded
from crucible.model.spec import Step


def workflow_view(
    steps: Sequence[Step], views: Sequence[PlanView], made: FlowPlan, runnable: FlowPlan, now: datetime
) -> PlanView:
    """A plan chooses no machine for a workflow; its steps have them. What cannot be planned as one stands as each step
    by itself."""
    chosen = {placed.name: placed for placed in made.steps}
    bought = {placed.name: placed for placed in runnable.steps}
    listed = [
        {
            "name": step.name,
            "needs": step.needs,
            **view,
            **chosen_view("chosen", chosen.get(step.name), now),
            **chosen_view("runnable", bought.get(step.name), now),
            **times_view(chosen.get(step.name)),
        }
        for step, view in zip(steps, views, strict=True)
    ]
    return {
        "chosen": None,
        "alternatives": [],
        "rejections": [],
        "reason": None if made.blocked is None else made.blocked.reason,
        "steps": listed,
        "total": total_view(made),
        "runnable_total": total_view(runnable),
        "notes": [*made.notes, *left_out(steps, made)],
    }


def chosen_view(name: str, placed: Placed | None, now: datetime) -> Mapping[str, Any]:
    return {} if placed is None else {name: candidate_view(placed.candidate, now)}


def times_view(placed: Placed | None) -> Mapping[str, Any]:
    """When it would begin and end, from now on; of that the hours in which it fetches what it reads."""
    if placed is None:
        return {}
    return {
        "begins_hours": rounded(placed.begins_h),
        "ends_hours": rounded(placed.ends_h),
        "fetch_hours": rounded(placed.fetch_h),
        "fetch_cost_usd": dollars(placed.fetch_cost),
    }


def total_view(made: FlowPlan) -> dict[str, Any] | None:
    """None where nothing keeps the limits."""
    if made.blocked is not None:
        return None
    return {
        "estimated_cost_usd": dollars(made.cost),
        "estimated_hours": rounded(made.makespan_h),
        "moved_usd": dollars(made.moved),
        "fetch_usd": dollars(made.fetched),
        "bound": made.bound,
        "strategy": made.strategy,
        "carried": [carried_view(one) for one in made.carried],
    }


def carried_view(one: Carried) -> dict[str, Any]:
    return {
        "step": one.step,
        "from": one.source,
        "to": one.target,
        "size_gb": rounded(one.size_gib),
        "hours": rounded(one.hours),
        "cost_usd": dollars(one.cost),
    }


def left_out(steps: Sequence[Step], made: FlowPlan) -> list[str]:
    """Steps that run only if others fail cost nothing as long as none does."""
    names = {placed.name for placed in made.steps}
    rare = [step.name for step in steps if step.name not in names] if made.steps else []
    return [f"{', '.join(rare)} would run only if something fails, and is not in the total"] if rare else []
