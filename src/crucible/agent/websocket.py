"""The client's side of a WebSocket (RFC 6455), by the standard library: both ends of a channel open one to the server.

It knows frames, fragments, pings and the close; what a message means is for others. Nothing here blocks once the
socket is open, and no message may be larger than `MAX_MESSAGE_BYTES`. The thin client imports this module too: it needs
nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import os
import select
import socket
import ssl
import struct
import time
import urllib.parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Mapping, Optional, Tuple

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, GOING_AWAY, PROTOCOL_ERROR, ABNORMAL = 1000, 1001, 1002, 1006

# A server passes at most this much in one message.
MAX_MESSAGE_BYTES = 64 << 10
_MAX_HEAD_BYTES = 64 << 10
_MAX_CONTROL_BYTES = 125
_READ_BYTES = 64 << 10
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Refused(Exception):
    """The server answered something else than a WebSocket."""

    def __init__(self, status: int, headers: Dict[str, str], body: bytes) -> None:
        super().__init__("HTTP %d" % status)
        self.status = status
        self.headers = headers
        self.body = body


class Closed(Exception):
    """The other side closed it, or is gone (code 1006)."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason or "closed with %d" % code)
        self.code = code
        self.reason = reason


class Parser:
    """Bytes in, messages out, however the bytes were cut. Raises Closed if they are no WebSocket's."""

    def __init__(self, limit_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit_bytes
        self._buffer = bytearray()
        self._kind = CONTINUATION
        self._message = bytearray()

    def feed(self, data: bytes) -> List[Tuple[int, bytes]]:
        self._buffer += data
        found: List[Tuple[int, bytes]] = []
        while True:
            frame = self._frame()
            if frame is None:
                return found
            whole = self._join(*frame)
            if whole is not None:
                found.append(whole)

    def _frame(self) -> Optional[Tuple[bool, int, bytes]]:
        """The next frame: whether it is the last of its message, its opcode, what it holds."""
        if len(self._buffer) < 2:
            return None
        first, second = self._buffer[0], self._buffer[1]
        if first & 0x70 or second & 0x80:
            raise Closed(PROTOCOL_ERROR, "a frame has bits that nobody asked for")
        size, start = second & 0x7F, 2
        if size > _MAX_CONTROL_BYTES:
            form, start = ("!H", 4) if size == 126 else ("!Q", 10)
            if len(self._buffer) < start:
                return None
            (size,) = struct.unpack(form, self._buffer[2:start])
        if size > self._limit:
            raise Closed(1009, "a message is larger than %d bytes" % self._limit)
        if len(self._buffer) < start + size:
            return None
        payload = bytes(self._buffer[start : start + size])
        del self._buffer[: start + size]
        return bool(first & 0x80), first & 0x0F, payload

    def _join(self, is_last: bool, opcode: int, payload: bytes) -> Optional[Tuple[int, bytes]]:
        if opcode in (CLOSE, PING, PONG):
            if not is_last or len(payload) > _MAX_CONTROL_BYTES:
                raise Closed(PROTOCOL_ERROR, "a control frame is cut or too long")
            return opcode, payload
        if opcode not in (CONTINUATION, TEXT, BINARY) or (opcode == CONTINUATION) != (self._kind != CONTINUATION):
            raise Closed(PROTOCOL_ERROR, "a frame is out of order")
        self._kind = opcode or self._kind
        self._message += payload
        if len(self._message) > self._limit:
            raise Closed(1009, "a message is larger than %d bytes" % self._limit)
        if not is_last:
            return None
        whole = self._kind, bytes(self._message)
        self._kind = CONTINUATION
        self._message.clear()
        return whole


def frame(opcode: int, payload: bytes) -> bytes:
    """As a client sends it: in one piece, masked."""
    size = len(payload)
    if size <= _MAX_CONTROL_BYTES:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, 0xFE, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0xFF, size)
    mask = os.urandom(4)
    return head + mask + masked(payload, mask)


def masked(payload: bytes, mask: bytes) -> bytes:
    """Done to all bytes at once, as numbers: a loop would be the slowest part of a copy."""
    size = len(payload)
    long = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(long, "little")).to_bytes(size, "little")


