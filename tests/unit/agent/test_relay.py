"""Data through a channel: in order, whole, and never more of it in memory than there was room for."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.agent import relay as channel
from crucible.agent import websocket
from crucible.agent.relay import END, ERR, EXIT, IN, OUT, ROOM, WINDOW_BYTES, Broken, Relay, Sink
from crucible.agent.websocket import BINARY, Closed, WebSocket
from crucible.wire import channels as wire

SOON_S = 20.0


class Peer:
    """The other end of a channel, seen as messages; no relay of ours in it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self.line = WebSocket(ours)
        self._sock = theirs
        self._sock.settimeout(SOON_S)
        self._buffer = b""

    def say(self, kind: int, payload: bytes = b"") -> None:
        """As a server passes it on: not masked."""
        message = bytes([kind]) + payload
        size = bytes([len(message)]) if len(message) < 126 else b"\x7e" + struct.pack("!H", len(message))
        self._sock.sendall(bytes([0x80 | BINARY]) + size + message)

    def ping(self, words: bytes) -> None:
        self._sock.sendall(bytes([0x80 | websocket.PING, len(words)]) + words)

    def grant(self, size: int) -> None:
        self.say(ROOM, struct.pack("!I", size))

    def hear(self) -> tuple[int, bytes]:
        """One masked message, of at most 64 KiB."""
        head = self._exactly(2)
        size = head[1] & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self._exactly(2))
        mask = self._exactly(4)
        message = websocket.masked(self._exactly(size), mask)
        return message[0], message[1:]

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self._sock.recv(65536)
            assert data, "the relay hung up"
            self._buffer += data
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def close(self) -> None:
        self._sock.close()
        self.line.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    found = Peer()
    yield found
    found.close()


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    try:
        yield reader, writer
    finally:
        for descriptor in (reader, writer):
            try:
                os.close(descriptor)
            except OSError:
                pass


def test_the_numbers_are_those_that_the_wire_names() -> None:
    said = dict(part.split()[:2][::-1] for part in _drawn(wire.__doc__ or ""))
    assert {name: int(number) for name, number in said.items()} == {
        name: getattr(channel, name) for name in ("IN", "OUT", "ERR", "END", "ROOM", "SIZE", "EXIT", "ERROR")
    }
    assert wire.ERROR == channel.ERROR


def _drawn(text: str) -> Iterator[str]:
    for line in text.splitlines():
        for part in (line[:42], line[42:]):
            words = part.split()
            if len(words) > 2 and words[0].isdigit() and words[1].isupper():
                yield part


def test_nothing_is_sent_before_there_is_room_and_no_more_than_that(peer: Peer) -> None:
    with pipe() as (reader, writer):
        relay = Relay(peer.line, {OUT: reader}, {}, is_called=True)
        os.write(writer, b"x" * 1000)
        relay.turn(0.05)
        assert peer.hear() == (ROOM, struct.pack("!I", WINDOW_BYTES))
        peer.grant(300)
        relay.turn(SOON_S)
        relay.turn(0.05)
        assert peer.hear() == (OUT, b"x" * 300)
        peer.grant(10_000)
        relay.turn(SOON_S)
        relay.turn(0.05)
        assert peer.hear() == (OUT, b"x" * 700)


def test_whoever_calls_grants_room_when_the_other_has_come(peer: Peer) -> None:
    relay = Relay(peer.line, {}, {})
    relay.turn(0.05)
    peer.grant(1)
    relay.turn(SOON_S)
    assert peer.hear() == (ROOM, struct.pack("!I", WINDOW_BYTES))


def test_whoever_sends_more_than_there_is_room_for_is_cut_off(peer: Peer) -> None:
    with pipe() as (_, writer):
        os.set_blocking(writer, False)
        relay = Relay(peer.line, {}, {IN: Sink(writer)}, is_called=True)
        with pytest.raises(Broken):
            for _ in range(20):
                peer.say(IN, bytes(30_000))
                relay.turn(0.05)
        assert len(relay.sinks[IN].waiting) <= WINDOW_BYTES


