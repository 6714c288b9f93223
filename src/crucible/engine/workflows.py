"""Drive one workflow: look at its steps and their jobs, decide, record, then begin what is to begin and tell the jobs
what is wanted of them. A step has one job, whoever submits it first; whatever was cut off is derived again."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from crucible.core import task as tasks
from crucible.core import workflow
from crucible.core.workflow import Events, Part
from crucible.engine.context import Context
from crucible.engine.holding import holding
from crucible.engine.step_jobs import StepJobs, params_of
from crucible.engine.workflow_parts import parts_of
from crucible.model.change import Change, changed
from crucible.model.errors import Busy, Conflict, StaleClaim, StaleVersion
from crucible.model.ids import Digest, JobId
from crucible.model.job import Desired, Job
from crucible.model.record import StepResult
from crucible.model.task import Task, TaskPhase, Verdict
from crucible.ports.store import Claim

# Each round is new news; a workflow that is still not at rest then is woken again.
ROUNDS = 16


class WorkflowReconciler:
    def __init__(
        self, context: Context, steps: StepJobs, wish: Callable[[Job, Desired, str], Awaitable[object]]
    ) -> None:
        """`wish` records what is wanted of a job."""
        self._context = context
        self._steps = steps
        self._wish = wish

    async def step(self, job_id: JobId) -> None:
        wakes = self._context.wakes
        try:
            async with holding(self._context, f"workflow:{job_id}") as claim:
                for _ in range(ROUNDS):
                    wakes.looking("workflow", job_id)
                    if not await self._round(job_id, claim):
                        return
                wakes.wake("workflow", job_id)
        except StaleVersion:
            wakes.wake("workflow", job_id)
        except (StaleClaim, Busy):
            pass

    async def _round(self, job_id: JobId, claim: Claim) -> bool:
        """Whether something has changed."""
        job, now = await self._context.store.job(job_id), self._context.clock.now()
        if job.status.is_terminal:
            return False
        parts = await parts_of(self._context, job)
        events = workflow.decide(job, parts, now)
        if events:
            await self._record(job, parts, events, claim)
            return True
        for child, desired, reason in workflow.wishes(job, parts):
            await self._tell(child, desired, reason)
        ready = workflow.to_begin(job, parts, now)
        for part in ready:
            await self._steps.begin(job, part, {one.step.name: one for one in parts})
        return bool(ready)

    async def _record(self, job: Job, parts: Sequence[Part], events: Events, claim: Claim) -> None:
        changes: list[Change] = []
        for part in parts:
            changes += changed(part.task, events.get(part.task.index, ()), tasks.evolve)[1]
        await self._context.store.commit(changes, results(job, parts, changes), label="workflow.step", claim=claim)
        self._context.wakes.wake("job", job.id)
        self._context.hub.notify(job.id)

    async def _tell(self, child: Job, desired: Desired, reason: str) -> None:
        try:
            await self._wish(child, desired, reason)
        except Conflict:
            pass  # it has ended meanwhile, and says so


def results(job: Job, parts: Sequence[Part], changes: Iterable[Change]) -> list[StepResult]:
    """Of steps that have just succeeded: what may stand for the same again."""
    children: Mapping[str, Job | None] = {part.task.id: part.child for part in parts}
    found = []
    for task in [change.after for change in changes]:
        child, key = children.get(task.id), params_of(task).get("key") if isinstance(task, Task) else None
        if not isinstance(task, Task) or child is None or key is None or task.verdict is Verdict.REUSED:
            continue
        if task.phase is TaskPhase.SUCCEEDED and child.finished_at is not None:
            found.append(
                StepResult(
                    cache_key=Digest(str(key)),
                    user_id=job.user_id,
                    job_id=child.id,
                    outputs=task.outputs,
                    created_at=child.finished_at,
                )
            )
    return found
