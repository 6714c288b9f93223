"""The tasks of a job, page by page; how a search stands; the table of an evaluation."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import task_views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, job_id_of, queried
from crucible.model.errors import InvalidRequest
from crucible.model.job import Job
from crucible.model.task import TaskPhase
from crucible.wire import tasks as wire


class TaskRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        listing, rows = described_query(wire.TaskListQuery), described_query(wire.EvaluationQuery)
        add(router, "GET", "/v1/jobs/{job_id}/tasks", self.list, wire.TaskPage, openapi_extra=listing)
        add(router, "GET", "/v1/jobs/{job_id}/sweep", self.sweep, wire.SweepView)
        add(router, "GET", "/v1/jobs/{job_id}/evaluation", self.evaluation, wire.EvaluationView, openapi_extra=rows)

    async def list(self, request: Request, job_id: str) -> Response:
        """In the order of their index, or of a search the best first; what has no value comes last."""
        job, asked = await self._job(request, job_id), queried(wire.TaskListQuery, request)
        found = await self._deps.trials.page(
            job,
            by_value=asked.order == "value",
            phases=_phases(asked.phase),
            limit=asked.limit,
            cursor=asked.cursor or None,
        )
        return json_reply(task_views.page(found, self._deps.trials.objective(job)))

    async def sweep(self, request: Request, job_id: str) -> Response:
        """How a search stands: its trials counted, and the best of those that have ended."""
        job = await self._job(request, job_id)
        return json_reply(task_views.sweep(job, await self._deps.trials.standing(job)))

    async def evaluation(self, request: Request, job_id: str) -> Response:
        """Models down, datasets and metrics across, each beside the baseline; some models at a time."""
        job, page = await self._job(request, job_id), queried(wire.EvaluationQuery, request)
        asked, made = await self._deps.trials.table(job, page.cursor, page.limit)
        end = page.cursor + len(made.rows)
        return json_reply(task_views.evaluated(job, asked, made, end if end < len(asked.models) else None))

    async def _job(self, request: Request, job_id: str) -> Job:
        return await self._deps.service.find(principal(request), job_id_of(job_id))


def _phases(text: str) -> frozenset[TaskPhase]:
    try:
        return frozenset(TaskPhase(word) for word in text.split(",") if word)
    except ValueError as error:
        known = ", ".join(TaskPhase)
        raise InvalidRequest(f"{error}; the phases of a task are {known}", field="phase") from error
