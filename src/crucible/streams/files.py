"""Streams on a folder that one or several servers share: `<root>/<task>/log-000000.seg` and on.

A reader's cursor is a byte offset over all segments. Segments that are full are sealed: indexed in SQL with the next
number of every source, so that opening a stream reads only its last segment. It decides nothing about jobs and keeps no
file open. Segments of metrics go when `charts` has added them up and they are old; an offset into one that has gone
means the first that is still there."""

import asyncio
import re
import shutil
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from crucible.model.errors import InvalidRequest, StorageFailed
from crucible.model.ids import TaskId
from crucible.model.metrics import Chart, Keeping, Kept
from crucible.ports.store import Segment
from crucible.ports.streams import CHANNELS, Channel, ChartQuery, LogChunk, LogLine, MetricChunk, MetricPoint
from crucible.streams.charts import Charts
from crucible.streams.records import decode_logs, decode_metrics, encode_log, encode_metric, fresh, numbered, scan
from crucible.streams.segments import BLOCK_BYTES, SegmentFiles

T = TypeVar("T")
R = TypeVar("R", LogLine, MetricPoint)

# A segment is sealed at the first append after it has reached this size.
SEGMENT_BYTES = 16 << 20
# Of metrics, which go segment by segment.
METRIC_SEGMENT_BYTES = 4 << 20
# Less than this is read where we are: a thread would cost more than the read.
INLINE_BYTES = 128 << 10
# Streams whose ends are remembered; another one is opened by scanning its last segment.
REMEMBERED = 2048

# Ids become names of folders: nothing but these, and no leading dot.
_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


@dataclass
class _End:
    """The last segment as far as we have looked at it."""

    number: int
    first_offset: int
    cursors: dict[str, int]
    size: int = 0  # bytes of whole records
    is_synced: bool = True  # False: holds records that somebody else wrote, perhaps without reaching the disk
    is_writing: bool = False  # what lies behind `size` may still be taken back


@dataclass
class _Stream:
    name: str
    files: SegmentFiles
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sealed: list[Segment] | None = None  # for readers; None: not read from the index yet
    end: _End | None = None

    @property
    def is_log(self) -> bool:
        return self.name.endswith("/log")


