"""What passes through a channel, and a loop that carries it between the channel and descriptors of this process.

A message of a channel is one byte, its kind, and what follows. Data may only be sent as far as the other side has
granted room: whoever reads slowly makes the other end wait, and nobody in between has to keep anything. The thin client
imports this module too: it needs nothing but itself and the WebSocket.

    IN      data to the node: what a program reads, what goes to a port
    OUT     data from the node
    ERR     the same, of what a program complains
    END     no more data from this side
    ROOM    so many more bytes may be sent (four bytes, the highest first)
    SIZE    of the person's terminal: rows and columns, two bytes each
    EXIT    the end of the program, as JSON: {"exit_code": 0} or {"signal": 9}
    ERROR   why there is no more: {"error": code, "message": words}
"""

from __future__ import annotations

import json
import os
import select
import struct

from .websocket import Closed, WebSocket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

IN, OUT, ERR, END, ROOM, SIZE, EXIT, ERROR = range(8)
DATA = (IN, OUT, ERR)

# Granted at first, and the most that a side keeps of what it could not pass on yet.
WINDOW_BYTES = 256 << 10
# Data of one message; the server takes twice as much.
PIECE_BYTES = 32 << 10
# Room is granted again in portions, not byte by byte.
_GRANT_BYTES = WINDOW_BYTES // 4
# A pipe that takes anything takes so much; more could block a descriptor that we must not change.
_PIPE_BYTES = select.PIPE_BUF


class Broken(Exception):
    """What came is no message of a channel."""


