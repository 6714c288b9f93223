"""What a job costs: so far, per hour, still to come, and every stretch and posting behind it."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import cost_views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, job_id_of
from crucible.core.costs import Expected, costs, done_of, ran_hours, remaining
from crucible.model.ids import JobId
from crucible.model.ledger import Posting, Usage
from crucible.model.units import micro_usd
from crucible.wire import costs as wire


class CostRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/jobs/{job_id}/costs", self.costs, wire.JobCosts)

    async def costs(self, request: Request, job_id: str) -> Response:
        """What it has cost, by kind and machine, with every interval and posting; what the rest is likely to cost."""
        store, now = self._deps.store, self._deps.clock.now()
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        usages, postings = await self._charges(job.id)
        rest = None
        if not job.status.is_terminal:
            tasks, attempts = await store.job_tasks(job.id), await store.job_attempts(job.id)
            done = done_of(await store.progress(job.id), attempts, len(tasks))
            rest = remaining(done, ran_hours(attempts, now), expected_of(await store.plan(job.id)), usages)
        return json_reply(cost_views.job_costs(job, costs(usages, now, postings), rest, usages, postings, now))

    async def _charges(self, job_id: JobId) -> tuple[Sequence[Usage], Sequence[Posting]]:
        """Of a workflow: of the jobs of its steps."""
        store = self._deps.store
        workflows = await store.workflows([job_id])
        ids = [job_id, *(workflows[job_id].children if job_id in workflows else ())]
        usages = [usage for each in ids for usage in await store.job_usages(each)]
        return usages, [posting for each in ids for posting in await store.job_postings(each)]


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
