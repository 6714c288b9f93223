"""The plan of a workflow: each step planned by itself, and what all of them are expected to cost. A step that nothing
could ever run keeps the whole workflow out."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crucible.core import admission
from crucible.core.datasets import with_pin
from crucible.engine.answers import Planned
from crucible.engine.checkpoint_place import check_place
from crucible.engine.context import Context
from crucible.engine.datasets import Datasets
from crucible.engine.plan_view import PlanView, plan_view
from crucible.engine.planner import Planner
from crucible.model.errors import InvalidRequest
from crucible.model.spec import JobSpec, Step, Strategy
from crucible.model.units import MicroUsd


class WorkflowPlans:
    def __init__(self, context: Context, planner: Planner, datasets: Datasets) -> None:
        self._context = context
        self._planner = planner
        self._datasets = datasets

    async def admit(self, spec: JobSpec) -> Planned:
        """Raises InvalidRequest and its kinds, with the name of the step."""
        made = []
        for number, step in enumerate(spec.steps):
            with told_of(number, step):
                admission.admit(step.job, self._context.clock.now())
                job = await self._pinned(step.job)
                await check_place(self._context, job)
                made.append(await self._planner.admit(job))
        views = [json.loads(one.text) for one in made]
        costs = [None if one.expected is None else one.expected.estimated_cost for one in made]
        known = [cost for cost in costs if cost is not None]
        total = MicroUsd(sum(known)) if len(known) == len(costs) else None
        return Planned(json.dumps(workflow_view(spec.steps, views)), None, total)

    async def view(self, spec: JobSpec, strategy: Strategy | None) -> PlanView:
        views = []
        for step in spec.steps:
            made, cpu_ms = await self._planner.propose(await self._pinned(step.job), strategy)
            views.append(plan_view(made, self._context.clock.now(), cpu_ms, self._planner.dead_man(made)))
        return workflow_view(spec.steps, views)

    async def _pinned(self, job: JobSpec) -> JobSpec:
        pin = await self._datasets.pin(job)
        return with_pin(job, None if pin is None else pin.uri)


def workflow_view(steps: Sequence[Step], views: Sequence[PlanView]) -> PlanView:
    """A plan chooses no machine for a workflow; its steps have them."""
    listed = [{"name": step.name, "needs": step.needs, **view} for step, view in zip(steps, views, strict=True)]
    return {"chosen": None, "alternatives": [], "rejections": [], "reason": None, "steps": listed, "notes": []}


@contextmanager
def told_of(number: int, step: Step) -> Iterator[None]:
    """What is refused says for which step."""
    try:
        yield
    except InvalidRequest as error:
        field = str(error.details.get("field", "job")).removeprefix("job").removeprefix(".")
        where = f"job.steps[{number}]" + (f".{field}" if field else "")
        raise type(error)(f"step {step.name}: {error.message}", **{**error.details, "field": where}) from error
