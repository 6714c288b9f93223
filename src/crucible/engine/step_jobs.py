"""How a step begins: with what it is given, by an earlier result that may stand for it, or by a job of its own that
goes through the same admission as everybody's."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from crucible import spec as specs
from crucible.core import reuse
from crucible.core import task as tasks
from crucible.core.handing import Handed, source_of
from crucible.core.workflow import Part
from crucible.engine.context import Context
from crucible.engine.spending import so_far_of
from crucible.model.change import changed
from crucible.model.dataset import Pin
from crucible.model.errors import InvalidRequest, NotFound, PlatformError, StaleVersion
from crucible.model.ids import Digest, JobId
from crucible.model.job import Job
from crucible.model.record import Record
from crucible.model.retention import Source
from crucible.model.spec import JobSpec, Step
from crucible.model.task import Task, TaskAdvanced, TaskEnded, TaskEvent, TaskGiven, TaskPhase, Verdict
from crucible.model.units import MicroUsd, usd

# What failed for the moment is tried again after so long.
AGAIN_AFTER = timedelta(seconds=10)

Begin = Callable[[Job, Task, Sequence[TaskEvent], str], Awaitable[Job]]
Pinning = Callable[[JobSpec], Awaitable[Pin | None]]
Gather = Callable[[Step, Mapping[str, Part]], Awaitable[Handed]]


class StepJobs:
    def __init__(self, context: Context, gather: Gather, pin: Pinning, submit: Begin) -> None:
        """`gather` finds what a step is given, `pin` the tree that a dataset means now; `submit` makes the job of a
        step, together with what that means for the step's task, or neither."""
        self._context = context
        self._gather = gather
        self._pin = pin
        self._submit = submit

    async def begin(self, job: Job, part: Part, parts: Mapping[str, Part]) -> None:
        """Raises StaleVersion. What nobody can mend by waiting ends the step; anything else is tried again."""
        now = self._context.clock.now()
        try:
            await self._begin(job, part, parts)
        except InvalidRequest as error:
            said = error.message.removeprefix("the job spec is not valid: ")
            await self._record(part.task, (TaskEnded(now, TaskPhase.FAILED, f"{part.step.name}: {said}"),))
        except StaleVersion:
            raise
        except PlatformError as error:
            await self._record(part.task, (TaskAdvanced(now, TaskPhase.WAITING, now + AGAIN_AFTER, error.message),))

    async def _begin(self, job: Job, part: Part, parts: Mapping[str, Part]) -> None:
        step, task = part.step, part.task
        handed = await self._gather(step, parts)
        key = await self._key(job, step, handed)
        found = await self._taken_over(part) or await self._known(part, key)
        if found is not None:
            await self._reuse(task, *found)
            return
        given = {"name": f"{job.name}/{step.name}", **handed.fields(), **await self._budget(job, step)}
        text = specs.step_text(job.spec_yaml, task.index, given)
        params = {**params_of(task), **({"key": key} if step.cache else {})}
        now = self._context.clock.now()
        await self._submit(job, task, (TaskGiven(now, params), TaskAdvanced(now, TaskPhase.WAITING, None)), text)

    async def _key(self, job: Job, step: Step, handed: Handed) -> Digest:
        """A dataset counts by what is in it."""
        pin = await self._pin(step.job)
        seen = {**handed.seen, "dataset": None if pin is None else pin.digest}
        return reuse.cache_key(job.user_id, step, job.code_digest, seen)

    # --- earlier results ----------------------------------------------------------------------------------

    async def _taken_over(self, part: Part) -> tuple[JobId, Task | None] | None:
        """The result that this step had in the workflow that is run again from a later step; None if it had none."""
        origin = params_of(part.task).get("from")
        if origin is None:
            return None
        children = {child.step: child for child in await self._context.store.child_jobs(JobId(origin))}
        for task in await self._context.store.job_tasks(JobId(origin)):
            job_id = source_of(Part(part.step, task, children.get(task.index)))
            if params_of(task).get("step") == part.step.name and job_id is not None:
                return job_id, task
        return None

    async def _known(self, part: Part, key: Digest) -> tuple[JobId, Task | None] | None:
        """A result under the same key, if what it left is still there."""
        if not part.step.cache or params_of(part.task).get("again"):
            return None
        found = await self._context.store.step_result(key)
        if found is None:
            return None
        if found.outputs is not None and await self._context.store.output(found.job_id, 0) is None:
            return None
        return found.job_id, await self._only_task(found.job_id)

    async def _only_task(self, job_id: JobId) -> Task | None:
        try:
            work = [task for task in await self._context.store.job_tasks(job_id) if task.index >= 0]
        except NotFound:
            return None
        return work[0] if len(work) == 1 else None

    async def _reuse(self, task: Task, job_id: JobId, came: Task | None) -> None:
        now = self._context.clock.now()
        ended = TaskEnded(
            now,
            TaskPhase.SUCCEEDED,
            f"as in job {job_id}",
            Verdict.REUSED,
            value=came.value if came else None,
            metrics=came.metrics if came else {},
            outputs=came.outputs if came else None,
        )
        has_its = Source(source=job_id, job_id=task.job_id)
        await self._record(task, (TaskGiven(now, {**params_of(task), "job": job_id}), ended), (has_its,))

    # --- money ------------------------------------------------------------------------------------------------

    async def _budget(self, job: Job, step: Step) -> Mapping[str, Any]:
        """A step that has no budget of its own may spend what the others have left of the workflow's."""
        if job.budget_microusd is None or step.job.constraints.budget != job.budget_microusd:
            return {}
        spent = await so_far_of(self._context.store, self._context.clock, [job.id])
        left = MicroUsd(job.budget_microusd - spent[job.id])
        if left <= 0:
            raise InvalidRequest(f"the workflow has spent its budget of ${usd(job.budget_microusd):.2f}")
        return {"constraints": {"budget": usd(left)}}

    async def _record(self, task: Task, events: Sequence[TaskEvent], records: Sequence[Record] = ()) -> None:
        await self._context.store.commit(changed(task, events, tasks.evolve)[1], records, label="workflow.begin")


def params_of(task: Task) -> Mapping[str, Any]:
    return task.params or {}
