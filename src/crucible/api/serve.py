"""Serve an app on a socket that is already bound, so that its port is known before anybody is told. Signals are the
caller's business."""

import asyncio
import socket
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from crucible.api.joining import Joining

# Requests under way when the server stops get this long; whoever only waits for news is sent away at once.
GRACE_S = 8
# A connection whose other end takes nothing for so long (a laptop closed over a log) is dropped by the kernel.
SILENCE_S = 900
# A client that answers no ping for so long is gone, or lags so far that it may as well come back with its cursor.
PING_S = 20.0


async def serve(
    app: FastAPI, listener: socket.socket, stopping: asyncio.Event, *, on_ready: Callable[[], None]
) -> None:
    """Until `stopping` is set, or until cancelled; requests under way are finished either way."""
    server = uvicorn.Server(_config(app))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    _drop_the_dead(listener)
    await server.startup(sockets=[listener])
    ticking = asyncio.create_task(server.main_loop())
    try:
        on_ready()
        await stopping.wait()
    finally:
        server.should_exit = True
        app.state.shutdown.begin()
        await ticking
        await server.shutdown(sockets=[listener])
        for connection in list(server.server_state.connections):
            connection.transport.abort()  # a reader that does not read: its buffer would never be empty


def _drop_the_dead(listener: socket.socket) -> None:
    """Accepted connections inherit these."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE_S * 1000)


class JoiningProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Joining(transport, self.loop))


def _config(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=JoiningProtocol,
        ws="websockets-sansio",
        ws_max_size=64 << 10,  # clients have nothing to say on a socket
        ws_ping_interval=PING_S,
        ws_ping_timeout=PING_S,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # anybody can write them: an address is that of the connection
        backlog=2048,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=GRACE_S,
    )
