"""The way to the server: which one to ask, one connection per thread, answers of bounded size.

It never decides what an answer means. No redirects, no proxies, no cookies."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
import urllib.parse

from . import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional

# Without a byte for so long, the next server is asked: well before anybody takes this node for silent.
TIMEOUT_S = 15.0
_MAX_ANSWER_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 18
# Between two tries while no server answers.
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class Unanswered(Exception):
    """Nobody there, or nobody who speaks the protocol."""


class Answer:
    def __init__(self, status: int, data: Any) -> None:
        self.status = status
        self.data = data

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def code(self) -> object:
        """The server's own word for a refusal."""
        return self.data.get("error") if isinstance(self.data, dict) else None

    def complaint(self) -> str:
        """What the server said about a refusal, for a person."""
        words = self.data.get("message") if isinstance(self.data, dict) else None
        return "HTTP %d%s" % (self.status, ": %s" % str(words)[:500] if words else "")


class Servers:
    """Which server to ask. One that fails makes room for the next; a file may name where it went."""

    def __init__(self, given: List[str], learned: List[str], file: Optional[str]) -> None:
        """`given` at boot: they stay, whatever a server says about itself."""
        self._lock = threading.Lock()
        self._file = file
        self._given = list(given)
        # Last: whoever ordered this machine was alive a moment ago, the file may name a server that hangs.
        self._named = self._name_in_file()
        self._urls = [url for url in dict.fromkeys([*learned, *given, self._named]) if url is not None]
        # When a server last answered as one.
        self.heard_at = time.monotonic()

    def current(self) -> str:
        with self._lock:
            if not self._urls:
                self._read_file()
            if not self._urls:
                raise Unanswered("no server is named in boot.json%s" % (" or %s" % self._file if self._file else ""))
            return self._urls[0]

    def answered(self) -> None:
        self.heard_at = time.monotonic()

    def failed(self, url: str) -> None:
        with self._lock:
            if self._urls and self._urls[0] == url:
                self._urls.append(self._urls.pop(0))
            self._read_file()

    def learn(self, urls: List[str]) -> None:
        """In the order to try; the one that answers now stays first."""
        with self._lock:
            new = [url for url in urls if url not in self._urls]
            kept = [url for url in self._urls if not urls or url in urls or url in self._given or url == self._urls[0]]
            self._urls = kept + new

    def known(self) -> List[str]:
        with self._lock:
            return list(self._urls)

    def _read_file(self) -> None:
        """A new name there is where the server went; an old one had its turn."""
        named = self._name_in_file()
        if named is not None and named not in self._urls:
            self._urls.insert(len(self._urls) if named == self._named else 0, named)
        self._named = named

    def _name_in_file(self) -> Optional[str]:
        named = (disk.read_json(self._file) or {}).get("url") if self._file else None
        return named if isinstance(named, str) else None


class Backoff:
    """How long to wait before the next try."""

    def __init__(self, longest_s: float = _LONGEST_PAUSE_S) -> None:
        self._longest_s = longest_s
        self._pause_s = _FIRST_PAUSE_S

    def reset(self) -> None:
        self._pause_s = _FIRST_PAUSE_S

    def next_s(self) -> float:
        pause_s = self._pause_s
        self._pause_s = min(self._longest_s, 2 * pause_s)
        # Jitter, so that the nodes of a gang do not return all at once.
        return pause_s * (0.5 + os.urandom(1)[0] / 510)


class Link:
    """A keep-alive connection to the current server, for one thread."""

    def __init__(self, servers: Servers, key: str) -> None:
        self._servers = servers
        self._key = key
        self._url = ""
        self._connection: Optional[http.client.HTTPConnection] = None

    def call(
        self,
        method: str,
        path: str,
        body: Optional[bytes] = None,
        timeout_s: float = TIMEOUT_S,
        limit_bytes: int = _MAX_ANSWER_BYTES,
    ) -> Answer:
        """Raises Unanswered. A refusal (4xx) is an answer; a failure of the server (5xx) is none."""
        response = self._request(method, path, body, timeout_s)
        try:
            text = response.read(limit_bytes + 1)
            data = json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            if response.status < 400:
                raise self._lost(error) from error
            data = {}
        if response.status < 300:
            self._servers.answered()
        return Answer(response.status, data)

    def download(self, path: str, target: str, limit_bytes: int) -> Answer:
        """Writes the body to `target` if the answer is a good one."""
        response = self._request("GET", path, None, TIMEOUT_S)
        if response.status != 200:
            response.read(_MAX_ANSWER_BYTES)
            return Answer(response.status, {})
        size = 0
        try:
            with open(target, "wb") as file:
                for chunk in iter(lambda: response.read(_CHUNK_BYTES), b""):
                    size += len(chunk)
                    if size > limit_bytes:
                        self.close()
                        return Answer(413, {"message": "the package is larger than %d bytes" % limit_bytes})
                    file.write(chunk)
                os.fsync(file.fileno())
        except (socket.timeout, ConnectionError, http.client.HTTPException) as error:
            raise self._lost(error) from error
        self._servers.answered()
        return Answer(200, {})

    def interrupt(self) -> None:
        """From another thread: a call in progress fails at once."""
        connection = self._connection
        sock = connection.sock if connection is not None else None
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _request(self, method: str, path: str, body: Optional[bytes], timeout_s: float) -> http.client.HTTPResponse:
        url = self._servers.current()
        if url != self._url:
            self.close()
            self._url = url
        try:
            response = self._send(method, path, body, timeout_s)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._lost(error) from error
        if response.status in (401, 403):
            self._servers.failed(url)
        if response.status >= 500:
            raise self._lost("HTTP %d" % response.status)
        return response

    def _send(self, method: str, path: str, body: Optional[bytes], timeout_s: float) -> http.client.HTTPResponse:
        is_reused = self._connection is not None
        try:
            return self._send_once(method, path, body, timeout_s)
        except ConnectionError:
            if not is_reused:
                raise
        # The server closed an idle connection. Every message of the protocol may be repeated.
        self.close()
        return self._send_once(method, path, body, timeout_s)

    def _send_once(self, method: str, path: str, body: Optional[bytes], timeout_s: float) -> http.client.HTTPResponse:
        parts = urllib.parse.urlsplit(self._url)
        if self._connection is None:
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            self._connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
        elif self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
        headers = {"Authorization": "Bearer %s" % self._key, "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request(method, parts.path.rstrip("/") + path, body, headers)
        return self._connection.getresponse()

    def _lost(self, error: object) -> Unanswered:
        self.close()
        self._servers.failed(self._url)
        return Unanswered("%s does not answer: %s" % (self._url, error or type(error).__name__))
