"""A double of object storage on loopback: signed addresses that expire, objects that are whole or absent, and faults on
demand. It knows no credentials and no lists: the server's double looks into it directly."""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from crucible.wire import agent as wire

# Whoever was given an address was given this header with it.
HEADERS = {"x-signed-too": "yes"}


class Fault:
    """What happens to the next `times` requests of a method whose key begins so."""

    def __init__(self, method: str, key: str, kind: str, times: int = 1) -> None:
        self.method = method
        self.key = key
        self.kind = kind  # cut, lost, held, or a status
        self.times = times


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: "_Http"

    def do_GET(self) -> None:
        self.server.double.handle(self)

    do_PUT = do_GET

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    double: "StorageDouble"

    def handle_error(self, *_: Any) -> None:
        pass

    def process_request(self, request: Any, client_address: Any) -> None:
        self.double.came_and_went(1)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.double.came_and_went(-1)


class StorageDouble:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, int]] = []  # method, key, status; of those that were answered
        self.problems: list[str] = []
        self.knows_ranges = True
        self.changed = threading.Condition()
        self.connections = 0  # that are open
        self._is_held = True
        self._epoch = 0
        self._secret = secrets.token_hex(8)
        self._http: _Http | None = None
        self._port = 0

    def start(self) -> None:
        self._http = _Http(("127.0.0.1", self._port), _Handler)
        self._http.double = self
        self._port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        if self._http is not None:
            http, self._http = self._http, None
            http.shutdown()
            http.server_close()
            self.release()

    # --- what a test says and asks --------------------------------------------------------------

    def sign(self, method: Any, key: str) -> wire.Signed:
        query = f"signature={self._secret}-{self._epoch}-{method}"
        return wire.Signed(method=method, url=f"http://127.0.0.1:{self._port}/{quote(key)}?{query}", headers=HEADERS)

    def expire(self) -> None:
        """Whatever was signed until now."""
        self._epoch += 1

    def release(self) -> None:
        """Requests that were held go on, and those to come are not."""
        with self.changed:
            self._is_held = False
            self.changed.notify_all()

    def fail(self, method: str, key: str, kind: str, times: int = 1) -> None:
        self.faults.append(Fault(method, key, kind, times))

    def count(self, method: str, key: str = "") -> int:
        return sum(m == method and k.startswith(key) and status < 300 for m, k, status in self.requests)

    def names(self, key: str) -> list[str]:
        return sorted(name for name in self.objects if name.startswith(key))

    def wait_for(self, claim: Callable[[], Any], timeout_s: float = 20, what: str = "") -> Any:
        deadline = time.monotonic() + timeout_s
        with self.changed:
            while not (value := claim()):
                left = deadline - time.monotonic()
                assert left > 0, f"did not happen within {timeout_s} s: {what or claim}; {self.requests}"
                self.changed.wait(min(left, 0.05))
        return value

    def came_and_went(self, change: int) -> None:
        with self.changed:
            self.connections += change
            self.changed.notify_all()

    # --- requests -------------------------------------------------------------------------------

    def handle(self, http: _Handler) -> None:
        parts = urlsplit(http.path)
        key, method = unquote(parts.path[1:]), http.command
        kind = self._fault(method, key)
        size = int(http.headers.get("Content-Length") or 0)
        if kind == "cut" and method == "PUT":
            http.rfile.read(size // 2)
            http.close_connection = True
            return
        body = http.rfile.read(size)
        if len(body) < size:  # whoever sent it is dead: what is not whole is absent
            http.close_connection = True
            return
        if http.headers.get("x-signed-too") != "yes":
            self.problems.append(f"{method} {key} came without its headers")
        if kind == "held":
            self._hold()
        status = self._status(parse_qs(parts.query), method, key, kind, body)
        with self.changed:
            self.requests.append((method, key, status))
            self.changed.notify_all()
        if kind == "lost":
            http.close_connection = True
        elif method == "GET" and status == 200:
            self._send(http, key, kind == "cut")
        else:
            http.answer(status, b"" if status < 300 else b"<Error><Code>AFaultOfTheTest</Code></Error>")

    def _fault(self, method: str, key: str) -> str | None:
        with self.changed:
            for fault in self.faults:
                if fault.times > 0 and fault.method == method and key.startswith(fault.key):
                    fault.times -= 1
                    return fault.kind
        return None

    def _hold(self) -> None:
        with self.changed:
            self.requests.append(("held", "", 200))
            self.changed.notify_all()
            self.changed.wait_for(lambda: not self._is_held, 60)

    def _status(self, query: dict[str, list[str]], method: str, key: str, kind: str | None, body: bytes) -> int:
        if query.get("signature") != [f"{self._secret}-{self._epoch}-{method}"]:
            return 403
        if kind is not None and kind.isdigit():
            return int(kind)
        if method == "PUT":
            self.objects[key] = body
        elif key not in self.objects:
            return 404
        return 200

    def _send(self, http: _Handler, key: str, is_cut: bool) -> None:
        body, span = self.objects[key], http.headers.get("Range")
        start = int(span.removeprefix("bytes=").removesuffix("-")) if span and self.knows_ranges else 0
        if start >= len(body) > 0:
            http.answer(416)
            return
        http.send_response(206 if start else 200)
        http.send_header("Content-Length", str(len(body) - start))
        http.end_headers()
        http.wfile.write(body[start : start + (len(body) - start) // 2] if is_cut else body[start:])
        http.close_connection = is_cut


@contextlib.contextmanager
def running_storage() -> Iterator[StorageDouble]:
    double = StorageDouble()
    double.start()
    try:
        yield double
    finally:
        double.stop()
    assert double.problems == []