class WebSocket:
    """One open WebSocket, for one thread. Sending only queues: `flush` writes what the network takes."""

    def __init__(self, sock: socket.socket, rest: bytes = b"") -> None:
        """`rest` came right behind the server's answer."""
        sock.setblocking(False)
        self.sock = sock
        self._parser = Parser()
        self._rest = rest
        self._out = bytearray()
        self._close: Optional[Closed] = None

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def unsent_bytes(self) -> int:
        return len(self._out)

    @property
    def has_unread(self) -> bool:
        """What was read from the network already: no poll would tell of it."""
        if self._rest or self._close is not None:
            return True
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def send(self, payload: bytes, opcode: int = BINARY) -> None:
        self._out += frame(opcode, payload)

    def flush(self) -> None:
        """A line that broke is noticed by `receive`, once everything that came over it was taken."""
        try:
            while self._out:
                del self._out[: self.sock.send(self._out[:_READ_BYTES])]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError:
            self._out.clear()

    def receive(self) -> List[bytes]:
        """Whole messages that are here now. Pings are answered. Raises Closed, after the last message was taken."""
        if self._close is not None:
            raise self._close
        messages = []
        for opcode, payload in self._parser.feed(self._read()):
            if opcode == PING:
                self.send(payload, PONG)
            elif opcode == CLOSE:
                self._close = self._closed_by(payload)
                break
            elif opcode != PONG:
                messages.append(payload)
        if self._close is not None and not messages:
            raise self._close
        return messages

    def close(self, code: int = NORMAL, within_s: float = 0.0) -> None:
        """Says what is left to say for at most so long, then hangs up."""
        until = time.monotonic() + within_s
        try:
            self.send(struct.pack("!H", code), CLOSE)
            self.flush()
            while self._out and time.monotonic() < until:
                self._wait(select.POLLOUT, until)
                self.flush()
            self._wait_for_close(until)
        except (Closed, OSError, ValueError):
            pass
        finally:
            self.sock.close()

    def _wait_for_close(self, until: float) -> None:
        """Hanging up at once would throw away what the other side has not read yet."""
        while time.monotonic() < until:
            if not self.has_unread:
                self._wait(select.POLLIN, until)
            self.receive()

    def _wait(self, events: int, until: float) -> None:
        poll = select.poll()
        poll.register(self.sock, events)
        poll.poll(max(0.0, until - time.monotonic()) * 1000)

    def _read(self) -> bytes:
        if self._rest:
            rest, self._rest = self._rest, b""
            return rest
        try:
            data = self.sock.recv(_READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return b""
        except OSError as error:
            raise Closed(ABNORMAL, str(error)) from error
        if not data:
            raise Closed(ABNORMAL, "the connection broke off")
        return data

    def _closed_by(self, payload: bytes) -> Closed:
        self.send(payload[:2], CLOSE)
        self.flush()
        if len(payload) < 2:
            return Closed(1005)
        return Closed(int(struct.unpack("!H", payload[:2])[0]), payload[2:].decode("utf-8", "replace"))


def connect(url: str, path: str, headers: Mapping[str, str], timeout_s: float) -> WebSocket:
    """Opens `path` below `url` (http or https). Raises Refused, OSError, ValueError."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    sock = socket.create_connection((parts.hostname or "", port), timeout_s)
    try:
        if parts.scheme == "https":
            sock = ssl.create_default_context().wrap_socket(sock, server_hostname=parts.hostname)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16))
        sock.sendall(_request(parts.netloc.rpartition("@")[2], parts.path.rstrip("/") + path, key, headers))
        return WebSocket(sock, _handshake(sock, key, time.monotonic() + timeout_s))
    except BaseException:
        sock.close()
        raise


def _request(host: str, target: str, key: bytes, headers: Mapping[str, str]) -> bytes:
    fields = {
        "Host": host,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": key.decode(),
        "Sec-WebSocket-Version": "13",
    }
    fields.update(headers)
    lines = ["%s: %s" % (name, value) for name, value in fields.items()]
    if any("\r" in line or "\n" in line for line in [target, *lines]):
        raise ValueError("a header holds a line's end")
    return ("GET %s HTTP/1.1\r\n%s\r\n\r\n" % (target, "\r\n".join(lines))).encode("latin-1")


def _handshake(sock: socket.socket, key: bytes, until: float) -> bytes:
    """What came behind a good answer. Raises Refused, OSError."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(sock, until)
        if len(data) > _MAX_HEAD_BYTES:
            raise OSError("the answer's head is too long")
    head, _, rest = data.partition(b"\r\n\r\n")
    status, headers = _parsed(head.decode("latin-1"))
    if status != 101:
        raise Refused(status, headers, _body(sock, headers, rest, until))
    wanted = base64.b64encode(hashlib.sha1(key + _MAGIC).digest()).decode()  # noqa: S324 (as RFC 6455 asks)
    if headers.get("sec-websocket-accept") != wanted:
        raise OSError("the answer is not one to our question")
    return rest


def _parsed(head: str) -> Tuple[int, Dict[str, str]]:
    first, *lines = head.split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
        raise OSError("the answer is not HTTP")
    pairs = (line.partition(":") for line in lines)
    return int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs}


def _body(sock: socket.socket, headers: Dict[str, str], body: bytes, until: float) -> bytes:
    length = headers.get("content-length", "0")
    size = min(int(length), _MAX_HEAD_BYTES) if length.isdigit() else 0
    while len(body) < size:
        body += _more(sock, until)
    return body[:size]


def _more(sock: socket.socket, until: float) -> bytes:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise socket.timeout("no answer in time")
    sock.settimeout(left_s)
    data = sock.recv(_READ_BYTES)
    if not data:
        raise ConnectionResetError("the connection broke off")
    return data
