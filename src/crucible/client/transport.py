"""One server, spoken to over HTTP by the standard library alone: an import must not cost more than the command.

It knows JSON, bearer tokens, streams and which requests may be repeated. It knows no route, follows no redirect,
uses no proxy, and never shows the token."""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlencode

from crucible import __version__
from crucible.client.endpoint import Endpoint
from crucible.client.errors import (
    ClientClosed,
    ConnectionLost,
    ServerError,
    ServerTimeout,
    ServerUnreachable,
    from_reply,
)
from crucible.model.errors import Busy

if TYPE_CHECKING:
    from crucible.agent.websocket import WebSocket

Query = Mapping[str, str | int | float | bool | None]

# No answer of the API is larger than a page of events; more means that we talk to something else.
MAX_REPLY_BYTES = 64 << 20
# A log line is at most 64 KiB, and JSON can make six bytes of one.
MAX_STREAM_LINE_BYTES = 1 << 20
# A repeatable request that found the line dead is sent again after so long; then the caller hears of it.
REPEAT_AFTER_S = (0.05, 0.5)
# Nobody at a terminal waits longer than this for a server that says "later".
LONGEST_BUSY_WAIT_S = 5.0
# Connections kept open between requests: one for a command, a few for threads that share a client.
MOST_KEPT = 4


class Transport:
    """May be used by several threads. `relocate` is asked once when nobody listens at the address: the embedded server
    may have moved, or must be started first."""

    def __init__(
        self, endpoint: Endpoint, *, relocate: Callable[[], Endpoint] | None = None, timeout_s: float = 30.0
    ) -> None:
        endpoint.split()
        self.endpoint = endpoint
        self.timeout_s = timeout_s
        self.has_answered = False
        self._relocate = relocate
        # Lists, because append, pop and remove are atomic: an import of threading would cost every command.
        self._kept: list[http.client.HTTPConnection] = []
        self._sockets: list[socket.socket] = []  # those that may be open, for `abort`
        self._is_aborted = False

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        is_repeatable: bool | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """The decoded JSON of the answer, None for an empty one. `is_repeatable` (default: not a POST) says that
        sending it twice does no harm; `timeout_s`, that this one may take longer than others."""
        repeatable = method != "POST" if is_repeatable is None else is_repeatable
        sent = None if body is None else json.dumps(body).encode()
        all_headers = {**(headers or {}), **({} if sent is None else {"Content-Type": "application/json"})}
        for pause in (*REPEAT_AFTER_S, None):
            try:
                return self._exchange(method, _target(path, query), sent, all_headers, timeout_s)
            except ConnectionLost:
                if pause is None or not repeatable or self._is_aborted:
                    raise
                self.close()  # what else was kept has been idle at least as long
                time.sleep(pause)
            except Busy as busy:  # it said no before doing anything: safe for every method
                if pause is None:
                    raise
                time.sleep(min(busy.retry_after_s, LONGEST_BUSY_WAIT_S))
        raise AssertionError("the last round returns or raises")

    def has(self, path: str) -> bool:
        """Whether the server has it (HEAD)."""
        response, connection = self._send("HEAD", path, None, {})
        with _closing(connection):
            if response.status == 404:
                return False
            if response.status >= 400:
                raise from_reply(response.status, None, response.getheader("Retry-After"))
            return True

    def send_file(self, path: str, file: IO[bytes], size: int) -> Any:
        """PUT the rest of `file`, `size` bytes, without holding it in memory."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        response, connection = self._send("PUT", path, file, headers)
        with _closing(connection):
            return _decode(response)

    @contextmanager
    def stream(self, path: str, query: Query, *, idle_s: float, method: str = "GET") -> Iterator["Stream"]:
        """An answer read as it comes. Silence of `idle_s` counts as a lost connection."""
        response, connection = self._send(method, _target(path, query), None, {})
        with _closing(connection):
            if response.status >= 400:
                _decode(response)
            if connection.sock is not None:
                connection.sock.settimeout(idle_s)
            yield Stream(response)

    def open_socket(self, path: str, query: Query) -> "WebSocket":
        """An open WebSocket, to be closed by the caller."""
        from crucible.agent import websocket  # only those who talk to a node pay for it

        self._refuse_if_aborted()
        headers = self._headers({})
        with _translated(self.endpoint):
            try:
                line = websocket.connect(self.endpoint.url, _target(path, query), headers, self.timeout_s)
            except websocket.Refused as refused:
                raise from_reply(refused.status, _json(refused.body), refused.headers.get("retry-after")) from None
        self._remember(line.sock)
        return line

    def probe(self, path: str, timeout_s: float) -> int:
        """The status of a GET without a token, or ServerUnreachable: is anybody there?"""
        connection = self._open(self.endpoint, timeout_s)
        with _closing(connection), _translated(self.endpoint):
            connection.request("GET", self._prefix() + path)
            return connection.getresponse().status

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    def abort(self) -> None:
        """For another thread than the one that waits: what is being asked ends as a lost connection, and whatever is
        asked later is refused. A server that is still being connected to is let go when it answers or times out."""
        self._is_aborted = True
        for sock in tuple(self._sockets):
            try:
                # Past TLS's own way of ending: that one would wait for the other side.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                pass
        self.close()

    # --- one request -----------------------------------------------------------------------------

    def _exchange(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str], timeout_s: float | None
    ) -> Any:
        connection = self._take() if method == "GET" else None
        response, connection = self._send(method, target, body, headers, connection, timeout_s)
        try:
            with _translated(self.endpoint):
                value = _decode(response)
        except BaseException:
            connection.close()
            raise
        self._keep(connection, response)
        return value

    def _send(
        self,
        method: str,
        target: str,
        body: bytes | IO[bytes] | None,
        headers: Mapping[str, str],
        connection: http.client.HTTPConnection | None = None,
        timeout_s: float | None = None,
    ) -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        self._refuse_if_aborted()
        connection = connection or self._connect()
        try:
            self._remember(connection.sock)
            if timeout_s is not None and connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            with _translated(self.endpoint):
                connection.request(method, self._prefix() + target, body=body, headers=self._headers(headers))
                response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        self.has_answered = True
        return response, connection

    def _connect(self) -> http.client.HTTPConnection:
        try:
            return self._open(self.endpoint, self.timeout_s)
        except ServerUnreachable:
            if self._relocate is None:
                raise
            self.endpoint = self._relocate()
            return self._open(self.endpoint, self.timeout_s)

    def _open(self, endpoint: Endpoint, timeout_s: float) -> http.client.HTTPConnection:
        parts = endpoint.split()
        assert parts.hostname is not None  # split() refuses an address without one
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise ServerUnreachable(_nobody_at(endpoint, error), url=endpoint.url) from error
        return connection

    def _headers(self, extra: Mapping[str, str]) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": f"crucible/{__version__}", **extra}
        if self.endpoint.token is not None:
            headers["Authorization"] = f"Bearer {self.endpoint.token}"
        return headers

    def _prefix(self) -> str:
        return self.endpoint.split().path.rstrip("/")

    def _remember(self, sock: socket.socket) -> None:
        """First remembered, then asked whether to go on: `abort` does the same the other way round, so one of the two
        notices."""
        if sock not in self._sockets:
            for closed in [old for old in self._sockets if old.fileno() < 0]:
                with suppress(ValueError):  # another thread was first
                    self._sockets.remove(closed)
            self._sockets.append(sock)
        self._refuse_if_aborted()

    def _refuse_if_aborted(self) -> None:
        if self._is_aborted:
            raise ClientClosed("the client was closed; nothing was asked")

    def _take(self) -> http.client.HTTPConnection | None:
        """A connection that is still open. Only reads use it: if the server closed it meanwhile, they are repeated."""
        try:
            return self._kept.pop()
        except IndexError:
            return None

    def _keep(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        if response.will_close or self._is_aborted or len(self._kept) >= MOST_KEPT:
            connection.close()
        else:
            self._kept.append(connection)


class Stream:
    """The body of an answer, line by line or as it comes."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.headers = response.headers
        self._response = response

    def lines(self) -> Iterator[bytes]:
        """Whole lines without their ends. Raises ConnectionLost if the line broke; half a line is then not shown."""
        rest = b""
        for block in self.blocks():
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
            if len(rest) > MAX_STREAM_LINE_BYTES:
                raise ServerError("the server sends a line without end; is this a Crucible server?")
        if rest:
            yield rest

    def blocks(self) -> Iterator[bytes]:
        """Bytes as they come. Raises ConnectionLost if the line broke."""
        try:
            while block := self._response.read1(65536):
                yield block
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionLost(f"the stream broke off: {_words(error)}") from error
        if self._response.length:  # promised and not delivered: read1 does not complain
            raise ConnectionLost("the stream broke off before its end")


