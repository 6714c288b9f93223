"""Signed requests: bytes to and from object storage without credentials, one keep-alive connection for one thread.

It follows no redirects, uses no proxies, and never says an address: whoever reads one may use it."""

from __future__ import annotations

import http.client
import re
import socket
import urllib.parse

from .bodies import Unreadable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Tuple

    from .bodies import Body, Moved
    from .protocol import Signed

# Without a byte for so long, a request is made again.
_TIMEOUT_S = 30.0
_MAX_COMPLAINT = 64 << 10
# Expired signatures: Amazon and Azure say 403, Google 400.
_EXPIRED = (400, 401, 403)
_ABSENT = (404, 410)
# Trouble that passes, besides what the storage calls its own fault. A full one does not become empty soon.
_PASSING = (408, 425, 429)
FULL = 507
_CODE = re.compile(rb"<Code>([A-Za-z0-9_.-]{1,80})</Code>|\"error\": ?\"([A-Za-z0-9_.-]{1,80})\"")


class Unreachable(Exception):
    """Nobody there, a broken line, or trouble that may pass: try again."""


class Declined(Exception):
    """The storage will not do it, however often it is asked."""

    def __init__(self, status: int, code: str = "") -> None:
        super().__init__(_words(status, code))
        self.status = status

    @property
    def is_expired(self) -> bool:
        return self.status in _EXPIRED

    @property
    def is_absent(self) -> bool:
        return self.status in _ABSENT


class Courier:
    def __init__(self) -> None:
        self._place: Optional[Tuple[str, str]] = None
        self._connection: Optional[http.client.HTTPConnection] = None

    def put(self, signed: Signed, body: Body, on_moved: Moved) -> None:
        """Raises Unreachable, Declined, Unreadable."""
        self._finish(self._ask(signed, {"Content-Length": str(body.size)}, body, on_moved))

    def get(self, signed: Signed, start: int) -> Download:
        """From `start` on. Raises Unreachable, Declined."""
        response = self._ask(signed, {"Range": "bytes=%d-" % start} if start else {}, None, _ignore)
        if response.status not in (200, 206):
            self._finish(response)
            raise Declined(response.status)
        return Download(self, response, start)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(
        self, signed: Signed, more: Dict[str, str], body: Optional[Body], on_moved: Moved
    ) -> http.client.HTTPResponse:
        is_reused = self._connection is not None and self._place == _place(signed)
        try:
            return self._ask_once(signed, more, body, on_moved)
        except Unreadable:
            self.close()
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            if not is_reused or isinstance(error, socket.timeout):
                raise Unreachable(str(error) or type(error).__name__) from error
        # The storage had closed an idle connection.
        return self._ask(signed, more, body, on_moved)

    def _ask_once(
        self, signed: Signed, more: Dict[str, str], body: Optional[Body], on_moved: Moved
    ) -> http.client.HTTPResponse:
        connection = self._connect(_place(signed))
        parts = urllib.parse.urlsplit(signed.url)
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.putrequest(signed.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": parts.netloc, **signed.headers, **more}.items():
            connection.putheader(name, value)
        connection.endheaders()
        if body is not None:
            try:
                body.send(connection.sock, parts.scheme == "http", on_moved)
            except ConnectionError:
                pass  # it may have answered before it had everything: a refusal says why
        return connection.getresponse()

    def _connect(self, place: Tuple[str, str]) -> http.client.HTTPConnection:
        if self._connection is None or place != self._place:
            self.close()
            scheme, netloc = place
            parts = urllib.parse.urlsplit("//" + netloc)
            kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
            self._connection, self._place = kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S), place
        return self._connection

    def _finish(self, response: http.client.HTTPResponse) -> None:
        """Raises what the answer means."""
        try:
            text = response.read(_MAX_COMPLAINT)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unreachable(str(error) or type(error).__name__) from error
        if not response.isclosed():
            self.close()
        if 200 <= response.status < 300:
            return
        found = _CODE.search(text)
        code = (found.group(1) or found.group(2)).decode() if found else ""
        if response.status in _PASSING or (response.status >= 500 and response.status != FULL):
            raise Unreachable(_words(response.status, code))
        raise Declined(response.status, code)


class Download:
    """The body of an answer, from `start` on; `total` is the size of the whole object, if the storage says it."""

    def __init__(self, courier: Courier, response: http.client.HTTPResponse, start: int) -> None:
        self._courier = courier
        self._response = response
        # A storage that does not know ranges begins at the beginning.
        self.start = start if response.status == 206 else 0
        self.total = None if response.length is None else self.start + response.length

    def read_into(self, buffer: memoryview) -> int:
        """Bytes read; 0 at the end. Raises Unreachable if the line broke before."""
        try:
            count = self._response.readinto(buffer)
        except (OSError, http.client.HTTPException) as error:
            self._courier.close()
            raise Unreachable(str(error) or type(error).__name__) from error
        if count == 0 and self._response.length:
            self._courier.close()
            raise Unreachable("the answer broke off")
        return count

    def close(self) -> None:
        """What was not read is not wanted."""
        if not self._response.isclosed():
            self._courier.close()


def _place(signed: Signed) -> Tuple[str, str]:
    parts = urllib.parse.urlsplit(signed.url)
    return parts.scheme, parts.netloc


def _words(status: int, code: str) -> str:
    return "HTTP %d%s" % (status, " (%s)" % code if code else "")


def _ignore(_: int) -> None:
    pass
