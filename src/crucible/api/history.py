"""What a job did: its events, attempts, artifacts, metrics, and the spec it came from."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import Offset, TaskIndex, add, job_id_of
from crucible.model.errors import InvalidRequest, NotFound
from crucible.model.ids import TaskId
from crucible.model.job import Job
from crucible.model.metrics import MINUTE_MS, QUARTER_MS
from crucible.ports.store import LoggedEvent, Store
from crucible.ports.streams import Channel, ChartQuery, MetricPoint
from crucible.wire import rest
from crucible.wire.plans import Plan

MAX_EVENTS = 10_000
MAX_CHART, USUAL_CHART = 5000, 1000  # points of each name
MAX_POINTS = 10_000
_READ_BYTES = 256 << 10


class Resolution(StrEnum):
    RAW = "raw"
    MINUTE = "1m"
    QUARTER = "15m"


RESOLUTION_MS = {Resolution.RAW: 0, Resolution.MINUTE: MINUTE_MS, Resolution.QUARTER: QUARTER_MS}


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
        add(router, "GET", "/v1/jobs/{job_id}/plan", self.plan, Plan)
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
        begin: Annotated[datetime | None, Query(alias="from", description="A chart: not before")] = None,
        end: Annotated[datetime | None, Query(alias="to", description="A chart: before")] = None,
        resolution: Annotated[Resolution | None, Query(description="A chart: at this or, if need be, coarser")] = None,
        max_points: Annotated[int | None, Query(ge=1, le=MAX_CHART, description="A chart: of each name")] = None,
        of: Annotated[Channel, Query(description="What it reported, or how its machines are used")] = Channel.METRICS,
        rank: Annotated[int | None, Query(ge=0, lt=2**31, description="A chart: of this one alone")] = None,
    ) -> Response:
        """Points in the order they came; read on from `next_offset`. With a range, a resolution or `max_points`: a
        chart, in as many points as asked for, whatever the length of the job."""
        task_id = await task_of(self._deps.store, await self._job(request, job_id), task)
        is_chart = any(one is not None for one in (begin, end, resolution, max_points, rank))
        if is_chart or of is Channel.USAGE:
            query = ChartQuery(
                from_ms=_ms(begin),
                to_ms=_ms(end),
                resolution_ms=None if resolution is None else RESOLUTION_MS[resolution],
                max_points=max_points or USUAL_CHART,
                names=name,
                rank=rank,
            )
            return json_reply(views.chart(await self._deps.streams.chart(task_id, of, query), offset))
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
    found = await (store.events if everything else store.statuses)(job.id, after=after, limit=limit)
    return found, len(found) == limit


def _ms(at: datetime | None) -> int | None:
    if at is None:
        return None
    if at.tzinfo is None:
        raise InvalidRequest("a time needs its zone, as in 2026-11-18T12:00:00Z", field="from")
    return round(at.timestamp() * 1000)


def _wanted(points: Sequence[MetricPoint], after: int | None, names: Sequence[str] | None) -> list[dict[str, Any]]:
    wanted = []
    for point in points:
        values = point.values if names is None else {k: v for k, v in point.values.items() if k in names}
        if values and (after is None or (point.step is not None and point.step > after)):
            wanted.append(views.metric(point, values))
    return wanted
