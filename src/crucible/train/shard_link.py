"""The way from a worker of a job to its server and to storage. Asks until it is answered, whichever server that is and
however long it takes: a server may be killed and come back elsewhere. No redirects, no proxies, no cookies."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
import urllib.parse
from typing import IO, Any, Callable, Dict, List, Optional

from .run_info import RUN_DIR

TOKEN_FILE = "CRUCIBLE_TOKEN_FILE"  # noqa: S105 (the name of a variable)
# Written by the agent, into the run folder: where servers are, the likeliest first.
SERVERS = "servers.json"
# Without a byte for so long, a request is made again.
_TIMEOUT_S = 30.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
# While something is waited for, a stop is looked for this often.
_LOOK_S = 0.1
_MAX_ANSWER_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 18
# Trouble that passes: somebody else at that address, a busy server, a row that was changing.
_PASSING = (401, 408, 425, 429)
_STALE = "stale_version"
_OVER = (404, 410)
# Objects on a server's own disk: reached where the server is reached, whatever name it gives itself.
_OWN_OBJECTS = "/v1/objects/cro."


class Over(Exception):
    """The attempt is over: nothing that this process does counts any more."""


class Refused(Exception):
    """The server has understood, and will not."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(Exception):
    """Nobody there, a broken line, or trouble that may pass."""


class Declined(Exception):
    """Storage will not do it with this address; a new one may help."""


class Patience:
    """For how long somebody waits for an answer: for ever, unless told otherwise."""

    def is_over(self) -> bool:
        return False

    def wait(self, seconds: float) -> None:
        """Or until it is over."""
        until = time.monotonic() + seconds
        while not self.is_over() and time.monotonic() < until:
            time.sleep(max(0.0, min(_LOOK_S, until - time.monotonic())))


class Backoff:
    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._pause_s = _FIRST_PAUSE_S

    def wait(self) -> None:
        # Jitter, so that the workers of a job do not return all at once.
        pause_s = self._pause_s * (0.5 + os.urandom(1)[0] / 255)
        self._pause_s = min(_LONGEST_PAUSE_S, 2 * self._pause_s)
        self._patience.wait(pause_s)


class Link:
    """For one thread."""

    def __init__(self, patience: Patience) -> None:
        self._run_dir = os.environ[RUN_DIR]
        self.patience = patience
        self._url = ""
        self._connection: Optional[http.client.HTTPConnection] = None
        with open(os.environ[TOKEN_FILE], encoding="ascii") as file:
            self._token = file.read().strip()

    def ask(self, path: str, message: Dict[str, Any]) -> Dict[str, Any]:
        """Until there is an answer. Raises Over and Refused."""
        body, backoff = json.dumps(message).encode("ascii"), Backoff(self.patience)
        failed: List[str] = []
        while not self.patience.is_over():
            url = self._next_server(failed)
            try:
                return self._ask_once(url, path, body)
            except Unreachable:
                failed.append(url)
                self.close()
                backoff.wait()
        raise Over("nobody waits for the answer")

    def put(self, signed: Dict[str, Any], file: IO[bytes], start: int, size: int) -> None:
        """Bytes of a file into storage. Raises Unreachable and Declined."""
        file.seek(start)
        headers = dict(signed["headers"], **{"Content-Length": str(size)})
        with _Exchange("PUT", self._address(signed), headers, _Bounded(file, size)) as response:
            response.read(_MAX_ANSWER_BYTES)

    def get(self, signed: Dict[str, Any], target: IO[bytes], start: int = 0, end: Optional[int] = None) -> None:
        """Bytes [start, end) of an object, or all of it. Raises Unreachable and Declined."""
        is_part = end is not None
        headers = dict(signed["headers"])
        if end is not None:
            headers["Range"] = "bytes=%d-%d" % (start, end - 1)
        with _Exchange("GET", self._address(signed), headers, None) as response:
            # A storage that knows no ranges sends everything.
            skip = start if is_part and response.status == 200 else 0
            _copy(response, target, skip, None if end is None else end - start)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _address(self, signed: Dict[str, Any]) -> str:
        url = str(signed["url"])
        _, found, token = url.partition(_OWN_OBJECTS)
        return self._url.rstrip("/") + found + token if found and self._url else url

    def _next_server(self, failed: List[str]) -> str:
        """The one that answered last; of the others each in its turn. The agent may have learned of new ones."""
        if self._url and self._url not in failed:
            return self._url
        known = self._servers()
        fresh = [url for url in known if url not in failed]
        if not fresh:
            failed.clear()
        self._url = (fresh or known or [""])[0]
        return self._url

    def _servers(self) -> List[str]:
        try:
            with open(os.path.join(self._run_dir, SERVERS), encoding="utf-8") as file:
                found = json.load(file)["servers"]
            return [url for url in found if isinstance(url, str)]
        except (OSError, ValueError, KeyError, TypeError):
            return []

    def _ask_once(self, url: str, path: str, body: bytes) -> Dict[str, Any]:
        parts = urllib.parse.urlsplit(url)
        try:
            if self._connection is None:
                self._connection = _connect(parts)
            headers = {"Authorization": "Bearer " + self._token, "Content-Type": "application/json"}
            self._connection.request("POST", parts.path.rstrip("/") + path, body, headers)
            response = self._connection.getresponse()
            text = response.read(_MAX_ANSWER_BYTES)
            answer = json.loads(text) if text else {}
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        return _meaning(response.status, answer)


