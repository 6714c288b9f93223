"""How a job is: phase, progress, end, cost, health and use in one answer; and what was found wrong with it."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import status_views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, job_id_of
from crucible.model.job import Job
from crucible.wire import status as wire

MAX_FINDINGS = 1000


class StatusRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/jobs/{job_id}/status", self.status, wire.JobStatus)
        add(router, "GET", "/v1/jobs/{job_id}/findings", self.findings, wire.Findings)

    async def status(self, request: Request, job_id: str) -> Response:
        """The same fields for every job on every backend. What nobody knows is null, and `unknown` says why."""
        return json_reply(status_views.status(await self._deps.statuses.of(await self._job(request, job_id))))

    async def findings(
        self, request: Request, job_id: str, limit: Annotated[int, Query(ge=1, le=MAX_FINDINGS)] = 100
    ) -> Response:
        """What was found wrong with it, also what is over; the newest first."""
        job = await self._job(request, job_id)
        found = await self._deps.store.findings(job.id, limit)
        return json_reply({"items": [status_views.finding(one) for one in found]})

    async def _job(self, request: Request, job_id: str) -> Job:
        return await self._deps.service.find(principal(request), job_id_of(job_id))
