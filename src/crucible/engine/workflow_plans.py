"""The plan of a workflow: what each step could run on by itself, and what is best for all of them together. A step that
nothing could ever run keeps the whole workflow out."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from crucible.core import admission
from crucible.core.datasets import with_pin
from crucible.engine.answers import Planned
from crucible.engine.checkpoint_place import check_place
from crucible.engine.context import Context
from crucible.engine.datasets import Datasets
from crucible.engine.flow_view import workflow_view
from crucible.engine.plan_view import PlanView, plan_view
from crucible.engine.planner import Planner
from crucible.model.encoding import encode
from crucible.model.errors import InvalidRequest
from crucible.model.spec import JobSpec, Step, Strategy
from crucible.model.units import MicroUsd


class WorkflowPlans:
    def __init__(self, context: Context, planner: Planner, datasets: Datasets) -> None:
        self._context = context
        self._planner = planner
        self._datasets = datasets

    async def admit(self, spec: JobSpec) -> Planned:
        """Raises InvalidRequest and its kinds, with the name of the step. Nobody is refused because all steps together
        pass a limit: those whose earlier results stand take neither time nor money."""
        made, jobs = [], []
        for number, step in enumerate(spec.steps):
            with told_of(number, step):
                admission.admit(step.job, self._context.clock.now())
                job = await self._pinned(step.job)
                await check_place(self._context, job)
                made.append(await self._planner.admit(job))
                jobs.append(job)
        views = [json.loads(one.text) for one in made]
        best, bought = await self._planner.flow(spec, jobs)
        text = json.dumps(encode(workflow_view(spec.steps, views, best, bought, self._context.clock.now())))
        return Planned(text, None, bought.cost if bought.blocked is None else cost_of(made))

    async def view(self, spec: JobSpec, strategy: Strategy | None) -> PlanView:
        views, now = [], self._context.clock.now()
        jobs = [await self._pinned(step.job) for step in spec.steps]
        for job in jobs:
            made, cpu_ms = await self._planner.propose(job, strategy)
            views.append(plan_view(made, now, cpu_ms, self._planner.dead_man(made)))
        return workflow_view(spec.steps, views, *await self._planner.flow(spec, jobs, strategy), now)

    async def _pinned(self, job: JobSpec) -> JobSpec:
        pin = await self._datasets.pin(job)
        return with_pin(job, None if pin is None else pin.uri)


def cost_of(made: Sequence[Planned]) -> MicroUsd | None:
    """Of steps that were planned one by one."""
    costs = [None if one.expected is None else one.expected.estimated_cost for one in made]
    known = [cost for cost in costs if cost is not None]
    return MicroUsd(sum(known)) if len(known) == len(costs) else None


@contextmanager
def told_of(number: int, step: Step) -> Iterator[None]:
    """What is refused says for which step."""
    try:
        yield
    except InvalidRequest as error:
        field = str(error.details.get("field", "job")).removeprefix("job").removeprefix(".")
        where = f"job.steps[{number}]" + (f".{field}" if field else "")
        raise type(error)(f"step {step.name}: {error.message}", **{**error.details, "field": where}) from error
