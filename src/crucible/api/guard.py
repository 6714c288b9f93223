"""The outermost layer, around every request: a name for it, checks of Host and Origin, sizes before anything is read,
headers that keep browsers from guessing, words for what is refused, and the last net for our own bugs."""

import asyncio
import ipaddress
import itertools
import logging
import re
import secrets
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crucible.api.access import SOCKET
from crucible.api.deps import ApiSettings
from crucible.api.door import ROUTE
from crucible.api.errors import error_reply, internal_error, refusal
from crucible.api.request_meter import RequestMeter
from crucible.api.shutdown import Shutdown
from crucible.model.errors import Forbidden, PlatformError, TooLarge
from crucible.ports import log_scope
from crucible.ports.clock import Clock

log = logging.getLogger("crucible.api")

# A body that stands still for longer is given up.
BODY_PAUSE_S = 30.0

DRAIN_BYTES, DRAIN_S = 16 << 20, 2.0

_HOSTS_REMEMBERED = 100
_HOST = re.compile(r"(?:\[(?P<bracketed>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d{1,5})?")
_OBJECTS = "/v1/objects/"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"permissions-policy", b"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
# Of these, an answer may bring its own.
_OWN = frozenset({b"content-security-policy", b"cache-control"})
_ONLY_HTTPS = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")
_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


class Guard:
    def __init__(
        self, app: ASGIApp, settings: ApiSettings, shutdown: Shutdown, requests: RequestMeter, clock: Clock
    ) -> None:
        self._app = app
        self._requests = requests
        self._clock = clock
        self._shutdown = shutdown
        self._settings = settings
        self._names = frozenset({"localhost", *(name.lower() for name in settings.allowed_hosts)})
        self._hosts: set[bytes | None] = set()  # headers that were found good
        self._headers = (*_HEADERS, _ONLY_HTTPS) if settings.is_https else _HEADERS
        self._prefix = secrets.token_hex(4)
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request_id = f"{self._prefix}-{next(self._numbers):x}"
        began, started = self._clock.monotonic(), False
        log_scope.request_id.set(request_id)

        async def send_named(message: Message) -> None:
            nonlocal started
            if message["type"] in _STARTS:
                brought = message["headers"]
                message["headers"] = [*brought, (b"x-request-id", request_id.encode()), *self._headers_beside(brought)]
                self._note(scope, message["status"], began)
            started = True
            await send(message)

        try:
            receive = self._checked(scope, receive)
        except PlatformError as error:
            await _refuse(error_reply(error), scope, receive, send_named)
            return
        try:
            await self._app(scope, receive, send_named)
        except asyncio.CancelledError:
            if not self._shutdown.is_stopping:
                raise  # else: it was given its time, and whoever asked does not read the answer
        except Exception as error:
            refused = refusal(error, Request(scope)) if scope["type"] == "http" and not started else None
            if refused is not None:
                await refused(scope, receive, send_named)
                return
            log.exception("request %s: %s %s failed", request_id, scope.get("method", "SOCKET"), _shown(scope["path"]))
            if started:
                raise  # the server breaks the connection off, so that half an answer is not taken for a whole one
            await _refuse(internal_error(request_id), scope, receive, send_named)

    def _headers_beside(self, brought: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
        own = _OWN.intersection(name for name, _ in brought)
        return [header for header in self._headers if header[0] not in own] if own else self._headers

    def _note(self, scope: Scope, status: int, began: float) -> None:
        method, route = scope.get("method", SOCKET), scope.get(ROUTE)
        self._requests.answered(method, route, status, self._clock.monotonic() - began)

    def _checked(self, scope: Scope, receive: Receive) -> Receive:
        """What to receive from; raises if the request must not go further."""
        host = origin = length = None
        is_chunked = False
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"content-length":
                length = value
            elif name == b"transfer-encoding":
                is_chunked = True
        self._check_host(host)
        method = scope.get("method", "SOCKET")
        if origin is not None and method not in _SAFE:
            _check_origin(origin, host)
        limit = self._limit(method, scope["path"])
        if length is not None and (not length.isdigit() or int(length) > limit):
            raise TooLarge(f"the body may have at most {limit} bytes; send less", limit_bytes=limit)
        has_body = is_chunked or (length is not None and length != b"0")
        return _bounded(receive, limit) if has_body else receive

    def _check_host(self, host: bytes | None) -> None:
        """A name that is not ours means that somebody else's DNS led a browser here; an address means no such thing."""
        if host in self._hosts:
            return
        name = _without_port((host or b"").decode("latin-1").lower())
        if name not in self._names and not _is_address(name):
            raise Forbidden("this server does not go by that name; start it with --allowed-host to change that")
        if len(self._hosts) < _HOSTS_REMEMBERED:
            self._hosts.add(host)

    def _limit(self, method: str, path: str) -> int:
        if path == "/agent/v1/report":
            return self._settings.max_report_bytes
        if method == "PUT" and path.startswith("/v1/packages/"):
            return self._settings.max_package_bytes
        if method == "PUT" and path.startswith(_OBJECTS):
            return self._settings.max_object_bytes
        if path == "/v1/recommendations":
            return self._settings.max_code_bytes
        return self._settings.max_body_bytes


def _shown(path: str) -> str:
    """The address of an object is a secret."""
    return f"{_OBJECTS}…" if path.startswith(_OBJECTS) else path


def _check_origin(origin: bytes, host: bytes | None) -> None:
    """A page may only act on the server that it came from."""
    _, _, place = origin.decode("latin-1").lower().partition("://")
    if not place or place != (host or b"").decode("latin-1").lower():
        raise Forbidden("a page from elsewhere may not use this server")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(host: str) -> str:
    """The name in a Host header; nothing that looks like one but is not."""
    match = _HOST.fullmatch(host)
    return (match["bracketed"] or match["name"]) if match else ""


def _bounded(receive: Receive, limit: int) -> Receive:
    """A body may not say its length beforehand, and may come ever more slowly."""
    seen = 0
    is_read = False

    async def bounded() -> Message:
        nonlocal seen, is_read
        if is_read:
            return await receive()
        try:
            async with asyncio.timeout(BODY_PAUSE_S):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408) from None
        seen += len(message.get("body", b""))
        is_read = not message.get("more_body", False)
        if seen > limit:
            raise HTTPException(413)
        return message

    return bounded


async def _refuse(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await _refuse_socket(response, receive, send)
        return
    response.headers["connection"] = "close"
    await _drained(receive)
    await response(scope, receive, send)


async def _drained(receive: Receive) -> None:
    """A client that is still sending would see its connection reset, not the reason. So a little more is taken from it
    and thrown away; one that sends far too much has to live with the reset."""
    left = DRAIN_BYTES
    try:
        async with asyncio.timeout(DRAIN_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        pass


async def _refuse_socket(response: Response, receive: Receive, send: Send) -> None:
    await receive()
    headers: Iterable[tuple[bytes, bytes]] = response.raw_headers
    await send({"type": "websocket.http.response.start", "status": response.status_code, "headers": list(headers)})
    await send({"type": "websocket.http.response.body", "body": bytes(response.body)})
