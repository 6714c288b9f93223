"""One port for everything: the Lab's own door, the metadata of its machines, and the vendors' APIs. Reads a request
whole, or hands its body on to storage as it comes; asks whoever is responsible, sends the answer, late or never if that
is what it says."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Protocol

import uvicorn

from crucible.lab import control, imds
from crucible.lab.gcs import front as gcs
from crucible.lab.http import ClientLeft, FilePart, Request, Response

log = logging.getLogger("crucible.lab")

# Larger than anything a vendor takes (user-data is 16 KiB, a page of parameters a few times that).
MAX_BODY = 1 << 20
PIECE_BYTES = 256 << 10  # of a file that is sent at a time
GRACE_S = 2

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class FrontEnd(Protocol):
    async def handle(self, request: Request) -> Response: ...


class StorageFrontEnd(Protocol):
    async def handle(self, request: Request, body: AsyncIterator[bytes]) -> Response:
        """The request's own body is empty. Whoever is sent away early need not have been heard to the end."""
        ...


class App:
    """`settle` is waited for before a vendor is asked: what has happened by then can be seen in its answer, and nothing
    runs any more of machines that it calls terminated."""

    def __init__(
        self,
        own: FrontEnd,
        metadata: FrontEnd,
        vendor: FrontEnd,
        storage: StorageFrontEnd,
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        self._own = own
        self._settle = settle
        self._metadata = metadata
        self._vendor = vendor
        self._storage = storage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = await self._answer(scope, receive)
        try:
            if answer.after_s > 0:
                await asyncio.sleep(answer.after_s)
            if answer.is_cut:
                _cut(send)
            else:
                await _send(answer, send)
        finally:
            answer.close()

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        try:
            if scope["path"].startswith(gcs.PREFIX):
                return await self._storage.handle(_request(scope, b""), _chunks(receive))
            body = await _body(receive)
            return Response(status=413) if body is None else await self._asked(_request(scope, body))
        except ClientLeft:
            return Response(is_cut=True)
        except Exception:  # one request must not end the others
            log.exception("%s %s failed", scope["method"], scope["path"])
            return Response(status=500, body=b"the Lab failed; its log says why")

    async def _asked(self, request: Request) -> Response:
        responsible = self._responsible(request.path)
        if responsible is self._vendor:
            await self._settle()
        return await responsible.handle(request)

    def _responsible(self, path: str) -> FrontEnd:
        if path.startswith(control.PREFIX):
            return self._own
        return self._metadata if path.startswith(imds.PREFIX) else self._vendor


async def serve(app: App, listener: socket.socket, stopping: asyncio.Event, on_ready: Callable[[], None]) -> None:
    """Until `stopping` is set."""
    server = uvicorn.Server(_config(app))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])
    ticking = asyncio.create_task(server.main_loop())
    try:
        on_ready()
        await stopping.wait()
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        await server.shutdown(sockets=[listener])


def _config(app: App) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=2048,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_S,
    )


def _request(scope: Scope, body: bytes) -> Request:
    return Request(
        method=scope["method"],
        path=scope["path"],
        raw_path=scope["raw_path"].decode("ascii", "replace"),
        query=scope["query_string"].decode("ascii", "replace"),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]},
        body=body,
    )


async def _body(receive: Receive) -> bytes | None:
    """None if there is too much of it."""
    parts: list[bytes] = []
    async for part in _chunks(receive):
        parts.append(part)
        if sum(map(len, parts)) > MAX_BODY:
            return None
    return b"".join(parts)


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    """Raises ClientLeft."""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ClientLeft
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _send(answer: Response, send: Send) -> None:
    headers = {"content-length": str(len(answer.body)), **answer.headers}
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    if answer.file is not None:
        await _send_file(answer.file, send)
    await send({"type": "http.response.body", "body": answer.body})


async def _send_file(part: FilePart, send: Send) -> None:
    left = part.length
    while left:
        piece = part.file.read(min(left, PIECE_BYTES))
        if not piece:
            raise EOFError(f"{left} bytes are missing")
        left -= len(piece)
        await send({"type": "http.response.body", "body": piece, "more_body": True})


def _cut(send: Send) -> None:
    """ASGI has no word for it: the connection is behind uvicorn's `send`, and is closed before anything is sent."""
    cycle = getattr(send, "__self__", None)
    transport = getattr(cycle, "transport", None)
    if cycle is None or transport is None:
        raise RuntimeError("this uvicorn hides its connections: no answer can be lost on its way")
    cycle.disconnected = True  # or uvicorn complains that nothing was sent
    transport.abort()
