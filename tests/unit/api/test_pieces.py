"""Followers of a job hear what comes of its streams. Whoever is at the same place hears the same, read once."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from crucible.api import pieces
from crucible.api.pieces import Cursor, PieceReader, Pieces, Place
from crucible.api.pulse import Seen
from crucible.model.ids import TaskId
from crucible.model.units import NOTHING
from crucible.ports.streams import LogChunk, LogLine, MetricChunk, Streams

pytestmark = pytest.mark.anyio
TASK = TaskId("task-1")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Growing:
    """A log of lines that are a byte long, given out ten at a time."""

    def __init__(self, lines: int) -> None:
        self.lines = lines
        self.reads = 0
        self.at_once = self.most_at_once = 0

    async def read_log(self, task: TaskId, offset: int, limit_bytes: int = 0) -> LogChunk:
        self.reads += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        stop = min(offset + 10, self.lines)
        found = tuple(LogLine(0, 0, n, 0, "out", str(n), False) for n in range(offset, stop))
        return LogChunk(found, stop, stop == self.lines)

    async def read_metrics(self, task: TaskId, offset: int, limit_bytes: int = 0) -> MetricChunk:
        return MetricChunk((), offset, True)


def reader(log: Growing) -> PieceReader:
    return PieceReader(cast(Streams, log))


def look(counter: int) -> Seen:
    return Seen(counter, 0.0, cast(Any, None), None, NOTHING, 0.0)


def said(found: Pieces) -> Sequence[str]:
    return [line["x"] for text in found.texts for line in json.loads(text)["lines"]]


def at(log: int) -> Place:
    return Place(TASK, Cursor(log=log), with_points=True)


async def followed(one: PieceReader, seen: Seen, start: int) -> list[str]:
    """All there is, piece by piece, as somebody who is behind gets it."""
    place, heard, is_all = at(start), list[str](), False
    while not is_all:
        found = await one.next(seen, place, is_behind=True)
        heard += said(found)
        place, is_all = Place(TASK, found.cursor, with_points=True), found.is_all
    return heard


async def test_those_who_keep_up_share_one_read_and_hear_what_comes_later() -> None:
    log = Growing(5)
    one, seen = reader(log), look(1)
    first = [await one.next(seen, at(3), is_behind=False) for _ in range(90)]
    assert log.reads == 1 and all(said(found) == ["3", "4"] and found.is_all for found in first)
    log.lines = 7
    assert said(await one.next(look(2), at(5), is_behind=False)) == ["5", "6"]
    assert said(await one.next(look(2), at(3), is_behind=False)) == ["3", "4", "5", "6"]


async def test_many_who_are_behind_are_read_for_once_and_one_at_a_time() -> None:
    log = Growing(95)
    one, seen = reader(log), look(1)
    heard = await asyncio.gather(*(followed(one, seen, 0) for _ in range(20)))
    assert all(found == [str(n) for n in range(95)] for found in heard)
    assert (log.reads, log.most_at_once) == (10, 1)


async def test_who_begins_elsewhere_misses_nothing() -> None:
    one, seen = reader(Growing(95)), look(1)
    heard = await asyncio.gather(*(followed(one, seen, start) for start in (0, 7, 13, 90, 95)))
    assert [len(found) for found in heard] == [95, 88, 82, 5, 0]


async def test_what_is_kept_for_others_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "KEPT", 2000)
    log = Growing(1000)
    one = reader(log)
    assert len(await followed(one, look(1), 0)) == 1000
    kept = list(one._kept.values())
    assert 0 < sum(map(pieces.size_of, kept)) <= 2000