class FileStreams:
    def __init__(
        self,
        root: Path,
        *,
        add_segment: Callable[[Segment], Awaitable[None]],
        segments: Callable[[str], Awaitable[Sequence[Segment]]],
        inline: bool = False,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """`inline` does all file work in the caller's thread, for an event loop whose time is simulated."""
        self._root = root
        self._add_segment = add_segment
        self._segments = segments
        self._inline = inline
        self._segment_bytes = segment_bytes
        self._streams: OrderedDict[str, _Stream] = OrderedDict()
        self._running: set[asyncio.Task[Any]] = set()
        self._charts = Charts(root, self)

    # --- writing ------------------------------------------------------------------------------------

    async def append_log(self, task: TaskId, lines: Sequence[LogLine]) -> None:
        await self._to_the_end(self._append(self._stream(task, "log"), lines, encode_log))

    async def append_metrics(self, task: TaskId, points: Sequence[MetricPoint]) -> None:
        await self._to_the_end(self._append(self._stream(task, "metrics"), points, encode_metric))

    async def append_samples(self, task: TaskId, points: Sequence[MetricPoint]) -> None:
        await self._to_the_end(self._append(self._stream(task, Channel.USAGE), points, encode_metric, take=numbered))

    async def next_number(self, task: TaskId, channel: str, attempt: int, rank: int) -> int:
        return await self._to_the_end(self._next(self._stream(task, channel), f"{attempt}/{rank}"))

    # --- reading ------------------------------------------------------------------------------------

    async def read_log(self, task: TaskId, offset: int, limit_bytes: int = 1 << 20) -> LogChunk:
        return LogChunk(*await self._read(self._stream(task, "log"), offset, limit_bytes, decode_logs))

    async def read_metrics(self, task: TaskId, offset: int, limit_bytes: int = 1 << 20) -> MetricChunk:
        return MetricChunk(*await self._read(self._stream(task, "metrics"), offset, limit_bytes, decode_metrics))

    async def newest_metrics(self, task: TaskId, limit_bytes: int = 1 << 16) -> Sequence[MetricPoint]:
        _, end = await self.extent(task, Channel.METRICS)
        return (await self.points(task, Channel.METRICS, max(0, end - limit_bytes), limit_bytes))[0]

    async def chart(self, task: TaskId, channel: Channel, query: ChartQuery) -> Chart:
        return await self._charts.chart(task, channel, query)

    async def keep_metrics(self, keeping: Keeping, now: datetime) -> Kept:
        return await self._charts.keep(keeping, now)

    async def log_size(self, task: TaskId) -> int:
        return await self.tail_offset(task, 0)

    async def tail_offset(self, task: TaskId, lines: int) -> int:
        stream = self._stream(task, "log")
        parts = await self._parts(stream)
        if lines == 0:
            return _tail_offset(stream.files, parts, 0)
        return await self._run(_tail_offset, stream.files, parts, max(0, lines))

    async def room(self) -> tuple[int, int]:
        return await self._run(_room, self._root)

    async def remove(self, tasks: Sequence[TaskId]) -> int:
        for task in tasks:
            for channel in CHANNELS:
                self._streams.pop(self._stream(task, channel).name, None)
        return await self._run(_remove_all, [self._root / task for task in tasks])

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    # --- for charts ---------------------------------------------------------------------------------

    async def extent(self, task: TaskId, channel: str) -> tuple[int, int]:
        stream = self._stream(task, channel)
        parts = await self._parts(stream)
        first = next((one for one in parts if stream.files.exists(one.number)), parts[-1])
        return first.first_offset, parts[-1].first_offset + parts[-1].size_bytes

    async def settled(self, task: TaskId, channel: str) -> int:
        return await self._to_the_end(self._settle(self._stream(task, channel)))

    async def points(
        self, task: TaskId, channel: str, offset: int, limit_bytes: int
    ) -> tuple[tuple[MetricPoint, ...], int, bool]:
        return await self._read(self._stream(task, channel), offset, limit_bytes, decode_metrics)

    async def shed(self, task: TaskId, channel: str, upto: int, than_s: float, most_bytes: int) -> int:
        return await self._to_the_end(self._shed(self._stream(task, channel), upto, than_s, most_bytes))

    async def run(self, work: Callable[..., Any], *args: Any) -> Any:
        return await self._run(work, *args)

    # --- how it is done -----------------------------------------------------------------------------

    async def _settle(self, stream: _Stream) -> int:
        async with self._held(stream) as end:
            if not end.is_synced:
                await self._run(stream.files.append, end.number, end.size, b"")
                end.is_synced = True
            return end.first_offset + end.size

    async def _shed(self, stream: _Stream, upto: int, than_s: float, most_bytes: int) -> int:
        """The oldest first. The last segment goes too when nothing has come for so long; it is sealed before, so that
        its numbers and offsets are not given again."""
        async with self._held(stream) as end:
            is_old = end.size > 0 and stream.files.changed_s(end.number) < than_s
            if is_old and end.first_offset + end.size <= upto:
                end = stream.end = await self._sealed(stream, end)
            there = [one for one in await self._segments(stream.name) if stream.files.exists(one.number)]
            size, removed = sum(one.size_bytes for one in there) + end.size, 0
            for one in there:
                is_old = stream.files.changed_s(one.number) < than_s
                if one.first_offset + one.size_bytes > upto or not (is_old or size > most_bytes):
                    break
                stream.files.remove(one.number)
                size, removed = size - one.size_bytes, removed + 1
            return removed

    async def _append(
        self, stream: _Stream, records: Sequence[R], encode: Callable[[R], bytes], take: Callable[..., Any] = fresh
    ) -> None:
        async with self._held(stream) as end:
            new, cursors = take(records, end.cursors)
            if not new and end.is_synced:
                return
            end.is_writing = True
            try:
                end.size += await self._run(_write, stream.files, end, new, encode)
            finally:
                end.is_writing = False
            end.cursors = cursors
            end.is_synced = True

    async def _next(self, stream: _Stream, key: str) -> int:
        """An agent forgets what lies below the number we name: so it must be on disk."""
        if stream.end is None and not stream.files.is_begun and not await self._segments(stream.name):
            return 0  # of ten thousand tasks that say nothing none gets a folder
        async with self._held(stream) as end:
            if not end.is_synced:
                await self._run(stream.files.append, end.number, end.size, b"")
                end.is_synced = True
            return end.cursors.get(key, 0)

    @asynccontextmanager
    async def _held(self, stream: _Stream) -> AsyncIterator[_End]:
        """The stream's end, ours alone among all servers while the block runs. After any error we look again."""
        async with stream.lock:
            with stream.files.locked():
                try:
                    yield await self._room(stream, await self._caught_up(stream))
                except InvalidRequest:
                    raise  # the caller's mistake: nothing was written, and what we know of the end is right
                except BaseException:
                    stream.end = None
                    raise

    async def _caught_up(self, stream: _Stream) -> _End:
        """What we remember, plus whatever another server, or we before a crash, wrote behind it."""
        end = stream.end
        if end is None or stream.files.exists(end.number + 1) or stream.files.size(end.number) < end.size:
            end = stream.end = await self._opened(stream)
        size = stream.files.size(end.number)
        if size > end.size:
            end.size = await self._run(_scan, stream.files, end, size)
            end.is_synced = False
        if size > end.size:
            stream.files.truncate(end.number, end.size)  # a record torn by a crash: it was never acknowledged
        return end

    async def _opened(self, stream: _Stream) -> _End:
        end = _End(0, 0, {})
        sealed = await self._segments(stream.name)
        if sealed:
            last = sealed[-1]
            end = _End(last.number + 1, last.first_offset + last.size_bytes, dict(last.cursors))
        while stream.files.exists(end.number + 1):  # full and not indexed: a database older than the files
            end.size = await self._run(_scan, stream.files, end, stream.files.size(end.number))
            end = await self._sealed(stream, end)
        return end

    async def _room(self, stream: _Stream, end: _End) -> _End:
        """The end itself, or the next segment after sealing this one. Full means sealed: nobody appends to it again,
        so a seal that a crash interrupted is simply made by whoever comes next."""
        if end.size >= (self._segment_bytes if stream.is_log else min(self._segment_bytes, METRIC_SEGMENT_BYTES)):
            end = stream.end = await self._sealed(stream, end)
        return end

    async def _sealed(self, stream: _Stream, end: _End) -> _End:
        if not end.is_synced:
            await self._run(stream.files.append, end.number, end.size, b"")
        segment = Segment(stream.name, end.number, end.first_offset, end.size, dict(end.cursors))
        if all(known.number != segment.number for known in await self._segments(stream.name)):
            await self._add_segment(segment)
        return _End(segment.number + 1, segment.first_offset + segment.size_bytes, end.cursors)

    async def _read(
        self, stream: _Stream, offset: int, limit: int, decode: Callable[[bytes], tuple[R, ...]]
    ) -> tuple[tuple[R, ...], int, bool]:
        segments = await self._parts(stream)
        total = segments[-1].first_offset + segments[-1].size_bytes
        if offset >= total:
            return (), min(offset, _tail_offset(stream.files, segments, 0)), True
        offset = max(0, offset)
        part = next(part for part in segments if offset < part.first_offset + part.size_bytes)
        if not stream.files.exists(part.number):
            return await self._read_on(stream, segments, part, limit, decode)
        start = offset - part.first_offset
        work = (stream.files, part.number, start, part.size_bytes, limit, decode)
        if min(limit, part.size_bytes - start) > INLINE_BYTES:
            records, stop = await self._run(_read_lines, *work)
        else:
            records, stop = _read_lines(*work)
        reached = part.first_offset + stop
        # No step forward means that the last record is still being written.
        return records, reached, reached in (offset, total)

    async def _read_on(
        self,
        stream: _Stream,
        segments: Sequence[Segment],
        gone: Segment,
        limit: int,
        decode: Callable[[bytes], tuple[R, ...]],
    ) -> tuple[tuple[R, ...], int, bool]:
        """From the first segment after `gone` that is still there."""
        after = [one for one in segments if one.number > gone.number]
        there = next((one for one in after if stream.files.exists(one.number)), after[-1] if after else gone)
        if not stream.files.exists(there.number):
            return (), there.first_offset + there.size_bytes, True
        return await self._read(stream, there.first_offset, limit, decode)

    async def _parts(self, stream: _Stream) -> list[Segment]:
        """All segments: those of the index, those that others have filled since, and the last one as it is now."""
        if stream.sealed is None:
            stream.sealed = list(await self._segments(stream.name))
        last = self._after(stream)
        if not stream.is_log and not stream.files.exists(last.number):
            # Perhaps it was sealed and removed, by whichever server.
            stream.sealed = list(await self._segments(stream.name))
            last = self._after(stream)
        while stream.files.exists(last.number + 1):
            stream.sealed.append(self._after(stream))  # its size again: only now is it final
            last = self._after(stream)
        return [*stream.sealed, last]

    def _after(self, stream: _Stream) -> Segment:
        if not stream.sealed:
            return Segment(stream.name, 0, 0, self._readable(stream, 0))
        sealed = stream.sealed[-1]
        number = sealed.number + 1
        return Segment(stream.name, number, sealed.first_offset + sealed.size_bytes, self._readable(stream, number))

    def _readable(self, stream: _Stream, number: int) -> int:
        end = stream.end
        if end is not None and end.is_writing and end.number == number:
            return end.size
        return stream.files.size(number)

    def _stream(self, task: TaskId, channel: str) -> _Stream:
        if not _TASK.fullmatch(task):
            raise InvalidRequest("not the id of a task: letters, digits, dot, dash and underscore, at most 128")
        name = f"{task}/{channel}"
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _Stream(name, SegmentFiles(self._root / task, channel))
            self._forget_old()
        self._streams.move_to_end(name)
        return stream

    def _forget_old(self) -> None:
        surplus = max(0, len(self._streams) - REMEMBERED)
        for name in list(islice(self._streams, surplus)):
            if not self._streams[name].lock.locked():
                del self._streams[name]

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        if self._inline:
            return work(*args)
        return await asyncio.to_thread(work, *args)

    async def _to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """A caller may be cancelled; a thread that writes cannot. So the work runs on, with its locks held."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._finished)
        return await asyncio.shield(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # the caller has seen it, or has gone


def _room(root: Path) -> tuple[int, int]:
    """Of the folder, or of the nearest one above that is there already."""
    while not root.exists() and root != root.parent:
        root = root.parent
    try:
        found = shutil.disk_usage(root)
    except OSError as error:
        raise StorageFailed(f"cannot look at the disk of {root}: {error.strerror}") from error
    return found.total, found.free


def _write(files: SegmentFiles, end: _End, records: Sequence[R], encode: Callable[[R], bytes]) -> int:
    data = b"".join(map(encode, records))
    files.append(end.number, end.size, data)
    return len(data)


def _scan(files: SegmentFiles, end: _End, size: int) -> int:
    """Where whole records end; moves the cursors past them."""
    good = position = end.size
    while position < size:
        start, data = files.read_lines(end.number, position, size, BLOCK_BYTES)
        if not data:
            break
        whole = scan(data, end.cursors)
        good = start + whole if whole else good
        position = start + len(data)
    return good


def _read_lines(
    files: SegmentFiles, number: int, start: int, size: int, limit: int, decode: Callable[[bytes], tuple[R, ...]]
) -> tuple[tuple[R, ...], int]:
    begin, data = files.read_lines(number, start, size, limit)
    return decode(data), begin + len(data)


def _tail_offset(files: SegmentFiles, parts: Sequence[Segment], lines: int) -> int:
    """Count line ends backwards; the newline that ends the line before the wanted ones is the last to count."""
    wanted = lines + 1
    for part in reversed(parts):
        if part.size_bytes and not files.exists(part.number):
            return part.first_offset + part.size_bytes  # gone, as all before it
        for start, block in files.backwards(part.number, part.size_bytes):
            found = block.count(b"\n")
            if found >= wanted:
                return part.first_offset + start + _nth_from_the_end(block, wanted)
            wanted -= found
    return 0


def _nth_from_the_end(block: bytes, n: int) -> int:
    position = len(block)
    for _ in range(n):
        position = block.rindex(b"\n", 0, position)
    return position + 1


def _remove_all(folders: Sequence[Path]) -> int:
    return sum(map(_remove, folders))


def _remove(folder: Path) -> int:
    """The last segments first: whatever a crash leaves is the beginning of a stream."""
    try:
        found = sorted(folder.iterdir(), reverse=True)
        freed = sum(path.stat().st_size for path in found)
        for path in found:
            path.unlink(missing_ok=True)
        folder.rmdir()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise StorageFailed(f"cannot remove {folder}: {error.strerror}; check its rights") from error
    return freed
