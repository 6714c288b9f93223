"""Metrics over any stretch of time in a bounded number of points. What is added up already is read from files, what
came since from the stream itself: so the answer does not depend on how far the adding up has come, which server is
asked, or whether one was killed while it added up."""

import asyncio
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from crucible.core.rollup import Buckets, bounded, bucketed, finest, put, series_of, some, within
from crucible.model.errors import Busy, StorageFailed
from crucible.model.ids import TaskId
from crucible.model.metrics import MINUTE_MS, QUARTER_MS, RESOLUTIONS_MS, Chart, Keeping, Kept, Series
from crucible.ports.streams import Channel, ChartQuery, MetricPoint
from crucible.streams.rollups import Mark, Rollup

# Read from a stream at a time, and added up in one block.
PIECE_BYTES = 1 << 20
# New samples are added up when there are so many bytes of them, or nothing has come for so long. Until then whoever
# asks reads them as they are.
ROLL_BYTES = 64 << 10
ROLL_AFTER_S = 900.0
# Looked at in one turn of a thread; between two turns others get theirs.
FOLDERS = 256
# In one chart, of all names together.
MOST_POINTS = 100_000
# A reader may see files go while it reads; then it reads again.
TRIES = 3


class Raw(Protocol):
    """The streams themselves."""

    async def extent(self, task: TaskId, channel: str) -> tuple[int, int]:
        """The first offset that is still there, and the end."""
        ...

    async def settled(self, task: TaskId, channel: str) -> int:
        """The end of what is on disk for good: nobody takes it back. Raises Busy while another server writes."""
        ...

    async def points(
        self, task: TaskId, channel: str, offset: int, limit_bytes: int
    ) -> tuple[tuple[MetricPoint, ...], int, bool]: ...

    async def shed(self, task: TaskId, channel: str, upto: int, than_s: float, most_bytes: int) -> int:
        """Removes segments below the offset `upto` that are older or too much; how many."""
        ...

    async def run(self, work: Callable[..., Any], *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """A stream on disk."""

    task: TaskId
    channel: Channel
    raw_bytes: int
    oldest_raw_s: float  # when the segment was last written to that has waited longest; since 1970
    newest_raw_s: float
    newest_rolled_s: float


class Charts:
    def __init__(self, root: Path, raw: Raw) -> None:
        self._root = root
        self._raw = raw

    # --- reading ------------------------------------------------------------------------------------------

    async def chart(self, task: TaskId, channel: Channel, query: ChartQuery) -> Chart:
        resolution = query.resolution_ms
        if resolution is None:
            overview = await self._series(task, channel, query, QUARTER_MS)
            resolution = finest(overview, query.max_points)
        elif resolution not in (0, *RESOLUTIONS_MS):
            resolution = MINUTE_MS if resolution < QUARTER_MS else QUARTER_MS
        series = None if resolution else await self._single(task, channel, query)
        if series is None:
            resolution = resolution or MINUTE_MS
            series = await self._series(task, channel, query, resolution)
        chosen, left_out = some(series, query.names)
        most = max(1, min(query.max_points, MOST_POINTS // max(1, len(chosen))))
        resolution, chosen = bounded(chosen, resolution, most)
        return Chart(resolution, chosen, left_out)

    async def _series(self, task: TaskId, channel: Channel, query: ChartQuery, resolution: int) -> Series:
        """What is added up, and what came since."""
        rollup = self._rollup(task, channel, resolution)
        for _ in range(TRIES):
            found, offset = await self._raw.run(rollup.read, query.from_ms, query.to_ms, query.names)
            if (await self._raw.extent(task, channel))[0] <= offset:
                break
        await self._add_rest(found, task, channel, offset, resolution)
        return self._cut(series_of(found, query.rank), query, resolution)

    async def _add_rest(self, found: Buckets, task: TaskId, channel: Channel, offset: int, resolution: int) -> None:
        while True:
            points, offset, is_end = await self._raw.points(task, channel, offset, PIECE_BYTES)
            for (rank, name, _), bucket in bucketed(samples(points), resolution).items():
                put(found, rank, name, bucket)
            if is_end:
                return

    async def _single(self, task: TaskId, channel: Channel, query: ChartQuery) -> Series | None:
        """Every sample by itself; None if the oldest of them are gone."""
        first, end = await self._raw.extent(task, channel)
        offset = await self._seek(task, channel, first, end, query.from_ms)
        if first > 0 and offset == first:
            return None
        found: Buckets = {}
        is_end = False
        while not is_end:
            points, offset, is_end = await self._raw.points(task, channel, offset, PIECE_BYTES)
            for key, bucket in bucketed(samples(points), 0).items():
                put(found, key[0], key[1], bucket)
            too_many = len(found) > max(query.max_points, 1) * 1000
            if too_many or _is_past(points, query.to_ms):
                break
        return self._cut(series_of(found, query.rank), query, 0)

    async def _seek(self, task: TaskId, channel: Channel, first: int, end: int, from_ms: int | None) -> int:
        """An offset before the first sample of that time, or a little further back. Times in a stream grow, but for
        what ranks differ by: a minute is more than that."""
        low, high = first, end
        while from_ms is not None and high - low > ROLL_BYTES:
            middle = (low + high) // 2
            points, _, _ = await self._raw.points(task, channel, middle, ROLL_BYTES // 4)
            if not points or points[0].at_ms >= from_ms - MINUTE_MS:
                high = middle
            else:
                low = middle
        return low

    def _cut(self, series: Series, query: ChartQuery, resolution: int) -> Series:
        from_ms = -(2**63) if query.from_ms is None else query.from_ms
        return within(series, from_ms, 2**63 if query.to_ms is None else query.to_ms, resolution)

    # --- keeping ------------------------------------------------------------------------------------------

    async def keep(self, keeping: Keeping, now: datetime) -> Kept:
        tasks = await self._raw.run(folders, self._root)
        rolled = removed = 0
        sizes: dict[str, int] = {}
        for start in range(0, len(tasks), FOLDERS):
            for seen in await self._raw.run(looked, self._root, tasks[start : start + FOLDERS], sizes):
                try:
                    rolled += await self._roll_if_due(seen, now)
                    removed += await self._remove(seen, keeping, now)
                except Busy:
                    continue  # another server writes there: the next round sees it
            await asyncio.sleep(0)
        return Kept(len(tasks), rolled, removed, sizes)

    async def _roll_if_due(self, seen: Seen, now: datetime) -> bool:
        is_quiet = now.timestamp() - seen.newest_raw_s > ROLL_AFTER_S
        if seen.newest_raw_s <= seen.newest_rolled_s and is_quiet:
            return False
        done = [await self.roll(seen.task, seen.channel, one, is_all=is_quiet) for one in RESOLUTIONS_MS]
        return any(done)

    async def roll(self, task: TaskId, channel: Channel, resolution_ms: int, *, is_all: bool = True) -> bool:
        """Adds up what is new, if it is much or `is_all`. Block by block: cut off anywhere, the rest is done later."""
        rollup = self._rollup(task, channel, resolution_ms)
        end = await self._raw.settled(task, channel)
        has_rolled = False
        with rollup.files.locked():
            mark: Mark = await self._raw.run(rollup.mark)
            while mark.offset < end and (is_all or end - mark.offset >= ROLL_BYTES):
                limit = min(PIECE_BYTES, end - mark.offset)
                points, reached, _ = await self._raw.points(task, channel, mark.offset, limit)
                if reached <= mark.offset:
                    break
                mark = await self._raw.run(rollup.append, mark, bucketed(samples(points), resolution_ms), reached)
                has_rolled = True
        return has_rolled

    async def _remove(self, seen: Seen, keeping: Keeping, now: datetime) -> int:
        """What is measured itself goes when both coarser kinds have it."""
        at = now.timestamp()
        minutes, quarters = (self._rollup(seen.task, seen.channel, one) for one in RESOLUTIONS_MS)
        removed = 0
        raw_s = keeping.raw.total_seconds()
        if seen.raw_bytes > keeping.raw_bytes or at - seen.oldest_raw_s > raw_s:
            marks = [(await self._raw.run(one.mark)).offset for one in (minutes, quarters)]
            removed += await self._raw.shed(seen.task, seen.channel, min(marks), at - raw_s, keeping.raw_bytes)
        for rollup, age in ((minutes, keeping.minutes), (quarters, keeping.quarters)):
            removed += await self._raw.run(rollup.remove_older, at - age.total_seconds())
        return removed

    def _rollup(self, task: TaskId, channel: Channel, resolution_ms: int) -> Rollup:
        return Rollup(self._root / task, channel, resolution_ms)


def samples(points: Sequence[MetricPoint]) -> list[tuple[int, int, int | None, dict[str, float]]]:
    return [(one.rank, one.at_ms, one.step, one.values) for one in points]


def _is_past(points: Sequence[MetricPoint], to_ms: int | None) -> bool:
    return to_ms is not None and bool(points) and min(one.at_ms for one in points) > to_ms + MINUTE_MS


def folders(root: Path) -> list[str]:
    try:
        with os.scandir(root) as found:
            return sorted(one.name for one in found if one.is_dir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageFailed(f"cannot list {root}: {error.strerror}; check disk and rights") from error


def looked(root: Path, names: Sequence[str], sizes: dict[str, int]) -> list[Seen]:
    """Streams of metrics in these folders; `sizes` grows by what lies there, by channel."""
    found = []
    for name in names:
        files = _files(root / name)
        for file, size, _ in files:
            kind = file.split("-")[0].split(".")[0]
            sizes[kind] = sizes.get(kind, 0) + size
        for channel in Channel:
            raw = [(size, at) for file, size, at in files if file.startswith(f"{channel}-")]
            rolled = [at for file, size, at in files if file.startswith(f"{channel}.") and size]
            if raw or rolled:
                found.append(_seen(TaskId(name), channel, raw, rolled))
    return found


def _seen(task: TaskId, channel: Channel, raw: Sequence[tuple[int, float]], rolled: Sequence[float]) -> Seen:
    return Seen(
        task,
        channel,
        sum(size for size, _ in raw),
        min((at for size, at in raw if size), default=math.inf),
        max((at for _, at in raw), default=0.0),
        max(rolled, default=0.0),
    )


def _files(folder: Path) -> list[tuple[str, int, float]]:
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                facts = entry.stat()
                found.append((entry.name, facts.st_size, facts.st_mtime))
    except OSError:
        pass  # removed meanwhile
    return found
