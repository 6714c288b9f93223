"""A job's status as anybody asks for it, put together from what is stored: the same for one task or thousands, for a
workflow and its steps, and wherever it runs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from crucible.core.costs import Done, Expected, Remaining, costs, done_of, per_hour, ran_hours, remaining
from crucible.core.status import Known, Status, status_of
from crucible.engine.context import Context
from crucible.model.job import Job
from crucible.model.ledger import Usage
from crucible.model.units import micro_usd
from crucible.ports.trials import JobProgress
from crucible.ports.workflows import Shape

# The attempts of so many tasks are looked through; of more, the time since the job started has to do.
FEW_TASKS = 100


class StatusDesk:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def of(self, job: Job) -> Status:
        store, now = self._context.store, self._context.clock.now()
        shape = (await store.workflows([job.id])).get(job.id)
        ids = [job.id, *(shape.children if shape is not None else ())]
        told = None if shape is not None else await store.job_progress(job.id)
        share = await self._share(job, shape, told)
        usages = [usage for each in ids for usage in await store.job_usages(each)]
        postings = [posting for each in ids for posting in await store.job_postings(each)]
        spent = costs(usages, now, postings)
        health = await store.job_healths(ids)
        known = Known(
            job=job,
            told=None if told is None else told.newest,
            share=share,
            health=health.get(job.id),
            findings=await store.open_findings(ids),
            nodes=[] if job.status.is_terminal else await store.held_nodes(ids),
            so_far=spent.so_far,
            per_hour=spent.per_hour,
            remaining=await self._remaining(job, share, told, usages, now),
            unsaved_since=await self._unsaved(job, usages),
        )
        return status_of(known, now)

    async def _share(self, job: Job, shape: Shape | None, told: JobProgress | None) -> float | None:
        """Done of the whole, where it is not one task that says it."""
        if shape is not None:
            return shape.ended / shape.steps if shape.steps else None
        if self._context.spec_of(job).shards is not None:
            tally = await self._context.store.shard_tally(job.id)
            return tally.items_done / tally.items if tally.items else None
        return told.done / told.tasks if told is not None and told.tasks > 1 else None

    async def _remaining(
        self, job: Job, share: float | None, told: JobProgress | None, usages: Sequence[Usage], now: datetime
    ) -> Remaining | None:
        if job.status.is_terminal:
            return None
        store = self._context.store
        plan = expected_of(await store.plan(job.id))
        if share is None and (told is None or told.tasks <= FEW_TASKS):
            attempts = await store.job_attempts(job.id)
            done = done_of(await store.progress(job.id), attempts, len(await store.job_tasks(job.id)))
            return remaining(done, ran_hours(attempts, now), plan, usages)
        ran = 0.0 if job.started_at is None else (now - job.started_at).total_seconds() / 3600
        return remaining(Done(0.0, share or 0.0), ran, plan, usages)

    async def _unsaved(self, job: Job, usages: Sequence[Usage]) -> datetime | None:
        """Since when work that costs money is only on its machines; of a job of one task."""
        started = [usage.from_at for usage in usages if usage.to_at is None]
        if job.status.is_terminal or not started or not per_hour(usages):
            return None
        newest = await self._context.store.newest_checkpoint(job.lineage, 0)
        return max(min(started), newest.created_at) if newest is not None else min(started)


def expected_of(plan: Mapping[str, Any] | None) -> Expected | None:
    """What a stored plan said of the way that was chosen."""
    chosen = (plan or {}).get("chosen") or {}
    hours = chosen.get("hours_p50") or chosen.get("estimated_hours")
    if hours is None:
        return None
    return Expected(
        hours=hours,
        hours_high=chosen.get("hours_p90") or hours,
        per_hour=micro_usd(chosen.get("total_per_hour_usd") or 0),
    )
