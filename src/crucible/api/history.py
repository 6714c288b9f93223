"""What a job did: its events, attempts, artifacts, metrics, and the spec it came from."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import Offset, TaskIndex, add, job_id_of
from crucible.model.errors import NotFound
from crucible.model.ids import TaskId
from crucible.model.job import Job
from crucible.ports.store import LoggedEvent, Store
from crucible.ports.streams import MetricPoint
from crucible.wire import rest

MAX_EVENTS = 10_000
MAX_POINTS = 10_000
_READ_BYTES = 256 << 10


class HistoryRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        yaml = {200: {"content": {"text/yaml": {"schema": {"type": "object"}}}}}
        add(router, "GET", "/v1/jobs/{job_id}/events", self.events, rest.Events)
        add(router, "GET", "/v1/jobs/{job_id}/metrics", self.metrics, rest.Metrics)
        add(router, "GET", "/v1/jobs/{job_id}/artifacts", self.artifacts, rest.Artifacts)
        add(router, "GET", "/v1/jobs/{job_id}/attempts", self.attempts, rest.Attempts)
        add(router, "GET", "/v1/jobs/{job_id}/spec", self.spec, rest.Spec, responses=yaml)
        add(router, "GET", "/v1/jobs/{job_id}/launch-script", self.launch_script, rest.LaunchScript)
        add(router, "GET", "/v1/jobs/{job_id}/plan", self.plan, rest.Plan)
        add(router, "GET", "/v1/jobs/{job_id}/why", self.why, rest.Explanation)

    async def events(
        self,
        request: Request,
        job_id: str,
        everything: Annotated[bool, Query(alias="all", description="Also of tasks, attempts, leases …")] = False,
        after: Annotated[int, Query(ge=0, lt=2**63, description="The `seq` that was read last")] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_EVENTS)] = MAX_EVENTS,
    ) -> Response:
        """Changes of status, oldest first."""
        job = await self._job(request, job_id)
        found, has_more = await _events(self._deps.store, job, after, limit, everything)
        items = [views.event(one, is_full=everything) for one in found]
        return json_reply({"items": items, "next_after": found[-1].seq if has_more else None})

    async def metrics(
        self,
        request: Request,
        job_id: str,
        offset: Offset = 0,
        after: Annotated[int | None, Query(description="Only later steps", ge=-(2**63), lt=2**63)] = None,
        name: Annotated[list[str] | None, Query(description="Only these values")] = None,
        limit: Annotated[int, Query(ge=1, le=MAX_POINTS)] = MAX_POINTS,
        task: TaskIndex = 0,
    ) -> Response:
        """Points in the order they came; read on from `next_offset`."""
        task_id = await task_of(self._deps.store, await self._job(request, job_id), task)
        items: list[dict[str, Any]] = []
        size = _READ_BYTES
        while len(items) < limit:
            chunk = await self._deps.streams.read_metrics(task_id, offset, size)
            wanted = _wanted(chunk.points, after, name)
            if len(wanted) > limit - len(items):  # an offset can only point behind a whole chunk: take a smaller one
                size = max(1, size * (limit - len(items)) // (len(wanted) + 1))
                continue
            items += wanted
            offset = chunk.next_offset
            if chunk.is_end:
                break
        return json_reply({"items": items, "next_offset": offset})

    async def artifacts(self, request: Request, job_id: str) -> Response:
        """What it left behind."""
        job = await self._job(request, job_id)
        return json_reply({"items": [views.artifact(one) for one in await self._deps.store.artifacts(job.id)]})

    async def attempts(self, request: Request, job_id: str) -> Response:
        """Every try, with its machines and ranks."""
        job, store = await self._job(request, job_id), self._deps.store
        leases = {lease.id: lease for lease in await store.job_leases(job.id)}
        orders = {order.id: order for order in await store.job_orders(job.id)}
        tried = await store.job_attempts(job.id)
        return json_reply({"items": [views.attempt(one, leases, orders) for one in tried]})

    async def spec(self, request: Request, job_id: str) -> Response:
        """The text that was submitted, to the letter: as text/yaml, or within JSON for who accepts only that."""
        job = await self._job(request, job_id)
        if "application/json" in request.headers.get("accept", ""):
            return json_reply({"spec_yaml": job.spec_yaml})
        return Response(job.spec_yaml, media_type="text/yaml")

    async def launch_script(
        self,
        request: Request,
        job_id: str,
        rank: Annotated[int | None, Query(ge=0, lt=2**31, description="Only this one")] = None,
        task: TaskIndex = 0,
    ) -> Response:
        """The bash script that starts it, for running it by hand; without secrets."""
        script, is_placed = await self._deps.service.launch_script(principal(request), job_id_of(job_id), rank, task)
        return json_reply({"script": script, "is_placed": is_placed})

    async def plan(self, request: Request, job_id: str) -> Response:
        """The plan it was submitted with: what was known and said then."""
        return json_reply(await self._deps.service.plan_of(principal(request), job_id_of(job_id)))

    async def why(self, request: Request, job_id: str) -> Response:
        """What it waits for."""
        return json_reply(await self._deps.service.why(principal(request), job_id_of(job_id)))

    async def _job(self, request: Request, job_id: str) -> Job:
        return await self._deps.service.find(principal(request), job_id_of(job_id))


async def task_of(store: Store, job: Job, index: int) -> TaskId:
    for task in await store.tasks_between(job.id, index, index + 1):
        return task.id
    raise NotFound(f"job {job.id} has no task {index}", field="task")


async def _events(
    store: Store, job: Job, after: int, limit: int, everything: bool
) -> tuple[Sequence[LoggedEvent], bool]:
    """Up to `limit` events, and whether there may be more."""
    found: list[LoggedEvent] = []
    while len(found) < limit:
        batch = await store.events(job.id, after=after, limit=1000)
        if not batch:
            return found, False
        found += [one for one in batch if everything or one.to_status is not None]
        after = batch[-1].seq
    return found[:limit], True


def _wanted(points: Sequence[MetricPoint], after: int | None, names: Sequence[str] | None) -> list[dict[str, Any]]:
    wanted = []
    for point in points:
        values = point.values if names is None else {k: v for k, v in point.values.items() if k in names}
        if values and (after is None or (point.step is not None and point.step > after)):
            wanted.append(views.metric(point, values))
    return wanted
