"""Looks at every job that works, a few times a minute: what is wrong opens a finding, and whoever should hear of it is
told in the same transaction. One server at a time; what one has seen is stored, so that another goes on from there."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from crucible.core.costs import per_hour
from crucible.core.health import closed, health_of, look, notice_of, settle, worst
from crucible.core.signs import RankPace, Signs, TaskSigns, loss_of
from crucible.engine.context import Context, log
from crucible.model.attempt import AttemptPhase
from crucible.model.errors import NotFound, StaleClaim
from crucible.model.health import Finding, Health, HeldNode, JobHealth
from crucible.model.ids import JobId, TaskId
from crucible.model.job import Job, JobStatus
from crucible.model.ledger import Usage
from crucible.model.record import Record
from crucible.model.spec import JobSpec
from crucible.model.task import TaskPhase
from crucible.ports.store import Claim, JobQuery
from crucible.ports.streams import MetricPoint
from crucible.ports.trials import TaskQuery, TaskRow

CLAIM = "health"
# Jobs whose rows are read together; between two groups others get their turn.
PAGE = 50
# Of one job so many tasks that work are looked at: the first ones stand for the rest.
TASKS = 100
# Their checkpoints are looked up one by one.
SAVES_OF = 8
# The end of a gang's metrics: some points of each of a hundred ranks.
TAIL_BYTES = 128 << 10
AT_WORK = frozenset({JobStatus.SCHEDULED, JobStatus.PROVISIONING, JobStatus.RUNNING, JobStatus.CHECKPOINTING})
BUSY = frozenset({TaskPhase.SCHEDULED, TaskPhase.PROVISIONING, TaskPhase.RUNNING, TaskPhase.CHECKPOINTING})

T = TypeVar("T", HeldNode, Finding, Usage)


class HealthWatch:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._steps: dict[JobId, list[Health]] = {}  # of workflows, how the jobs of their steps are

    async def run(self) -> None:
        context, every_s = self._context, self._context.policy.health.every.total_seconds()
        while True:
            context.vitals.beat("health", every_s)
            claim = await context.store.claim(CLAIM, context.server_id, context.claim_ttl)
            if claim is not None:
                try:
                    await self.round(claim)
                except StaleClaim:
                    log.info("another server looks after the health of jobs")
                finally:
                    await context.store.release(claim)
            await context.clock.sleep(every_s)

    async def round(self, claim: Claim) -> None:
        """One look at every job that works; what is open of others is closed."""
        store, seen, cursor = self._context.store, set[JobId](), None
        self._steps.clear()
        while True:
            page = await store.jobs(JobQuery(status=AT_WORK, with_steps=True, limit=PAGE, cursor=cursor))
            ids = [item.id for item in page.items]
            await self._look_at(ids, claim)
            seen |= set(ids)
            cursor = page.next_cursor
            if cursor is None:
                break
            await store.renew(claim, self._context.claim_ttl)
        await self._sum_up(claim)
        await self._close_others(seen, claim)

    async def _look_at(self, ids: Sequence[JobId], claim: Claim) -> None:
        store = self._context.store
        known, nodes = await store.job_healths(ids), _by_job(await store.held_nodes(ids))
        findings, usages = _by_job(await store.open_findings(ids)), _by_job(await store.open_usages_of(ids))
        records: list[Record] = []
        for job_id in ids:
            try:
                job = await store.job(job_id)
                if self._context.spec_of(job).steps:
                    self._steps.setdefault(job_id, [])
                    continue
                signs = await self._signs(job, nodes.get(job_id, ()), usages.get(job_id, ()))
            except NotFound:
                continue
            records += self._judge(job, signs, known.get(job_id), findings.get(job_id, ()))
        await self._write(records, claim)

    def _judge(self, job: Job, signs: Signs, before: JobHealth | None, findings: Sequence[Finding]) -> Sequence[Record]:
        limits, now = self._context.policy.health, self._context.clock.now()
        known = before or JobHealth(job_id=job.id, status=Health.UNKNOWN, looked_at=now)
        memory, found = look(known.memory, signs, limits, now, [one.code for one in findings])
        settled = settle(job.id, memory, findings, found, limits, now)
        status, why = health_of(settled.open, signs)
        if job.parent is not None:
            self._steps.setdefault(job.parent, []).append(status)
        after = replace(known, status=status, why=why, memory=settled.memory)
        notices = [notice for one in settled.opened if (notice := notice_of(one, job)) is not None]
        for one in settled.opened:
            log.warning("job %s: %s", job.id, one.words)
        is_news = before is None or after != before
        return [*([replace(after, looked_at=now)] if is_news else []), *settled.news, *notices]

    async def _sum_up(self, claim: Claim) -> None:
        """A workflow is as well as the worst of its steps."""
        known, now = await self._context.store.job_healths(list(self._steps)), self._context.clock.now()
        records = []
        for job_id, told in self._steps.items():
            status = worst(told)
            why = None if status is not Health.UNKNOWN else "none of its steps can be judged"
            if job_id not in known or known[job_id].status is not status:
                records.append(JobHealth(job_id=job_id, status=status, looked_at=now, why=why))
        await self._write(records, claim)

    async def _close_others(self, seen: set[JobId], claim: Claim) -> None:
        """Of jobs that have ended, were held or wait again."""
        store, now = self._context.store, self._context.clock.now()
        found = await store.open_findings()
        counts = Counter(one.code for one in found if one.job_id in seen)
        for code, count in counts.items():
            self._context.vitals.gauge("findings_open", count, code=code)
        left = _by_job([one for one in found if one.job_id not in seen])
        records: list[Record] = []
        for job_id, mine in left.items():
            why = "nothing of it runs"
            records += [JobHealth(job_id=job_id, status=Health.UNKNOWN, looked_at=now, why=why), *closed(mine, now)]
        await self._write(records, claim)

    async def _write(self, records: Sequence[Record], claim: Claim) -> None:
        if not records:
            return
        await self._context.store.commit((), records, label="health", claim=claim)
        for one in records:
            if isinstance(one, JobHealth):
                self._context.hub.notify(one.job_id)

    # --- what is seen ---------------------------------------------------------------------------------

    async def _signs(self, job: Job, nodes: Sequence[HeldNode], usages: Sequence[Usage]) -> Signs:
        spec = self._context.spec_of(job)
        rows = (await self._context.store.task_page(TaskQuery(job_id=job.id, phases=BUSY, limit=TASKS))).items
        tasks = [task_signs(row, spec) for row in rows]
        if len(rows) <= SAVES_OF:
            tasks = [await self._with_saves(job, task) for task in tasks]
        if len(rows) == 1 and (len(nodes) > 1 or job.gpus > 1):
            tasks = [replace(tasks[0], ranks=rank_paces(await self._tail(rows[0].task.id), tasks[0].attempt))]
        return Signs(
            tasks=tasks,
            nodes=nodes,
            per_hour=per_hour(usages),
            gpus=job.gpus,
            silence=self._context.policy.silence,
        )

    async def _with_saves(self, job: Job, task: TaskSigns) -> TaskSigns:
        newest = await self._context.store.newest_checkpoint(job.lineage, task.index)
        return task if newest is None else replace(task, saved_at=newest.created_at)

    async def _tail(self, task_id: TaskId) -> Sequence[MetricPoint]:
        return await self._context.streams.newest_metrics(task_id, TAIL_BYTES)


def task_signs(row: TaskRow, spec: JobSpec) -> TaskSigns:
    said, attempt = row.progress, row.attempt
    is_told = said is not None and attempt is not None and said.attempt_id == row.task.attempt_id
    told = said if is_told else None
    objective = spec.sweep.objective.metric if spec.sweep is not None and spec.sweep.objective is not None else None
    loss = None if told is None else loss_of(told.metrics, objective)
    return TaskSigns(
        task_id=row.task.id,
        index=row.task.index,
        attempt=-1 if attempt is None else attempt.number,
        is_running=attempt is not None and attempt.phase is AttemptPhase.RUNNING,
        is_saving=row.task.phase is TaskPhase.CHECKPOINTING,
        started_at=None if attempt is None else attempt.started_at,
        told_at=None if told is None else told.at,
        step=None if told is None else told.step,
        total_steps=None if told is None else told.total_steps,
        fraction=None if told is None else told.fraction,
        loss=None if loss is None else loss[1],
        loss_name="loss" if loss is None else loss[0],
        save_every=spec.checkpoint.interval,
    )


def rank_paces(points: Sequence[MetricPoint], attempt: int) -> tuple[RankPace, ...]:
    """Of each rank the steps that it told of last; each step once."""
    by_rank: dict[int, dict[int, float]] = {}
    for point in points:
        if point.attempt == attempt and point.step is not None:
            by_rank.setdefault(point.rank, {}).setdefault(point.step, point.at_ms / 1000)
    return tuple(
        RankPace(rank, tuple((at, step) for step, at in sorted(steps.items())))
        for rank, steps in sorted(by_rank.items())
    )


def _by_job(found: Iterable[T]) -> dict[JobId, list[T]]:
    by_job: dict[JobId, list[T]] = {}
    for one in found:
        by_job.setdefault(one.job_id, []).append(one)
    return by_job
