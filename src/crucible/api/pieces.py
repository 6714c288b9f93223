"""The next of a job's streams for those who follow it. Who keeps up hears the same as all others who do: that is read
and written down once. Who is behind is given one piece after another, and one of them at a time, so that a long log
that many begin to read holds up nobody who waits for its next line."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crucible.api import views
from crucible.api.pulse import Seen
from crucible.api.reply import encoded
from crucible.model.ids import TaskId
from crucible.ports.streams import Streams

PIECE_BYTES = 64 << 10
# Of what those who are behind were given, characters that are kept for others who come to the same place: what is
# followed by more never changes.
KEPT = 32 << 20


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a client has read: the last change of status, and offsets into the two streams."""

    event: int = 0
    log: int = 0
    metrics: int = 0

    def __str__(self) -> str:
        return f"{self.event}-{self.log}-{self.metrics}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a client is; with points, if it wants to hear of each."""

    task_id: TaskId
    cursor: Cursor
    with_points: bool


@dataclass(frozen=True, slots=True)
class Pieces:
    """At most one of each stream, as messages; and where one is after them."""

    texts: Sequence[str]
    cursor: Cursor
    is_all: bool  # there was no more


class PieceReader:
    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._kept: OrderedDict[Place, Pieces] = OrderedDict()
        self._size = 0
        self._turn = asyncio.Lock()

    async def next(self, seen: Seen, place: Place, *, is_behind: bool) -> Pieces:
        """As of `seen`, or later."""
        found = self._known(seen, place)
        if found is not None:
            return found
        if not is_behind:
            return await self._read(seen, place)
        async with self._turn:
            return self._known(seen, place) or await self._read(seen, place)

    def _known(self, seen: Seen, place: Place) -> Pieces | None:
        found: Pieces | None = seen.shared.get(place)
        return found or self._kept.get(place)

    async def _read(self, seen: Seen, place: Place) -> Pieces:
        cursor, texts, has_all_points = place.cursor, list[str](), True
        if place.with_points:
            points = await self._streams.read_metrics(place.task_id, cursor.metrics, PIECE_BYTES)
            cursor, has_all_points = replace(cursor, metrics=points.next_offset), points.is_end
            if points.points:
                shown = [views.metric(point, point.values) for point in points.points]
                texts.append(written({"type": "metrics", "points": shown}, cursor))
        lines = await self._streams.read_log(place.task_id, cursor.log, PIECE_BYTES)
        cursor = replace(cursor, log=lines.next_offset)
        if lines.lines:
            said = [views.log_line(line) for line in lines.lines]
            texts.append(written({"type": "log", "lines": said}, cursor))
        return self._shared(seen, place, Pieces(texts, cursor, has_all_points and lines.is_end))

    def _shared(self, seen: Seen, place: Place, pieces: Pieces) -> Pieces:
        if pieces.is_all:
            seen.share(place, pieces)  # until there is news: then there may be more
        elif place not in self._kept:
            self._kept[place] = pieces
            self._size += size_of(pieces)
            while self._size > KEPT:
                self._size -= size_of(self._kept.popitem(last=False)[1])
        return pieces


def size_of(pieces: Pieces) -> int:
    return sum(map(len, pieces.texts))


def written(message: Mapping[str, Any], cursor: Cursor) -> str:
    return encoded({**message, "cursor": str(cursor)}).decode()
