"""Searches and evaluations while they run: what an adaptive trial is given, which trials are stopped early, when no
further one is begun, and what is left at the end. Decisions are the core's; what they rest on is in SQL, so that any
server may go on with them."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crucible.core import job as jobs
from crucible.core import task as tasks
from crucible.core.pruning import Peers, given_up, joined
from crucible.core.sweep import standing
from crucible.core.sweep_limits import Ran, drain_reason, failed_reason
from crucible.engine.context import Context
from crucible.engine.spending import so_far_of
from crucible.model.change import Change, changed
from crucible.model.errors import InvalidRequest, InvariantBroken, NotFound, StaleVersion
from crucible.model.ids import JobId, TaskId, UserId
from crucible.model.job import Desired, Job, JobDesired, JobDrained, JobEvent
from crucible.model.record import Artifact, ArtifactType
from crucible.model.shards import ShardState
from crucible.model.spec import JobSpec
from crucible.model.sweep import Curve, Goal, Params, Search, Sweep
from crucible.model.task import Task, TaskCreated, TaskPhase, TaskPruned
from crucible.model.tree import Tally
from crucible.model.units import MicroUsd
from crucible.ports.trials import TaskQuery, TaskRow

# How often jobs are looked at: as often as what their nodes say is written.
LOOK_S = 1.0
# What another server heard may be written a little later than what we heard after it.
OVERLAP = timedelta(seconds=5)
# Trials that an adaptive search learns from, beside those that run.
REMEMBERED = 500
# Whoever asks for a job to be given up, if it was not a person.
SYSTEM = UserId("crucible")


@dataclass
class Known:
    """What is known here of the trials of one job."""

    curves: dict[TaskId, Curve] = field(default_factory=dict)
    peers: Peers = field(default_factory=dict)
    until: datetime | None = None


class Sweeps:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[JobId, Known] = {}

    async def run(self) -> None:
        while True:
            self._context.vitals.beat("sweeps", LOOK_S)
            await self._context.clock.sleep(LOOK_S)
            found = await self._context.store.sweeping()
            self._known = {job_id: self._known.get(job_id, Known()) for job_id in found}
            for job_id in found:
                await self._look(job_id)

    async def _look(self, job_id: JobId) -> None:
        """No claim: two servers decide the same, and the version of what they change lets one of them do it."""
        store = self._context.store
        try:
            job = await store.job(job_id)
            spec, tally = self._context.spec_of(job), await store.tally(job_id)
            if not await self._limit(job, spec, tally):
                await self._prune(job, spec)
        except (StaleVersion, NotFound):
            pass  # somebody else has moved on; the next look sees it

    # --- limits -------------------------------------------------------------------------------------

    async def _limit(self, job: Job, spec: JobSpec, tally: Tally) -> bool:
        """Whether the job has come to one of its limits now."""
        now = self._context.clock.now()
        reason = failed_reason(spec, tally.counts.get(TaskPhase.FAILED, 0))
        event: JobEvent | None = None
        if reason is not None:
            event = JobDesired(now, Desired.CANCEL, SYSTEM, reason)
        elif job.drained is None and tally.counts.get(TaskPhase.WAITING, 0):
            drained = await self._drain_reason(job, spec, tally, now)
            event = None if drained is None else JobDrained(now, drained)
        if event is None:
            return False
        await self._context.store.commit(changed(job, [event], jobs.evolve)[1], label="sweep.limit")
        if isinstance(event, JobDesired):
            for task_id in await self._context.store.tasks_at_work(job.id):
                self._context.wakes.wake("task", task_id)
        self._context.wakes.wake("job", job.id)
        self._context.hub.notify(job.id)
        return True

    async def _drain_reason(self, job: Job, spec: JobSpec, tally: Tally, now: datetime) -> str | None:
        ran, spent = Ran(), MicroUsd(0)
        if spec.constraints.budget is not None:
            times = await self._context.store.run_times(job.id)
            ran = Ran(times.ended, times.ended_s, tuple((now - since).total_seconds() for since in times.live_since))
            spent = await self.spent(job.id)
        return drain_reason(job, spec, ran, spent, sum(tally.counts.values()), now)

    async def spent(self, job_id: JobId) -> MicroUsd:
        """On all of its machines up to now."""
        return (await so_far_of(self._context.store, self._context.clock, [job_id]))[job_id]

    # --- stopping early -----------------------------------------------------------------------------

    async def _prune(self, job: Job, spec: JobSpec) -> None:
        sweep = spec.sweep
        if sweep is None or sweep.pruning is None or sweep.objective is None:
            return
        known = await self._learn(job.id, sweep.objective.goal)
        running = await self._context.store.running_trials(job.id)
        found = given_up(known.curves, running, known.peers, sweep.objective, sweep.pruning)
        for task_id, reason in found.items():
            await self._give_up(task_id, reason)

    async def _learn(self, job_id: JobId, goal: Goal) -> Known:
        """What trials have reported since."""
        known = self._known[job_id]
        new = await self._context.store.curves(job_id, None if known.until is None else known.until - OVERLAP)
        for task_id, curve in new.curves.items():
            joined(known.peers, known.curves.get(task_id), curve, goal)
            known.curves[task_id] = curve
        known.until = new.until
        return known

    async def _give_up(self, task_id: TaskId, reason: str) -> None:
        store = self._context.store
        task = await store.task(task_id)
        if task.verdict is not None or task.phase not in (TaskPhase.RUNNING, TaskPhase.CHECKPOINTING):
            return
        pruned = TaskPruned(self._context.clock.now(), reason)
        try:
            await store.commit(changed(task, [pruned], tasks.evolve)[1], label="sweep.prune")
        except StaleVersion:
            return  # it has moved on: if it still runs, the next look decides
        self._context.wakes.wake("task", task_id)

    # --- what an adaptive trial is given ----------------------------------------------------------------

    async def prepare(self, job: Job, tasks: Sequence[Task]) -> Mapping[TaskId, Params]:
        """What those of `tasks` that have nothing yet are to try: to be recorded as TaskGiven with their placement.
        Whoever asks the same before that hears the same, unless a trial has begun or ended meanwhile."""
        sweep = self._context.spec_of(job).sweep
        asked = [task for task in tasks if task.params is None]
        if sweep is None or sweep.method is not Search.TPE or not asked:
            return {}
        sampler = self._context.sampler
        if sampler is None:
            raise InvariantBroken(f"job {job.id} was admitted, and there is no adaptive search here")
        known = await self._context.store.tried(job.id, goal_of(sweep), REMEMBERED)
        numbers = [task.index for task in asked]
        found = await asyncio.to_thread(sampler.suggest, sweep, numbers, known)
        return {task.id: params for task, params in zip(asked, found, strict=True)}

    # --- what is left at the end ------------------------------------------------------------------------

    async def left_behind(self, job: Job) -> Sequence[Artifact]:
        """The best trial of a search that has ended: its parameters, and where its newest checkpoint is."""
        found = await self.best(job)
        if found is None:
            return ()
        best = found.task
        sweep = self._context.spec_of(job).sweep
        saved = await self._context.store.newest_checkpoint(job.lineage, best.index)
        meta = {
            "trial": best.index,
            "params": best.params,
            "metric": sweep.objective.metric if sweep is not None and sweep.objective is not None else None,
            "value": best.value,
            "checkpoint": None if saved is None else saved.uri,
            "step": None if saved is None else saved.step,
            "outputs": best.outputs,
        }
        now = self._context.clock.now()
        uri = f"/v1/jobs/{job.id}/sweep"
        return (Artifact(job_id=job.id, type=ArtifactType.OUTPUT, uri=uri, created_at=now, meta=meta),)

    async def best(self, job: Job) -> TaskRow | None:
        """None: it is no search with an objective, or none of its trials has come to its end with a value yet."""
        sweep = self._context.spec_of(job).sweep
        if sweep is None or sweep.objective is None:
            return None
        goal = goal_of(sweep)
        page = await self._context.store.task_page(TaskQuery(job_id=job.id, best_first=goal, limit=1))
        first = page.items[0] if page.items else None
        return first if first is not None and standing(first.task, goal)[0] == 0 else None


def goal_of(sweep: Sweep) -> Goal:
    return Goal.MINIMIZE if sweep.objective is None else sweep.objective.goal


async def made_tasks(context: Context, job: Job, made: Sequence[Task]) -> list[Change]:
    """The tasks of a new job. One that goes on from another does not repeat what the trials of that one found."""
    spec, before = context.spec_of(job), dict[int, Task]()
    if job.origin is not None and job.lineage != job.id and (spec.sweep is not None or spec.evaluation is not None):
        before = {task.index: task for task in await context.store.job_tasks(job.origin)}
    now = job.created_at
    changes = []
    for task in made:
        events = tasks.taken_over(task, before.get(task.index), now)
        changes.append(Change(None, changed(task, events, tasks.evolve)[0], (TaskCreated(now), *events)))
    return changes


async def has_results(context: Context, job: Job) -> bool:
    """Whether a job that goes on from this one would have something to take over."""
    spec = context.spec_of(job)
    if spec.shards is not None:
        return bool(await context.store.shards(job.id, limit=1, state=ShardState.DONE))
    if spec.sweep is None and spec.evaluation is None:
        return False
    counts = await context.store.trial_counts(job.id)
    return any(one.phase is TaskPhase.SUCCEEDED for one in counts)


def check_search(context: Context, spec: JobSpec) -> None:
    """Raises InvalidRequest if what the search learns with is not here."""
    if spec.sweep is None or spec.sweep.method is not Search.TPE:
        return
    if context.sampler is None:
        raise InvalidRequest("this server has no adaptive search; use method random", field="job.sweep.method")
    context.sampler.check()
