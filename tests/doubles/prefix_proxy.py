"""A reverse proxy on loopback, as one stands before a server that has a path of its own: it takes the prefix away and
passes on everything else as it came, WebSockets too. What was asked for outside the prefix is kept for tests."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

MOST_BYTES = 64 << 10
ELSEWHERE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
AND_A_SLASH = "HTTP/1.1 308 Permanent Redirect\r\nLocation: {}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class PrefixProxy(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, server: str, prefix: str) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.prefix = prefix
        self.strays: list[str] = []
        self._server = server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{self.prefix}"

    def reached(self) -> socket.socket:
        parts = urlsplit(self._server)
        return socket.create_connection((str(parts.hostname), int(parts.port or 80)))

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle is none."""


class Passing(socketserver.BaseRequestHandler):
    """One request, or one WebSocket: whoever wants more connects again."""

    server: PrefixProxy
    request: socket.socket

    def handle(self) -> None:
        head, body = self._head()
        line, *fields = head.split(b"\r\n")
        method, path, version = line.decode("latin-1").split(" ")
        prefix = self.server.prefix
        if path == prefix:
            self.request.sendall(AND_A_SLASH.format(prefix).encode())
        elif not path.startswith(f"{prefix}/"):
            self.server.strays.append(path)
            self.request.sendall(ELSEWHERE)
        else:
            asked = " ".join((method, path.removeprefix(prefix), version)).encode("latin-1")
            self._pass(b"\r\n".join([asked, *_once(fields)]) + b"\r\n\r\n" + body)

    def _head(self) -> tuple[bytes, bytes]:
        """Up to the empty line, and what came behind it."""
        seen = b""
        while b"\r\n\r\n" not in seen:
            came = self.request.recv(MOST_BYTES)
            if not came:
                raise ConnectionError("it went away")
            seen += came
        head, _, body = seen.partition(b"\r\n\r\n")
        return head, body

    def _pass(self, asked: bytes) -> None:
        with self.server.reached() as beyond:
            beyond.sendall(asked)
            there = threading.Thread(target=_flow, args=(self.request, beyond), daemon=True)
            there.start()
            _flow(beyond, self.request)
            with suppress(OSError):
                self.request.shutdown(socket.SHUT_RDWR)
            there.join()


def _once(fields: list[bytes]) -> list[bytes]:
    """Not kept open for the next request, unless it becomes a WebSocket."""
    if any(field.lower().startswith(b"upgrade:") for field in fields):
        return fields
    return [*(field for field in fields if not field.lower().startswith(b"connection:")), b"Connection: close"]


def _flow(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while came := source.recv(MOST_BYTES):
            sink.sendall(came)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextmanager
def prefix_proxy(server: str, prefix: str) -> Iterator[PrefixProxy]:
    with PrefixProxy(server, prefix) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
