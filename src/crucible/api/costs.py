"""What a job costs: so far, per hour, still to come, and every stretch and posting behind it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import cost_views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, job_id_of
from crucible.core.costs import costs, done_of, moved_for, ran_hours, remaining
from crucible.core.unit_costs import saved_on, unit_costs
from crucible.core.uses import Life, Use, by_use, lives
from crucible.engine.status import expected_of
from crucible.model.attempt import Attempt
from crucible.model.ids import JobId, LeaseId, NodeId
from crucible.model.lease import Lease, Order
from crucible.model.ledger import Posting, Usage
from crucible.model.record import Progress
from crucible.model.task import TaskKind
from crucible.wire import costs as wire


class CostRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/jobs/{job_id}/costs", self.costs, wire.JobCosts)

    async def costs(self, request: Request, job_id: str) -> Response:
        """What it has cost, by kind, use and machine, with every interval and posting; what the rest is likely to
        cost."""
        store, now = self._deps.store, self._deps.clock.now()
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        known = [await self._known(each) for each in await self._ids(job.id)]
        usages = [usage for one in known for usage in one.usages]
        postings = [posting for one in known for posting in one.postings]
        found = costs(usages, now, postings)
        rest = None
        if not job.status.is_terminal:
            tasks = [task for task in await store.job_tasks(job.id) if task.kind is not TaskKind.CREW]
            ended = {task.id for task in tasks if task.phase.is_terminal}
            attempts = known[0].attempts
            done = done_of(known[0].progress, attempts, len(tasks), ended)
            rest = remaining(done, ran_hours(attempts, now), expected_of(await store.plan(job.id)), usages)
        uses = Counter[Use]({Use.USEFUL: moved_for(postings)})
        for one in known:
            uses.update(by_use(one.usages, one.lives(now), now))
        units = unit_costs(found.so_far, known[0].progress, known[0].attempts)
        saved = saved_on(usages, [order for one in known for order in one.orders], now)
        view = cost_views.job_costs(job, found, rest, usages, postings, now)
        return json_reply({**view, **cost_views.spent_on(uses), **cost_views.units(units), **cost_views.saved(saved)})

    async def _ids(self, job_id: JobId) -> Sequence[JobId]:
        """Of a workflow: the jobs of its steps too."""
        workflows = await self._deps.store.workflows([job_id])
        return [job_id, *(workflows[job_id].children if job_id in workflows else ())]

    async def _known(self, job_id: JobId) -> "Known":
        store = self._deps.store
        return Known(
            usages=await store.job_usages(job_id),
            postings=await store.job_postings(job_id),
            progress=await store.progress(job_id),
            attempts=await store.job_attempts(job_id),
            leases=await store.job_leases(job_id),
            orders=await store.job_orders(job_id),
            enrolled=await store.enrolments(job_id),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the costs of one job follow from."""

    usages: Sequence[Usage]
    postings: Sequence[Posting]
    progress: Sequence[Progress]
    attempts: Sequence[Attempt]
    leases: Sequence[Lease]
    orders: Sequence[Order]
    enrolled: Mapping[NodeId, datetime]

    def lives(self, now: datetime) -> Mapping[LeaseId, Life]:
        return lives(self.leases, self.enrolled, self.attempts, now)
