"""A real HTTP server on loopback whose answers a test writes: what the client meets at the wire."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Double"

    def _any(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, url.path, dict(parse_qsl(url.query)), headers, self.rfile.read(length))
        self.server.requests.append(request)
        self.server.answer(request, self)

    do_GET = do_POST = do_PUT = do_PATCH = do_HEAD = do_DELETE = _any

    def log_message(self, *args: object) -> None:
        pass

    # --- what a test's answer uses ---------------------------------------------------------------

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def begin_chunks(self, **headers: str) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        if data:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_chunks(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """The line breaks: no end of the answer, no end of the chunk."""
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)


class Double(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[Request, Handler], None], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.answer = answer
        self.requests: list[Request] = []
        self._transports: list[Transport] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def transport(self, **options: Any) -> Transport:
        transport = Transport(Endpoint(self.url, "s3cret-token"), **options)
        self._transports.append(transport)
        return transport

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A test that hangs up makes the handler fail: that is the point of it."""


@contextmanager
def serving(answer: Callable[[Request, Handler], None], port: int = 0) -> Iterator[Double]:
    double = Double(answer, port)
    thread = threading.Thread(target=double.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        for transport in double._transports:
            transport.close()
        double.shutdown()
        thread.join()
        double.server_close()