@contextmanager
def _closing(connection: http.client.HTTPConnection) -> Iterator[None]:
    try:
        yield
    finally:
        connection.close()


@contextmanager
def _translated(endpoint: Endpoint) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise ServerTimeout(
            f"the server at {endpoint.url} takes too long to answer; try again", url=endpoint.url
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionLost(
            f"the connection to {endpoint.url} broke off: {_words(error)}", url=endpoint.url
        ) from error


def _decode(response: http.client.HTTPResponse) -> Any:
    raw = response.read(MAX_REPLY_BYTES + 1)
    if response.length and len(raw) <= MAX_REPLY_BYTES:  # promised and not delivered: read does not complain
        raise http.client.IncompleteRead(raw, response.length)
    if len(raw) > MAX_REPLY_BYTES:
        raise ServerError(f"the answer is larger than {MAX_REPLY_BYTES >> 20} MiB; is this a Crucible server?")
    if 300 <= response.status < 400:
        raise ServerError(f"the server says it lives at {response.getheader('Location')}; use that address")
    try:
        value = json.loads(raw) if raw.strip() else None
    except ValueError:
        if response.status < 400:
            raise ServerError("the answer is not JSON; is this a Crucible server?") from None
        value = None
    if response.status >= 400:
        raise from_reply(response.status, value, response.getheader("Retry-After"))
    return value


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _target(path: str, query: Query | None) -> str:
    given = {key: _text(value) for key, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _text(value: str | int | float | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _nobody_at(endpoint: Endpoint, error: OSError) -> str:
    return f"no server answers at {endpoint.url} (from {endpoint.source}): {_words(error)}"


def _words(error: BaseException) -> str:
    if isinstance(error, (socket.timeout, TimeoutError)):
        return "no answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut short"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
