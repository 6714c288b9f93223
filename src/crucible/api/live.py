"""A job as it happens, over a WebSocket: status, progress, metrics, log lines, cost, health, and an end.

Every message carries a cursor; whoever comes back with the last one misses nothing and gets nothing twice. Each client
is served at its own pace from the store and the streams: nothing is queued for it, so a slow one only lags. Those who
keep up hear the same, which is read and written down once for all of them. It sends nothing but what it was asked for
and takes no messages."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.history import task_of
from crucible.api.pieces import Cursor, PieceReader, Place, written
from crucible.api.pulse import Pulse, Seen
from crucible.api.request_meter import RequestMeter
from crucible.api.routing import job_id_of, number_in
from crucible.api.shutdown import Shutdown
from crucible.api.status_views import finding
from crucible.model.errors import InvalidRequest, PlatformError
from crucible.model.health import Health
from crucible.model.ids import TaskId
from crucible.model.job import Job
from crucible.ports.store import LoggedEvent, Store
from crucible.ports.trials import JobProgress

PROTOCOL = "crucible.v1"
# Whoever takes nothing for so long may come back with its cursor.
SEND_LIMIT_S = 60.0
# Codes of RFC 6455: the server goes away; it failed.
GOING_AWAY, FAILED = 1001, 1011

_CURSOR = re.compile(r"(\d{1,18})-(\d{1,18})-(\d{1,18})")


class LiveRoutes:
    def __init__(self, deps: Deps, pulse: Pulse, shutdown: Shutdown, requests: RequestMeter) -> None:
        self._deps = deps
        self._requests = requests
        self._pulse = pulse
        self._pieces = PieceReader(deps.streams)
        self._shutdown = shutdown

    async def stream(self, socket: WebSocket) -> None:
        job = await self._deps.service.find(principal(socket), job_id_of(socket.path_params["job_id"]))
        query = socket.query_params
        task_id = await task_of(self._deps.store, job, number_in(query, "task", 0))
        cursor = _cursor(query.get("cursor"))
        if "tail" in query and not query.get("cursor"):
            cursor = replace(cursor, log=await self._deps.streams.tail_offset(task_id, number_in(query, "tail", 0)))
        await socket.accept(subprotocol=_subprotocol(socket))
        watch = asyncio.ensure_future(_gone(socket))
        try:
            with_points = query.get("metrics") != "false"
            telling = Telling(self._deps.store, self._pieces, task_id, cursor, with_points=with_points)
            await self._send(socket, watch, telling, job)
        finally:
            watch.cancel()

    async def _send(self, socket: WebSocket, watch: "asyncio.Future[None]", telling: "Telling", job: Job) -> None:
        try:
            while not watch.done() and not self._shutdown.is_stopping:
                seen = await self._pulse.look(job.id)
                async for text in telling.news(seen):
                    await self._deps.clock.wait_for(socket.send_text(text), SEND_LIMIT_S)
                if telling.is_over:
                    await socket.close()
                    return
                if telling.is_up_to_date:
                    await self._pulse.wait(seen)
                else:
                    await self._deps.clock.sleep(0)  # a socket with room takes it at once: others are to have a turn
            if not watch.done():
                await socket.close(GOING_AWAY, "the server is stopping; come back with your cursor")
        except WebSocketDisconnect:
            pass
        except TimeoutError:
            self._requests.dropped(1)
        except PlatformError as error:
            await socket.close(FAILED, error.code)


class Telling:
    """What one client has been told, and what it has not."""

    def __init__(
        self, store: Store, pieces: PieceReader, task_id: TaskId, cursor: Cursor, *, with_points: bool = True
    ) -> None:
        self._store = store
        self._pieces = pieces
        self._with_points = with_points  # who draws charts asks for those, and not for every point
        self._task_id = task_id
        self.cursor = cursor
        self.is_up_to_date = False
        self.is_over = False
        self._version = -1
        self._state: tuple[object, ...] | None = None
        self._progress: JobProgress | None = None
        self._cost: Mapping[str, Any] | None = None
        self._health: Mapping[str, Any] | None = health_view(None)  # told when it is known

    async def news(self, seen: Seen) -> AsyncIterator[str]:
        """Messages, each of which moves the cursor past itself. At most one piece of each stream: others' news must not
        wait."""
        job = seen.job
        if job.version != self._version:
            async for message in self._statuses(job):
                yield written(message, self.cursor)
            self._version = job.version
        for message in self._figures(seen):
            yield written(message, self.cursor)
        for text in await self._next(seen):
            yield text
        if job.status.is_terminal and self.is_up_to_date:
            self.is_over = True
            yield written({"type": "end", "status": job.status, "reason": job.reason}, self.cursor)

    def _figures(self, seen: Seen) -> Iterator[dict[str, Any]]:
        """What has changed of them."""
        if seen.progress and seen.progress != self._progress:
            self._progress = seen.progress
            yield {"type": "progress", **(views.progress_view(seen.progress) or {})}
        cost = views.cost(seen.job, seen.cost)
        if cost != self._cost:
            self._cost = cost
            yield {"type": "cost", **cost}
        health = health_view(seen)
        if health != self._health:
            self._health = health
            yield {"type": "health", **health}

    async def _statuses(self, job: Job) -> AsyncIterator[dict[str, Any]]:
        """Every change since the cursor, then the present state if the last change does not say it all."""
        while batch := await self._store.statuses(job.id, after=self.cursor.event, limit=1000):
            for event in batch:
                self.cursor = replace(self.cursor, event=event.seq)
                yield self._status(job, event)
        state = (job.status, job.desired, job.reason)
        if state != self._state:
            self._state = state
            at = job.updated_at or job.created_at
            yield {"type": "status", "status": job.status, "desired": job.desired, "reason": job.reason, "at": at}

    def _status(self, job: Job, event: LoggedEvent) -> dict[str, Any]:
        self._state = (event.to_status, job.desired, event.reason)
        return {
            "type": "status",
            "status": event.to_status,
            "from": event.from_status,
            "desired": job.desired,
            "reason": event.reason,
            "at": event.at,
        }

    async def _next(self, seen: Seen) -> Sequence[str]:
        place = Place(self._task_id, self.cursor, self._with_points)
        found = await self._pieces.next(seen, place, is_behind=not self.is_up_to_date)
        self.cursor, self.is_up_to_date = found.cursor, found.is_all
        return found.texts


def health_view(seen: Seen | None) -> dict[str, Any]:
    """How it is, while it works."""
    if seen is None or seen.health is None or seen.job.status.is_terminal:
        return {"status": Health.UNKNOWN, "findings": []}
    return {"status": seen.health.status, "findings": [finding(one) for one in seen.findings]}


def _cursor(text: str | None) -> Cursor:
    if not text:
        return Cursor()
    match = _CURSOR.fullmatch(text)
    if match is None:
        raise InvalidRequest("the cursor is not one of ours; send the last one you got, or none", field="cursor")
    return Cursor(*(int(part) for part in match.groups()))


def _subprotocol(socket: WebSocket) -> str | None:
    """A browser that offers some wants one of them back: ours if it is there, else the one that carried the token."""
    offered = socket.scope.get("subprotocols") or []
    if PROTOCOL in offered or not offered:
        return PROTOCOL if offered else None
    return str(offered[0])


async def _gone(socket: WebSocket) -> None:
    """What a client says is not for us; that it went away is."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass
