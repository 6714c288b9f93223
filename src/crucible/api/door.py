"""Nobody reaches a handler without passing here: each route is wrapped with the access that its row asks for."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from crucible.api.access import SOCKET, Access, Need, check, required
from crucible.api.arguments import called
from crucible.api.deps import Deps
from crucible.api.errors import error_reply, same_words
from crucible.api.limits import Limits
from crucible.api.request_meter import RequestMeter
from crucible.model.account import Grant, Principal, Role
from crucible.model.errors import (
    Busy,
    Forbidden,
    InvariantBroken,
    NotFound,
    PlatformError,
    StorageFailed,
    Unauthenticated,
)
from crucible.model.ids import AttemptId, JobId, TokenId
from crucible.ports.log_scope import for_job

ROUTE = "crucible.route"  # its template
_WHO = "crucible.who"
_BEARER = "crucible.bearer"
_ATTEMPT = "crucible.attempt"
# A browser cannot set headers on a WebSocket: there the token comes as a subprotocol.
_SUBPROTOCOL = "bearer."
_ATTEMPT_PREFIX = "cra."
# Whoever has a socket open is looked at again so often: a token that is revoked ends what it opened.
LOOK_AGAIN_S = 10.0
NO_LONGER = 1008  # in words of WebSockets: a policy was violated
# Job code acts for its owner, but only looks.
ONLY_LOOK = frozenset({Grant.READ})


def principal(request: Request | WebSocket) -> Principal:
    """Who is asking, on routes for people."""
    who = request.scope.get(_WHO)
    if not isinstance(who, Principal):
        raise InvariantBroken(f"{request.scope['path']} asks for a person, but its row does not")
    return who


def bearer(request: Request | WebSocket) -> str:
    """The token of an agent, on routes for agents; the gateway knows what it stands for."""
    return str(request.scope[_BEARER])


def attempt_of(request: Request) -> AttemptId:
    """Whose program is asking, on routes for workers."""
    return AttemptId(str(request.scope[_ATTEMPT]))


class Door:
    def __init__(self, deps: Deps, requests: RequestMeter) -> None:
        self._deps = deps
        self.requests = requests
        self._limits = Limits(deps.settings.rate_limits, deps.clock.monotonic)

    async def admit(self, need: Need, scope: Scope) -> None:
        """Raises Unauthenticated, Forbidden, NotFound or Busy."""
        address = _address(scope)
        if need.access is Access.SIGNED:
            self._limits.signed.take(address)
            return
        if need.access is Access.PUBLIC:
            self._limits.anonymous.take(address)
            return
        try:
            await self._recognise(need, scope, address)
        except Unauthenticated:
            self._limits.failures.take(address)
            raise

    async def serve(
        self, need: Need, socket: WebSocket, endpoint: Callable[[WebSocket], Coroutine[Any, Any, None]]
    ) -> None:
        """Until it ends, or until whoever asked would no longer be let in."""
        serving = asyncio.ensure_future(endpoint(socket))
        try:
            while not (await asyncio.wait([serving], timeout=LOOK_AGAIN_S))[0]:
                await self._check_again(need, socket.scope)
        except (Unauthenticated, Forbidden) as error:
            serving.cancel()
            await asyncio.wait([serving])
            await socket.close(NO_LONGER, error.code)
            return
        finally:
            serving.cancel()
        serving.result()

    async def _check_again(self, need: Need, scope: Scope) -> None:
        """Agents and job code have tokens that end with what they are for, and so does what they opened. A store that
        does not answer says nothing about anybody."""
        if _WHO in scope and not scope[_BEARER].startswith(_ATTEMPT_PREFIX):
            with suppress(StorageFailed, Busy):
                check(need, await self._deps.people.authenticate(scope[_BEARER]))

    async def _recognise(self, need: Need, scope: Scope, address: str) -> None:
        access, token = need.access, _token(scope)
        scope[_BEARER] = token
        if access is Access.NODE:
            self._limits.agents.take(await self._deps.gateway.authenticate(token))
        elif access is Access.WORKER:
            attempt_id = scope[_ATTEMPT] = await self._deps.gateway.attempt_principal(token)
            self._limits.agents.take(attempt_id)
        elif access is Access.ATTEMPT and token.startswith(_ATTEMPT_PREFIX):
            scope[_WHO] = await self._attempt(token, scope["path_params"].get("job_id", ""))
        elif access is not Access.ENROLMENT:
            scope[_WHO] = await self._person(token, need, address)

    async def _person(self, token: str, need: Need, address: str) -> Principal:
        """An address that tries one token after another is not even listened to for a while."""
        self._limits.failures.check(address)
        who = await self._deps.people.authenticate(token)
        self._limits.people.take(who.token_id)
        check(need, who)
        return who

    async def _attempt(self, token: str, job_id: str) -> Principal:
        """Job code acts for its job's owner, on its own job and nothing else."""
        attempt_id = await self._deps.gateway.attempt_principal(token)
        self._limits.agents.take(attempt_id)
        attempt = await self._deps.store.attempt(attempt_id)
        if attempt.job_id != job_id:
            raise NotFound(f"no job {job_id[:64]}")
        job = await self._deps.store.job(JobId(job_id))
        return Principal(job.user_id, Role.MEMBER, TokenId(f"attempt:{attempt_id}"), grants=ONLY_LOOK)


def guarded_route(door: Door) -> type[APIRoute]:
    """The class of all HTTP routes."""

    class GuardedRoute(APIRoute):
        def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
            super().__init__(path, endpoint, **options)
            (need,) = {required(method, path) for method in self.methods or ()}
            self.app = _admitting(door, need, path, called(self))

    return GuardedRoute


class GuardedSocket(WebSocketRoute):
    """The class of all WebSocket routes: who is refused gets an ordinary HTTP answer instead of a socket."""

    def __init__(self, door: Door, path: str, endpoint: Callable[[WebSocket], Coroutine[Any, Any, None]]) -> None:
        need = required(SOCKET, path)

        async def admitted(socket: WebSocket) -> None:
            socket.scope[ROUTE] = path
            door.requests.opened(path)
            try:
                await door.admit(need, socket.scope)
                await door.serve(need, socket, endpoint)
            except PlatformError as error:
                if isinstance(error, InvariantBroken) or socket.client_state.name != "CONNECTING":
                    raise
                await socket.receive()
                await socket.send_denial_response(error_reply(same_words(error, socket.path_params)))
            finally:
                door.requests.closed(path)

        super().__init__(path, admitted)


def _admitting(door: Door, need: Need, path: str, app: ASGIApp) -> ASGIApp:
    async def admitted(scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = path
        if "job_id" in scope["path_params"]:
            for_job(scope["path_params"]["job_id"])
        await door.admit(need, scope)
        await app(scope, receive, send)

    return admitted


def _address(scope: Scope) -> str:
    """Of the computer that the connection comes from."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _token(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() == "bearer" and token:
                return _sane(token.strip())
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(_SUBPROTOCOL):
            return _sane(offered.removeprefix(_SUBPROTOCOL))
    raise Unauthenticated("this needs a token: Authorization: Bearer …; `crucible login` saves one")


def _sane(token: str) -> str:
    if len(token) > 512 or not token.isascii():
        raise Unauthenticated("that is no token of this server; `crucible login` saves one")
    return token