def packed(value: Dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def unpacked(payload: bytes) -> Dict[str, Any]:
    """Raises Broken."""
    try:
        value = json.loads(payload)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Broken("a message of the channel is not JSON")
    return value


class Sink:
    """Where data of one kind goes. What it cannot take yet waits here, at most a window of it."""

    def __init__(self, descriptor: int, at_end: Callable[[], None] = lambda: None) -> None:
        """`at_end` is called once everything was written that will ever come."""
        self.descriptor = descriptor
        self.waiting = bytearray()
        # Nobody takes any more: what still comes is dropped.
        self.is_broken = False
        self._at_end = at_end
        self._is_ending = False
        self.has_ended = False

    def write(self) -> int:
        """As much as it takes; how much left."""
        size = _PIPE_BYTES if os.get_blocking(self.descriptor) else WINDOW_BYTES
        try:
            written = os.write(self.descriptor, self.waiting[:size])
        except BlockingIOError:
            return 0
        except OSError:
            self.is_broken = True
            written = len(self.waiting)
        del self.waiting[:written]
        return written

    def end(self) -> None:
        self._is_ending = True
        self.settle()

    def settle(self) -> None:
        if self._is_ending and not self.waiting and not self.has_ended:
            self.has_ended = True
            self._at_end()


class Relay:
    """One end of a channel, for one thread. Descriptors are not closed here."""

    def __init__(
        self, socket: WebSocket, sources: Dict[int, int], sinks: Dict[int, Sink], is_called: bool = False
    ) -> None:
        """`sources` by the kind that their data is sent as, `sinks` by the kind that they take. The node speaks first,
        because it was called: before it has come, nobody would hear."""
        self._socket = socket
        self.sources = dict(sources)
        self.sinks = sinks
        self.wakes: List[int] = []  # readable: whoever calls `turn` has something to do
        self.edit: Callable[[bytes], bytes] = lambda data: data  # of what was read from a source
        self.read_bytes = 0
        self._room = 0
        self._taken = 0
        self._has_granted = False
        if is_called:
            self._begin()

    def turn(self, timeout_s: float) -> List[Tuple[int, bytes]]:
        """Carries what can be carried now, or waits for something. Returns messages that are not data.

        Raises Closed, Broken."""
        self._socket.flush()
        ready = self._wait(0.0 if self._socket.has_unread else timeout_s)
        messages = []
        if ready.get(self._socket.fileno()) or self._socket.has_unread:
            messages = self._hear()
        for sink in self.sinks.values():
            if sink.waiting and (sink.descriptor in ready):
                self._drain(sink)
        for kind, descriptor in list(self.sources.items()):
            if descriptor in ready:
                self._read(kind, descriptor)
        self._socket.flush()
        return messages

    def send(self, kind: int, payload: bytes) -> None:
        self._socket.send(bytes([kind]) + payload)

    @property
    def is_done(self) -> bool:
        """Both sides have said all they had to say."""
        return not self.sources and all(sink.has_ended or sink.is_broken for sink in self.sinks.values())

    @property
    def has_room(self) -> bool:
        return self._room > 0

    def drop(self, kind: int) -> None:
        """Nothing more is read from there."""
        self.sources.pop(kind, None)
        if not self.sources:
            self.send(END, b"")

    def finish(self) -> None:
        """Everything that came is written, however long that takes."""
        while any(sink.waiting for sink in self.sinks.values()):
            poll = select.poll()
            for sink in self.sinks.values():
                if sink.waiting:
                    poll.register(sink.descriptor, select.POLLOUT)
            ready = dict(poll.poll())
            for sink in self.sinks.values():
                if sink.waiting and sink.descriptor in ready:
                    sink.write()

    def _begin(self) -> None:
        if not self._has_granted:
            self._has_granted = True
            self._grant(WINDOW_BYTES)

    # --- one turn -------------------------------------------------------------------------------

    def _wait(self, timeout_s: float) -> Dict[int, int]:
        wanted: Dict[int, int] = {self._socket.fileno(): select.POLLIN}
        if self._socket.unsent_bytes:
            wanted[self._socket.fileno()] |= select.POLLOUT
        for descriptor in self._readable():
            wanted[descriptor] = wanted.get(descriptor, 0) | select.POLLIN
        for sink in self.sinks.values():
            if sink.waiting:
                wanted[sink.descriptor] = wanted.get(sink.descriptor, 0) | select.POLLOUT
        poll = select.poll()
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        return dict(poll.poll(timeout_s * 1000))

    def _readable(self) -> List[int]:
        """Sources are read only as far as somebody takes it."""
        is_open = self._room > 0 and self._socket.unsent_bytes < WINDOW_BYTES
        return [*self.wakes, *(self.sources.values() if is_open else ())]

    def _hear(self) -> List[Tuple[int, bytes]]:
        messages = []
        for message in self._socket.receive():
            if not message:
                raise Broken("an empty message")
            self._begin()
            kind, payload = message[0], message[1:]
            if kind in DATA:
                self._take(kind, payload)
            elif kind == ROOM:
                self._room += _number(payload)
            elif kind == END:
                for sink in self.sinks.values():
                    sink.end()
            else:
                messages.append((kind, payload))
        return messages

    def _take(self, kind: int, payload: bytes) -> None:
        sink: Optional[Sink] = self.sinks.get(kind)
        if sink is None or sink.is_broken:
            self._grant_later(len(payload))
            return
        if len(sink.waiting) + len(payload) > WINDOW_BYTES:
            raise Broken("the other side sends more than there is room for")
        sink.waiting += payload

    def _drain(self, sink: Sink) -> None:
        self._grant_later(sink.write())
        sink.settle()

    def _grant_later(self, size: int) -> None:
        self._taken += size
        if self._taken >= _GRANT_BYTES:
            self._grant(self._taken)
            self._taken = 0

    def _grant(self, size: int) -> None:
        self.send(ROOM, struct.pack("!I", size))

    def _read(self, kind: int, descriptor: int) -> None:
        if self._room <= 0:
            return
        try:
            data = os.read(descriptor, min(PIECE_BYTES, self._room))
        except BlockingIOError:
            return
        except OSError:  # the other end of a terminal, or of a connection, is gone
            data = b""
        if not data:
            self.drop(kind)
            return
        self.read_bytes += len(data)
        data = self.edit(data)
        if data:
            self._room -= len(data)
            self.send(kind, data)


def _number(payload: bytes) -> int:
    if len(payload) != 4:
        raise Broken("room is granted in four bytes")
    return int(struct.unpack("!I", payload)[0])


def size_of(payload: bytes) -> Tuple[int, int]:
    """Rows and columns. Raises Broken."""
    if len(payload) != 4:
        raise Broken("a terminal has rows and columns")
    rows, columns = struct.unpack("!HH", payload)
    return rows, columns


def sized(rows: int, columns: int) -> bytes:
    return struct.pack("!HH", min(rows, 0xFFFF), min(columns, 0xFFFF))


__all__ = ["Broken", "Closed", "Relay", "Sink", "packed", "size_of", "sized", "unpacked"]
