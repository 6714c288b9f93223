"""One connection of very many: as little of HTTP and of WebSockets as benchmarks speak."""

import asyncio
import json
import os
import socket
from base64 import b64encode
from typing import Any

from benchmarks.server import Server

TEXT, PING = 1, 9
# Of RFC 6455: what is longer says so with these, and is told in so many bytes more.
LONGER = {126: 2, 127: 8}


class Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, server: Server) -> "Line":
        return cls(*await asyncio.open_connection(*server.address))

    async def ask(self, method: str, path: str, token: str, body: object = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
        head += ["Content-Type: application/json", f"Content-Length: {len(data)}", "", ""]
        self._writer.write("\r\n".join(head).encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        text, status = await self._reader.readexactly(length), int(answer.split()[1])
        if status != 200:
            raise Refused(status, f"{method} {path}: {status} {text[:300]!r}")
        return json.loads(text)

    async def upgrade(self, path: str, token: str) -> None:
        self._writer.write(upgrade(path, token))
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 101"):
            raise RuntimeError(f"{path}: {answer[:200]!r}")

    async def message(self) -> Any:
        """The next text; a ping is answered, what else comes is passed over."""
        while True:
            first, length = await self._reader.readexactly(2)
            if length in LONGER:
                length = int.from_bytes(await self._reader.readexactly(LONGER[length]), "big")
            body, kind = await self._reader.readexactly(length), first & 0x0F
            if kind == PING:
                self._writer.write(pong(body))
            elif kind == TEXT:
                return json.loads(body)


def deaf(server: Server, path: str, token: str) -> socket.socket:
    """A subscriber who never reads a byte."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(server.address)
    one.sendall(upgrade(path, token))
    return one


def upgrade(path: str, token: str) -> bytes:
    head = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    head += [f"Authorization: Bearer {token}", "Sec-WebSocket-Version: 13"]
    head += [f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}", "", ""]
    return "\r\n".join(head).encode()


def pong(body: bytes) -> bytes:
    """Masked with nothing, which is a mask."""
    return bytes((0x8A, 0x80 | len(body))) + bytes(4) + body
