"""What people ask of a job's tasks: a page of them, how a search stands, the table of an evaluation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crucible.core import evaluation
from crucible.core.sweep import why_no_best
from crucible.engine.context import Context
from crucible.engine.sweeps import Sweeps, goal_of
from crucible.model.errors import InvalidRequest
from crucible.model.job import Job
from crucible.model.record import Checkpoint
from crucible.model.sweep import Evaluation, Objective, Sweep
from crucible.model.task import TaskPhase, Verdict
from crucible.model.units import MicroUsd
from crucible.ports.trials import TaskPage, TaskQuery, TaskRow, TrialCount

# Trials that are looked at for the names of what they report instead of the objective.
ASKED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a search stands."""

    sweep: Sweep
    counts: "Counts"
    best: TaskRow | None
    saved: Checkpoint | None  # the newest of the best trial
    spent: MicroUsd
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    total: int
    waiting: int
    running: int
    completed: int
    pruned: int
    failed: int
    skipped: int
    cancelled: int
    without_value: int


class TrialDesk:
    def __init__(self, context: Context, sweeps: Sweeps) -> None:
        self._context = context
        self._sweeps = sweeps

    def objective(self, job: Job) -> Objective | None:
        sweep = self._context.spec_of(job).sweep
        return None if sweep is None else sweep.objective

    async def page(
        self, job: Job, *, by_value: bool, phases: frozenset[TaskPhase], limit: int, cursor: str | None
    ) -> TaskPage:
        """Raises InvalidRequest if there is no value to go by."""
        sweep = self._context.spec_of(job).sweep
        if by_value and (sweep is None or sweep.objective is None):
            raise InvalidRequest(f"job {job.id} has no objective to sort its tasks by", field="order")
        goal = goal_of(sweep) if by_value and sweep is not None else None
        query = TaskQuery(job_id=job.id, best_first=goal, phases=phases, limit=limit, cursor=cursor)
        return await self._context.store.task_page(query)

    async def standing(self, job: Job) -> Standing:
        """Raises InvalidRequest for a job that is no search."""
        sweep = self._context.spec_of(job).sweep
        if sweep is None:
            raise InvalidRequest(f"job {job.id} is no sweep: `crucible tasks` lists its tasks")
        counts = counted(await self._context.store.trial_counts(job.id))
        best = await self._sweeps.best(job)
        saved = None if best is None else await self._context.store.newest_checkpoint(job.lineage, best.task.index)
        return Standing(
            sweep=sweep,
            counts=counts,
            best=best,
            saved=saved,
            spent=await self._sweeps.spent(job.id),
            note=None if best is not None else await self._note(job, sweep, counts),
        )

    async def table(self, job: Job, first: int, limit: int) -> tuple[Evaluation, evaluation.Table]:
        """Of `limit` models from the number `first` on. Raises InvalidRequest for a job that is no evaluation."""
        asked = self._context.spec_of(job).evaluation
        if asked is None:
            raise InvalidRequest(f"job {job.id} is no evaluation: `crucible tasks` lists its tasks")
        models = asked.models[first : first + limit]
        wanted = [*range(first, first + len(models))]
        if asked.baseline is not None and asked.baseline not in models:
            wanted.append(asked.models.index(asked.baseline))
        came: list[evaluation.Came] = []
        for model in wanted:
            came += await self._came(job, evaluation.indexes(asked, model))
        return asked, evaluation.table(asked, models, came)

    async def _came(self, job: Job, indexes: range) -> list[evaluation.Came]:
        tasks = await self._context.store.tasks_between(job.id, indexes.start, indexes.stop)
        return [evaluation.Came(task.index, task.phase, task.metrics, task.reason) for task in tasks]

    async def _note(self, job: Job, sweep: Sweep, counts: Counts) -> str | None:
        """Why there is no best trial, where that is not plain."""
        if sweep.objective is None:
            return "it has no objective: no trial is better than another"
        if not counts.without_value:
            return None
        query = TaskQuery(job_id=job.id, phases=frozenset({TaskPhase.SUCCEEDED}), limit=ASKED)
        rows = (await self._context.store.task_page(query)).items
        names = {name for row in rows for name in row.task.metrics}
        return why_no_best(sweep.objective, {row.task.reason for row in rows}, names)


def counted(found: Sequence[TrialCount]) -> Counts:
    by_phase: Counter[TaskPhase] = Counter()
    for one in found:
        by_phase[one.phase] += one.count
    pruned = sum(one.count for one in found if one.verdict is Verdict.PRUNED and one.phase is TaskPhase.SUCCEEDED)
    skipped = sum(one.count for one in found if one.verdict is Verdict.SKIPPED)
    ended = sum(count for phase, count in by_phase.items() if phase.is_terminal)
    total = sum(by_phase.values())
    return Counts(
        total=total,
        waiting=by_phase[TaskPhase.WAITING],
        running=total - ended - by_phase[TaskPhase.WAITING],
        completed=by_phase[TaskPhase.SUCCEEDED] - pruned,
        pruned=pruned,
        failed=by_phase[TaskPhase.FAILED],
        skipped=skipped,
        cancelled=by_phase[TaskPhase.CANCELLED] - skipped,
        without_value=sum(
            one.count
            for one in found
            if one.phase is TaskPhase.SUCCEEDED and one.verdict is not Verdict.PRUNED and not one.has_value
        ),
    )