def test_a_reader_that_does_not_read_leaves_the_room_as_it_is_and_pings_are_answered(peer: Peer) -> None:
    with pipe() as (_reader, writer):
        os.set_blocking(writer, False)
        relay = Relay(peer.line, {}, {IN: Sink(writer)}, is_called=True)
        assert _heard(peer, relay) == (ROOM, struct.pack("!I", WINDOW_BYTES))
        for _ in range(8):
            peer.say(IN, bytes(30_000))
            relay.turn(0.05)
        peer.ping(b"hi")
        granted = 0
        while (said := _heard(peer, relay)) != (ord("h"), b"i"):
            assert said[0] == ROOM
            granted += struct.unpack("!I", said[1])[0]
        assert granted <= 65_536, "no more than the pipe has taken"
        assert len(relay.sinks[IN].waiting) >= 240_000 - 65_536


def _heard(peer: Peer, relay: Relay) -> tuple[int, bytes]:
    found: list[tuple[int, bytes]] = []
    thread = threading.Thread(target=lambda: found.append(peer.hear()))
    thread.start()
    while thread.is_alive():
        relay.turn(0.01)
    return found[0]


def test_the_end_comes_after_the_last_byte(peer: Peer) -> None:
    with pipe() as (reader, writer):
        ends: list[bool] = []
        relay = Relay(peer.line, {}, {OUT: Sink(writer, lambda: ends.append(True))})
        peer.say(OUT, b"data")
        peer.say(END)
        peer.say(EXIT, b"{}")
        messages = relay.turn(SOON_S)
        relay.turn(0.05)
        assert messages == [(EXIT, b"{}")]
        assert os.read(reader, 100) == b"data"
        assert ends == [True]
        assert relay.is_done


def test_data_for_nobody_is_dropped_and_does_not_stop_the_rest(peer: Peer) -> None:
    with pipe() as (reader, writer):
        os.close(reader)
        relay = Relay(peer.line, {}, {OUT: Sink(writer)}, is_called=True)
        peer.say(OUT, b"to a reader that left")
        peer.say(ERR, b"to no one at all")
        relay.turn(SOON_S)
        relay.turn(0.05)
        assert relay.sinks[OUT].is_broken
        peer.say(EXIT, b"{}")
        assert relay.turn(SOON_S) == [(EXIT, b"{}")]


@pytest.mark.parametrize(("kind", "payload"), [(ROOM, b"123"), (ROOM, b"")])
def test_a_message_that_makes_no_sense_is_an_error(peer: Peer, kind: int, payload: bytes) -> None:
    relay = Relay(peer.line, {}, {})
    peer.say(kind, payload)
    with pytest.raises(Broken):
        relay.turn(SOON_S)


def test_a_line_that_breaks_is_noticed(peer: Peer) -> None:
    relay = Relay(peer.line, {}, {}, is_called=True)
    peer._sock.close()
    with pytest.raises(Closed):
        for _ in range(100):
            relay.turn(0.05)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=5000), max_size=12), st.integers(1, 4000))
def test_any_data_arrives_whole_and_in_order_through_any_window(pieces: list[bytes], window: int) -> None:
    peer, got = Peer(), b""
    with pipe() as (reader, writer):
        relay = Relay(peer.line, {OUT: reader}, {}, is_called=True)
        _heard(peer, relay)
        for piece in pieces:
            os.write(writer, piece)
            left = len(piece)
            while left:
                peer.grant(window)
                kind, data = _heard(peer, relay)
                assert kind == OUT and 0 < len(data) <= window
                got, left = got + data, left - len(data)
                _take_back(relay)
    peer.close()
    assert got == b"".join(pieces)


def _take_back(relay: Relay) -> None:
    """Room that was granted and not needed would let the next piece be longer than the window."""
    relay._room = 0
