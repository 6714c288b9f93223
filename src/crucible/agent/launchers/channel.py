"""JSON lines between the driver and the runners of an elastic gang. Each side proves that it knows the gang's secret,
and every line is sealed with its place in the conversation: none can be forged, repeated or left out unnoticed."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict

# All of one worker's environment fits by far.
_MAX_LINE = 1 << 16
_NONCE_BYTES = 16
# Where the gang's secret is: the same file content on every node of the gang, and nowhere else.
_SECRET_FILE = "CRUCIBLE_TOKEN_FILE"  # noqa: S105 (the name of a variable)


class Broken(Exception):
    """The other side is gone, or is not who it should be."""


def secret() -> bytes:
    """Raises Broken."""
    path = os.environ.get(_SECRET_FILE)
    try:
        with open(path or "", "rb") as file:
            content = file.read(_MAX_LINE).strip()
    except OSError as error:
        raise Broken("%s must name a file with a secret that all nodes have: %s" % (_SECRET_FILE, error)) from error
    if not content:
        raise Broken("%s names an empty file" % _SECRET_FILE)
    return hmac.new(content, b"crucible horovod-elastic", hashlib.sha256).digest()


class Channel:
    """`role` is "driver" or "runner". Raises Broken where the other one does not know the secret."""

    def __init__(self, sock: socket.socket, key: bytes, role: str, silence_s: float) -> None:
        sock.settimeout(silence_s)
        self._sock = sock
        self._file = sock.makefile("rb")
        self._turn = threading.Lock()
        self._sent = self._received = 0
        self._role, self._other = role, "runner" if role == "driver" else "driver"
        mine = os.urandom(_NONCE_BYTES).hex()
        self._write(mine.encode())
        theirs = self._read_line().decode("ascii", "replace")
        nonces = (mine, theirs) if role == "driver" else (theirs, mine)
        self._key = hmac.new(key, " ".join(nonces).encode(), hashlib.sha256).digest()

    def send(self, message: Dict[str, Any]) -> None:
        """From any thread. Raises Broken."""
        data = json.dumps(message).encode()
        with self._turn:
            line = self._seal(self._role, self._sent, data) + b" " + data
            self._sent += 1
            self._write(line)

    def receive(self) -> Dict[str, Any]:
        """Raises Broken, also after too long a silence."""
        seal, _, data = self._read_line().partition(b" ")
        if not hmac.compare_digest(seal, self._seal(self._other, self._received, data)):
            raise Broken("the %s does not know the secret of this gang" % self._other)
        self._received += 1
        message = json.loads(data)
        if not isinstance(message, dict):
            raise Broken("the %s makes no sense" % self._other)
        return message

    def close(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._sock.close()

    def _seal(self, role: str, number: int, data: bytes) -> bytes:
        text = b"%s %d " % (role.encode(), number) + data
        return hmac.new(self._key, text, hashlib.sha256).hexdigest().encode()

    def _write(self, line: bytes) -> None:
        try:
            self._sock.sendall(line + b"\n")
        except OSError as error:
            raise Broken("the %s is gone: %s" % (self._other, error)) from error

    def _read_line(self) -> bytes:
        try:
            line = self._file.readline(_MAX_LINE)
        except OSError as error:
            raise Broken("the %s fell silent: %s" % (self._other, error)) from error
        if not line.endswith(b"\n"):
            raise Broken("the %s has closed the connection" % self._other)
        return line[:-1]
