"""The WebSocket of both ends of a channel: whatever a peer sends, in whatever pieces it arrives."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.sync.server import ServerConnection, serve

from crucible.agent import websocket
from crucible.agent.websocket import BINARY, CLOSE, MAX_MESSAGE_BYTES, PING, TEXT, Closed, Parser, Refused, WebSocket

SOON_S = 10.0
payloads = st.binary(max_size=70_000) | st.binary(max_size=200)


def server_frame(opcode: int, payload: bytes, is_last: bool = True) -> bytes:
    """As an independent library writes it."""
    return Frame(Opcode(opcode), payload, fin=is_last).serialize(mask=False)


def cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    for size in sizes:
        yield data[:size]
        data = data[size:]
    yield data


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, BINARY, PING]), st.binary(max_size=120)), max_size=8),
    st.lists(st.integers(0, 40), max_size=60),
)
def test_messages_are_the_same_however_their_bytes_are_cut(sent: list[tuple[int, bytes]], sizes: list[int]) -> None:
    parser = Parser()
    data = b"".join(server_frame(opcode, payload) for opcode, payload in sent)
    assert [message for piece in cut(data, sizes) for message in parser.feed(piece)] == sent


@given(st.lists(st.binary(max_size=300), min_size=1, max_size=6), st.binary(max_size=20))
def test_a_fragmented_message_is_one_and_pings_may_come_in_between(parts: list[bytes], ping: bytes) -> None:
    parser = Parser()
    data = b""
    for index, part in enumerate(parts):
        data += server_frame(BINARY if index == 0 else 0, part, is_last=index == len(parts) - 1)
        data += server_frame(PING, ping) if index < len(parts) - 1 else b""
    assert parser.feed(data) == [(PING, ping)] * (len(parts) - 1) + [(BINARY, b"".join(parts))]


@given(st.binary(min_size=1, max_size=400))
def test_any_bytes_are_messages_or_the_end(data: bytes) -> None:
    try:
        for opcode, payload in Parser().feed(data):
            assert opcode in (TEXT, BINARY, CLOSE, PING, websocket.PONG)
            assert len(payload) <= MAX_MESSAGE_BYTES
    except Closed as closed:
        assert closed.code in (1002, 1009)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(bytes([0x82, 127]) + struct.pack("!Q", MAX_MESSAGE_BYTES + 1), id="too large"),
        pytest.param(
            server_frame(BINARY, bytes(MAX_MESSAGE_BYTES), is_last=False) + server_frame(0, b"x"), id="grows too large"
        ),
        pytest.param(bytes([0x82, 0x80]) + b"mask", id="masked by a server"),
        pytest.param(bytes([0xC2, 0]), id="an extension nobody agreed on"),
        pytest.param(server_frame(0, b"x"), id="a continuation of nothing"),
        pytest.param(server_frame(BINARY, b"x", is_last=False) + server_frame(TEXT, b"y"), id="begins anew half way"),
        pytest.param(bytes([0x09, 0]), id="a ping in pieces"),
    ],
)
def test_what_no_server_may_send_ends_it(data: bytes) -> None:
    with pytest.raises(Closed):
        Parser().feed(data)


@given(payloads, st.binary(min_size=4, max_size=4))
def test_masking_twice_is_nothing(payload: bytes, mask: bytes) -> None:
    hidden = websocket.masked(payload, mask)
    assert websocket.masked(hidden, mask) == payload
    assert all(hidden[i] == payload[i] ^ mask[i % 4] for i in range(0, len(payload), 997))


# --- with a server by another hand -----------------------------------------------------------------------------


@contextmanager
def serving(handle: Callable[[ServerConnection], None]) -> Iterator[str]:
    with serve(handle, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def received(line: WebSocket, count: int) -> list[bytes]:
    found: list[bytes] = []
    until = time.monotonic() + SOON_S
    while len(found) < count:
        assert time.monotonic() < until, found
        line.flush()
        found += line.receive()
    return found


def test_it_talks_with_a_library_that_others_wrote() -> None:
    pongs: list[bool] = []

    def echo(connection: ServerConnection) -> None:
        pongs.append(connection.ping().wait(SOON_S))
        for message in connection:
            connection.send(message)

    with serving(echo) as url:
        line = websocket.connect(url, "/x?y=1", {"X-Other": "1"}, SOON_S)
        for payload in (b"", b"x", bytes(126), bytes(60_000)):
            line.send(payload)
        assert received(line, 4) == [b"", b"x", bytes(126), bytes(60_000)]
        line.close(within_s=SOON_S)
    assert pongs == [True]


def test_the_last_messages_before_the_close_are_not_lost() -> None:
    def bye(connection: ServerConnection) -> None:
        connection.send(b"one")
        connection.send(b"two")
        connection.close(4000, "enough")

    with serving(bye) as url:
        line = websocket.connect(url, "/", {}, SOON_S)
        assert received(line, 2) == [b"one", b"two"]
        with pytest.raises(Closed) as closed:
            received(line, 1)
        assert (closed.value.code, closed.value.reason) == (4000, "enough")
        line.close()


def answering(answer: bytes) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_a_refusal_brings_its_words() -> None:
    body = b'{"error": "conflict", "message": "it is over"}'
    head = b"HTTP/1.1 409 Conflict\r\nContent-Length: %d\r\nRetry-After: 3\r\n\r\n" % len(body)
    for url in answering(head + body):
        with pytest.raises(Refused) as refused:
            websocket.connect(url, "/", {}, SOON_S)
        assert (refused.value.status, refused.value.body) == (409, body)
        assert refused.value.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: bm9uc2Vuc2U=\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"",
        b"HTTP/1.1 101 Switching\r\n" + b"a: b\r\n" * 20_000,
    ],
)
def test_whoever_does_not_speak_it_is_an_error(answer: bytes) -> None:
    for url in answering(answer):
        with pytest.raises(OSError):
            websocket.connect(url, "/", {}, SOON_S)


def test_a_header_cannot_smuggle_another() -> None:
    with serving(lambda connection: None) as url, pytest.raises(ValueError):
        websocket.connect(url, "/", {"Authorization": "Bearer x\r\nHost: evil"}, SOON_S)
