"""Jobs: submit, look, list, and wish."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import IdempotencyKey, add, described_query, job_id_of, queried
from crucible.api.shards import shard_counts
from crucible.engine.spending import spent
from crucible.model.errors import InvalidRequest
from crucible.model.ids import Digest, UserId
from crucible.model.job import Job, JobStatus
from crucible.ports.store import JobQuery
from crucible.wire import rest
from crucible.wire.workflows import Again


class JobRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        listing = described_query(rest.JobListQuery)
        add(router, "GET", "/v1/jobs/{job_id}", self.get, rest.JobView)
        add(router, "GET", "/v1/jobs", self.list, rest.JobPage, openapi_extra=listing)
        add(router, "POST", "/v1/jobs", self.submit, rest.Submitted, status=201)
        add(router, "POST", "/v1/jobs/{job_id}/cancel", self.cancel, rest.Changed)
        add(router, "POST", "/v1/jobs/{job_id}/hold", self.hold, rest.Changed)
        add(router, "POST", "/v1/jobs/{job_id}/release", self.release, rest.Changed)
        add(router, "POST", "/v1/jobs/{job_id}/retry", self.retry, rest.Submitted, status=201)
        add(router, "POST", "/v1/jobs/{job_id}/resume", self.resume, rest.Submitted, status=201)

    async def get(self, request: Request, job_id: str) -> Response:
        """A job as it is now."""
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        return json_reply(await described(self._deps, job))

    async def list(self, request: Request) -> Response:
        """Yours and those of your teams, newest first; an admin's list has everybody's."""
        who, asked = principal(request), queried(rest.JobListQuery, request)
        query = JobQuery(
            status=_statuses(asked.status),
            seen_by=await self._deps.teams.sight(who, asked.project or None),
            user_id=UserId(asked.user) if asked.user else None,
            team=asked.team or None,
            project=asked.project or None,
            name=asked.name or None,
            parent=job_id_of(asked.parent) if asked.parent else None,
            with_steps=asked.steps,
            limit=asked.limit,
            cursor=asked.cursor or None,
        )
        page = await self._deps.store.jobs(query)
        posted = {item.id: item.cost_running_microusd for item in page.items}
        workflows = await self._deps.store.workflows(list(posted))
        costs = await spent(self._deps.store, self._deps.clock, posted, workflows)
        return json_reply(views.page(page, costs, workflows))

    async def submit(self, request: Request, body: rest.Submit, idempotency_key: IdempotencyKey = None) -> Response:
        """The same Idempotency-Key with the same spec is the same job."""
        job = await self._deps.service.submit(
            principal(request),
            name=body.name,
            spec_yaml=body.spec_yaml,
            code_digest=None if body.code_digest is None else Digest(body.code_digest),
            idempotency_key=idempotency_key,
            traceparent=request.headers.get("traceparent"),
        )
        return json_reply(views.submitted(job), 201)

    async def cancel(self, request: Request, job_id: str) -> Response:
        """Asking again is the same; a job that has completed or failed cannot be cancelled."""
        return json_reply(views.changed(await self._deps.service.cancel(principal(request), job_id_of(job_id))))

    async def hold(self, request: Request, job_id: str, body: rest.Why | None = None) -> Response:
        """Stop it with a checkpoint and keep it from running until it is released."""
        reason = body.reason if body else None
        return json_reply(views.changed(await self._deps.service.hold(principal(request), job_id_of(job_id), reason)))

    async def release(self, request: Request, job_id: str) -> Response:
        return json_reply(views.changed(await self._deps.service.release(principal(request), job_id_of(job_id))))

    async def retry(
        self, request: Request, job_id: str, body: Again | None = None, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """A new job that runs the same from the beginning; a workflow may begin with one of its steps."""
        who, first = principal(request), None if body is None else body.from_step
        job = await self._deps.service.retry(who, job_id_of(job_id), idempotency_key, from_step=first)
        return json_reply(views.submitted(job), 201)

    async def resume(self, request: Request, job_id: str, idempotency_key: IdempotencyKey = None) -> Response:
        """A new job that goes on from the newest valid checkpoint."""
        job = await self._deps.service.resume(principal(request), job_id_of(job_id), idempotency_key)
        return json_reply(views.submitted(job), 201)


async def described(deps: Deps, job: Job) -> dict[str, object]:
    store = deps.store
    came = await store.prediction(job.id) if job.status.is_terminal else None
    workflows = await store.workflows([job.id])
    cost = (await spent(store, deps.clock, await store.job_costs([job.id]), workflows))[job.id].so_far
    tries, progress = await store.tries(job.id), await store.job_progress(job.id)
    view = views.job_view(job, tries, progress, came, cost, await shard_counts(deps, job, cost))
    return view if job.id not in workflows else views.workflow_job(view, workflows[job.id])


def _statuses(text: str) -> frozenset[JobStatus]:
    try:
        return frozenset(JobStatus(word) for word in text.split(",") if word)
    except ValueError as error:
        known = ", ".join(JobStatus)
        raise InvalidRequest(f"{error}; the states of a job are {known}", field="status") from error
