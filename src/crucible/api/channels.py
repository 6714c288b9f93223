"""Channels between people and nodes: two WebSockets, and a loop that passes on what comes, as fast as the slower side
takes it. Nothing is kept, nothing is read but the first message; wire.channels says what passes."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from crucible.api.deps import Deps
from crucible.api.door import bearer, principal
from crucible.api.history import task_of
from crucible.api.reply import encoded
from crucible.api.routing import job_id_of, number_in
from crucible.engine.channels import COMES_WITHIN, Meeting, Place
from crucible.model.account import Principal
from crucible.model.errors import Conflict, InvalidRequest, PlatformError, Unreachable
from crucible.model.ids import ChannelId
from crucible.model.job import Job
from crucible.wire.channels import ERROR, REQUEST

log = logging.getLogger("crucible.channels")

COMES_WITHIN_S = COMES_WITHIN.total_seconds()
# The first message of somebody who has opened a channel.
FIRST_WORD_S = 10.0
# Nothing passed for so long: somebody forgot a terminal. And nobody works in one for longer than a day.
IDLE_S = 3600.0
LONGEST_S = 86_400.0
LOOK_S = 10.0
# Whoever takes nothing for so long is gone.
SEND_LIMIT_S = 60.0
# For an ending to be said and heard.
LAST_WORDS_S = 5.0
NORMAL = 1000


class ChannelRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    async def person(self, socket: WebSocket) -> None:
        """Refused before it is accepted, if there is nothing to reach."""
        who, query, channels = principal(socket), socket.query_params, self._deps.channels
        job = await self._deps.service.find_to_change(who, job_id_of(socket.path_params["job_id"]))
        task_id = await task_of(self._deps.store, job, number_in(query, "task", 0))
        place = await channels.place(job, task_id, number_in(query, "rank", 0))
        with channels.seat(who.user_id, place.node_id):
            await socket.accept()
            try:
                await self._talk(socket, who, job, place)
            except PlatformError as error:
                await self._say_and_close(socket, error)
            except (WebSocketDisconnect, TimeoutError):
                pass

    async def agent(self, socket: WebSocket) -> None:
        """The node that was called. It stays as long as the person does."""
        node_id = await self._deps.gateway.authenticate(bearer(socket))
        meeting = await self._deps.channels.arrive(node_id, ChannelId(socket.path_params["channel_id"]))
        await socket.accept()
        if not meeting.agent.done():
            meeting.agent.set_result(socket)
        await meeting.is_over.wait()

    async def _talk(self, socket: WebSocket, who: Principal, job: Job, place: Place) -> None:
        request = await self._first_word(socket)
        # What is run there may hold a secret: only that somebody came is written down.
        told = {"kind": request["kind"], "rank": place.rank}
        await self._deps.audits.note(who, "channel.open", f"job:{job.id}", team=job.team, **told)
        async with self._deps.channels.meet(place, request) as meeting:
            log.info("channel %s: %s %s", meeting.channel.id, who.user_id, _deed(request, place))
            agent = await self._called(socket, meeting)
            began = self._deps.clock.monotonic()
            passing = Passing(self._deps, socket, agent)
            try:
                await passing.run(self._deps.channels.until_over(place))
                await self._close(socket)
            finally:
                took = self._deps.clock.monotonic() - began
                log.info("channel %s: ended after %.1f s, %d bytes", meeting.channel.id, took, passing.size_bytes)
                await self._close(agent)

    async def _first_word(self, socket: WebSocket) -> Mapping[str, Any]:
        """What is asked for. Raises InvalidRequest."""
        message = await self._deps.clock.wait_for(socket.receive(), FIRST_WORD_S)
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect
        try:
            return REQUEST.validate_json(message.get("text") or "").model_dump(mode="json")
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise InvalidRequest(f"{field}: {first['msg']}" if field else first["msg"], field=field) from None

    async def _called(self, socket: WebSocket, meeting: Meeting) -> WebSocket:
        """The agent's socket. Raises Unreachable, WebSocketDisconnect."""
        leaving = asyncio.ensure_future(socket.receive())  # nobody says anything before there is room for it
        try:
            await asyncio.wait(
                {leaving, meeting.agent},
                timeout=COMES_WITHIN_S,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if leaving.done():
                _refuse(leaving.result())
            if not meeting.agent.done():
                raise Unreachable(
                    "the node does not answer; its agent may be gone or too old for this",
                    hint="crucible describe JOB shows when it was last heard; try again in a moment",
                )
            agent: WebSocket = meeting.agent.result()
            return agent
        finally:
            if not leaving.done():
                leaving.cancel()

    async def _say_and_close(self, socket: WebSocket, error: PlatformError) -> None:
        said = {"error": error.code, "message": error.message, "details": dict(error.details)}
        try:
            await self._deps.clock.wait_for(socket.send_bytes(bytes([ERROR]) + encoded(said)), LAST_WORDS_S)
        except (WebSocketDisconnect, RuntimeError, TimeoutError):
            return
        await self._close(socket)

    async def _close(self, socket: WebSocket) -> None:
        """A RuntimeError is the framework's word for "it is closed already"."""
        try:
            await self._deps.clock.wait_for(socket.close(), LAST_WORDS_S)
        except (WebSocketDisconnect, RuntimeError, TimeoutError):
            pass


class Passing:
    """One open channel: what comes on one side goes out on the other."""

    def __init__(self, deps: Deps, person: WebSocket, agent: WebSocket) -> None:
        self._deps = deps
        self._person = person
        self._agent = agent
        self._began = self._moved = deps.clock.monotonic()
        self.size_bytes = 0

    async def run(self, rank_over: Any) -> None:
        """Until one of the two is gone, the rank is over, or nothing happens for too long."""
        up = asyncio.ensure_future(self._pass(self._person, self._agent))
        down = asyncio.ensure_future(self._pass(self._agent, self._person))
        over = asyncio.ensure_future(rank_over)
        tasks: set[asyncio.Future[Any]] = {up, down, over}
        try:
            while not (await asyncio.wait(tasks, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED))[0]:
                self._check_limits()
            if up.done() and not down.done():
                up.result()
            else:
                await self._last_words(down, over)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _last_words(self, down: "asyncio.Future[int]", over: "asyncio.Future[None]") -> None:
        """The node closes when it has said all; a rank that is over gives it a moment to say so itself."""
        if over.done() and not down.done():
            await asyncio.wait({down}, timeout=LAST_WORDS_S)
        if down.done() and down.exception() is None and down.result() == NORMAL:
            return
        if over.done():
            raise Conflict("the rank has ended, and everything beside it")
        raise Unreachable("the node hung up; what ran there was ended, or the machine is gone")

    async def _pass(self, source: WebSocket, target: WebSocket) -> int:
        """The code that `source` was closed with."""
        while True:
            message = await source.receive()
            if message["type"] == "websocket.disconnect":
                return int(message.get("code") or NORMAL)
            data = message.get("bytes")
            if not data:
                _refuse(message)
            await self._deps.clock.wait_for(target.send_bytes(data), SEND_LIMIT_S)
            self.size_bytes += len(data)
            self._moved = self._deps.clock.monotonic()

    def _check_limits(self) -> None:
        now = self._deps.clock.monotonic()
        if now - self._moved > IDLE_S:
            raise Conflict(f"nothing was said for {IDLE_S / 60:.0f} minutes: the channel was closed")
        if now - self._began > LONGEST_S:
            raise Conflict(f"the channel was open for {LONGEST_S / 3600:.0f} hours: it was closed")


def _refuse(message: Mapping[str, Any]) -> NoReturn:
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    raise InvalidRequest("only binary messages pass through a channel, and none before the node has granted room")


def _deed(request: Mapping[str, Any], place: Place) -> str:
    """For the operator. Not the command itself: people put secrets there."""
    return f"opens {request['kind']} beside rank {place.rank} of job {place.job_id} on node {place.node_id}"