def _meaning(status: int, answer: Any) -> Dict[str, Any]:
    said = answer if isinstance(answer, dict) else {}
    code, message = str(said.get("error", "")), str(said.get("message", ""))
    if 200 <= status < 300 and isinstance(answer, dict):
        return answer
    if status in _OVER:
        raise Over(message or "the attempt is over")
    if status >= 500 or status < 400 or status in _PASSING or code == _STALE:
        raise Unreachable("HTTP %d %s" % (status, message))
    raise Refused(code, message or "HTTP %d" % status)


def _connect(parts: urllib.parse.SplitResult) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=_TIMEOUT_S)


class _Exchange:
    """One request of its own connection, and its answer if it is a good one."""

    def __init__(self, method: str, url: str, headers: Dict[str, str], body: Optional[_Bounded]) -> None:
        self._parts = urllib.parse.urlsplit(url)
        self._connection = _connect(self._parts)
        self._request = (method, headers, body)

    def __enter__(self) -> http.client.HTTPResponse:
        method, headers, body = self._request
        target = urllib.parse.urlunsplit(("", "", self._parts.path or "/", self._parts.query, ""))
        try:
            self._connection.request(method, target, body, headers)
            response = self._connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            raise Unreachable(str(error) or type(error).__name__) from error
        if response.status >= 400:
            self._connection.close()
            is_passing = response.status >= 500 or response.status in _PASSING
            raise (Unreachable if is_passing else Declined)("storage answers HTTP %d" % response.status)
        return response

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._connection.close()
        if isinstance(error, (socket.timeout, ConnectionError, http.client.HTTPException)):
            raise Unreachable(str(error) or type(error).__name__) from error


class _Bounded:
    """So many bytes of a file, from where it stands."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted)
        self._left -= len(data)
        return data


def _copy(response: http.client.HTTPResponse, target: IO[bytes], skip: int, size: Optional[int]) -> None:
    left = size
    while left is None or left > 0:
        block = response.read(_BLOCK_BYTES)
        if not block:
            break
        if skip:
            block, skip = block[skip:], max(0, skip - len(block))
        block = block if left is None else block[:left]
        target.write(block)
        left = None if left is None else left - len(block)
    if left or (size is None and response.length):
        raise Unreachable("the answer broke off")


def patiently(patience: Patience, work: Callable[[], None], mend: Callable[[], bool]) -> bool:
    """Until it is done, with `mend` after every trouble; False if that says that nobody wants it any more."""
    backoff = Backoff(patience)
    while not patience.is_over():
        try:
            work()
            return True
        except (Unreachable, Declined):
            backoff.wait()
            if not mend():
                return False
    raise Over("nobody waits for it")
