"""A followed log over broken lines and restarts: every line once, in order."""

import json
import random
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.errors import ServerError, ServerUnreachable
from crucible.client.following import LogReader, Patience
from crucible.client.transport import Transport
from crucible.model.errors import PlatformError
from doubles.http_server import Handler, Request, serving

Lines = list[bytes]


def stored(count: int, ranks: int = 2) -> Lines:
    """A log as the server keeps it: lines of several ranks, each with the offset behind it."""
    numbers = [0] * ranks
    lines: Lines = []
    offset = 0
    for i in range(count):
        rank = i * 7 % ranks
        text = f"line {i} " + "ä" * (i % 5)
        offset += len(text.encode()) + 20
        record = {"offset": offset, "attempt": 0, "rank": rank, "n": numbers[rank], "t": i, "s": "out", "x": text}
        numbers[rank] += 1
        lines.append(json.dumps(record).encode() + b"\n")
    return lines


def in_pieces(lines: Lines, size: int) -> bytes:
    """As the server sends them: only the last line of a piece says where the next piece begins."""
    kept = [i % size == size - 1 or i == len(lines) - 1 for i in range(len(lines))]
    return b"".join(line if keep else without_offset(line) for line, keep in zip(lines, kept, strict=True))


def without_offset(line: bytes) -> bytes:
    return json.dumps({k: v for k, v in json.loads(line).items() if k != "offset"}).encode() + b"\n"


class LogServer:
    """Breaks the line after every so many bytes, as `breaks` says, then serves the rest; the job is over at the end."""

    def __init__(self, lines: Lines, breaks: list[int], ends_cleanly: bool = False) -> None:
        self.lines = lines
        self.breaks = list(breaks)
        self.ends_cleanly = ends_cleanly
        self.follows = 0

    def __call__(self, request: Request, reply: Handler) -> None:
        if not request.path.endswith("/logs"):
            reply.json({"id": "x", "name": "x", "status": "running" if self.breaks else "completed"})
            return
        offset = int(request.query.get("offset", 0))
        rest = [line for line in self.lines if json.loads(line)["offset"] > offset]
        body = in_pieces(rest, size=5)
        self.follows += request.query["follow"] == "true"
        last = json.loads(self.lines[-1])["offset"] if self.lines else 0
        reply.begin_chunks(**({} if request.query["follow"] == "true" else {"X_Next_Offset": str(last)}))
        if request.query["follow"] == "true" and self.breaks:
            after = self.breaks.pop(0)
            if self.ends_cleanly:
                whole = body[:after].rfind(b"\n") + 1
                reply.chunk(body[:whole])
                reply.end_chunks()
            else:
                reply.chunk(body[:after])
                reply.hang_up()
            return
        reply.chunk(body)
        reply.end_chunks()


def texts(lines: Lines) -> list[str]:
    return [json.loads(line)["x"] for line in lines]


def followed(answer: Callable[[Request, Handler], None]) -> list[str]:
    with serving(answer) as server:
        return [record["x"] for record in Client(server.transport()).logs("x", follow=True)]


@settings(max_examples=12, deadline=None)
@given(count=st.integers(0, 60), seed=st.integers(), ends_cleanly=st.booleans(), drops=st.integers(0, 4))
def test_no_line_is_lost_or_doubled_however_the_connection_breaks(
    count: int, seed: int, ends_cleanly: bool, drops: int
) -> None:
    chance = random.Random(seed)
    lines = stored(count)
    breaks = [chance.randrange(0, 1 + sum(map(len, lines))) for _ in range(drops)]
    log = LogServer(lines, breaks, ends_cleanly)
    assert followed(log) == texts(lines)
    assert log.follows >= drops


def test_lines_without_offsets_are_told_apart_by_their_numbers() -> None:
    lines = stored(20)
    bare = [without_offset(line) for line in lines]

    def answer(request: Request, reply: Handler) -> None:
        if not request.path.endswith("/logs"):
            reply.json({"status": "completed"})
            return
        reply.begin_chunks()
        if request.query["follow"] == "true":
            reply.chunk(b"".join(bare)[:700])
            reply.hang_up()
            return
        reply.chunk(b"".join(bare))
        reply.end_chunks()

    assert followed(answer) == texts(lines)


def test_a_server_that_comes_back_at_another_port_is_followed_there() -> None:
    lines = stored(30)
    first_up, second_up = threading.Event(), threading.Event()
    home: dict[str, str] = {}

    def dies(request: Request, reply: Handler) -> None:
        reply.begin_chunks()
        reply.chunk(b"".join(lines[:10]))
        first_up.set()
        second_up.wait(10)
        reply.hang_up()

    seen: list[str] = []
    troubles: list[PlatformError] = []

    def follow() -> None:
        transport = Transport(Endpoint(home["url"]), relocate=lambda: Endpoint(home["url"]))
        with Client(transport) as client:
            seen.extend(record["x"] for record in client.logs("x", follow=True, on_trouble=troubles.append))

    with serving(LogServer(lines, [])) as second:
        with serving(dies) as first:
            home["url"] = first.url
            reader = threading.Thread(target=follow)
            reader.start()
            assert first_up.wait(10)
        home["url"] = second.url
        second_up.set()
        reader.join(20)
    assert seen == texts(lines)


def test_the_tail_is_shown_whole_even_if_its_first_answer_broke_and_the_log_went_on() -> None:
    lines = stored(10, ranks=1)
    asked: list[dict[str, str]] = []

    def answer(request: Request, reply: Handler) -> None:
        if not request.path.endswith("/logs"):
            reply.json({"status": "completed"})
            return
        asked.append(request.query)
        known = lines[:6] if len(asked) == 1 else lines  # while the first answer broke, the job went on writing
        offset = int(request.query.get("offset", 0))
        first = len(known) - int(request.query["tail"]) if "tail" in request.query else 0
        end = {} if request.query["follow"] == "true" else {"X_Next_Offset": str(json.loads(known[-1])["offset"])}
        reply.begin_chunks(**end)
        reply.chunk(b"".join(line for line in known[first:] if json.loads(line)["offset"] > offset))
        reply.hang_up() if len(asked) == 1 else reply.end_chunks()

    with serving(answer) as server:
        got = [record["x"] for record in Client(server.transport()).logs("x", follow=True, tail=3)]
    assert got == texts(lines[-3:])
    assert [query.get("tail") for query in asked] == ["3", "3", *[None] * (len(asked) - 2)]


def test_patience_tells_once_of_trouble_and_gives_up_in_the_end() -> None:
    with serving(lambda request, reply: reply.json({})) as server:
        url = server.url
    told: list[PlatformError] = []
    client = Client(Transport(Endpoint(url)))
    reader = LogReader(client, "x", {}, Patience(0.3, told.append))
    with pytest.raises(ServerUnreachable):
        list(reader.lines(follow=True))
    assert len(told) == 1


def test_something_that_is_not_a_log_is_refused() -> None:
    def answer(request: Request, reply: Handler) -> None:
        reply.begin_chunks()
        reply.chunk(b"<html>\n")
        reply.end_chunks()

    with pytest.raises(ServerError, match="is this a Crucible server"):
        followed(answer)
