"""Streams on files: the contract, then what only files can suffer (B7, F34: no line lost or doubled)."""

import asyncio
import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.model.errors import Busy, StorageFailed
from crucible.ports.store import Segment
from crucible.ports.streams import LogLine, Streams
from crucible.streams.files import FileStreams
from crucible.testing.streams_contract import TASK, StreamsContract, all_lines, line

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Index:
    """The two methods of the store that streams use."""

    def __init__(self) -> None:
        self.rows: list[Segment] = []

    async def add(self, segment: Segment) -> None:
        assert all((s.stream, s.number) != (segment.stream, segment.number) for s in self.rows)
        self.rows.append(segment)

    async def list(self, stream: str) -> Sequence[Segment]:
        return [s for s in self.rows if s.stream == stream]


def opened(root: Path, index: Index, segment_bytes: int = 1000, inline: bool = False) -> FileStreams:
    return FileStreams(root, add_segment=index.add, segments=index.list, segment_bytes=segment_bytes, inline=inline)


@pytest.fixture
def index() -> Index:
    return Index()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "streams"


class TestFileStreams(StreamsContract):
    @pytest.fixture(params=["threads", "inline"])
    def streams(self, root: Path, index: Index, request: pytest.FixtureRequest) -> Streams:
        return FileStreams(root, add_segment=index.add, segments=index.list, inline=request.param == "inline")


class TestFileStreamsOfSmallSegments(StreamsContract):
    @pytest.fixture
    def streams(self, root: Path, index: Index) -> Streams:
        return opened(root, index)


async def fill(streams: Streams, start: int, stop: int) -> list[LogLine]:
    lines = [line(n, "z" * 100) for n in range(start, stop)]
    for one in lines:
        await streams.append_log(TASK, [one])
    return lines


def live(root: Path) -> Path:
    return max((root / TASK).glob("log-*.seg"))


async def test_full_segments_are_sealed_and_indexed_with_the_next_numbers(root: Path, index: Index) -> None:
    lines = await fill(opened(root, index), 0, 40)
    assert [s.number for s in index.rows] == [0, 1, 2, 3]
    assert all(s.size_bytes >= 1000 for s in index.rows)
    assert [s.first_offset for s in index.rows[1:]] == [s.first_offset + s.size_bytes for s in index.rows[:-1]]
    assert index.rows[-1].cursors == {"0/0": 36}
    assert await all_lines(opened(root, index), limit_bytes=300) == lines


async def test_reopening_reads_only_the_last_segment(root: Path, index: Index) -> None:
    await fill(opened(root, index), 0, 40)
    for sealed in index.rows:
        (root / TASK / f"log-{sealed.number:06d}.seg").write_bytes(b"")
    streams = opened(root, index)
    assert await streams.next_number(TASK, "log", 0, 0) == 40
    await streams.append_log(TASK, [line(39), line(40)])
    assert await streams.next_number(TASK, "log", 0, 0) == 41


@pytest.mark.parametrize(
    "torn", [b"0\t0\t2\t10", b"0\t0\t2\t1002\to\t0\thalf a li", b"\x00" * 700, b"\n\n", b"rubbish\n0\t0"]
)
async def test_a_tail_torn_by_a_crash_is_cut_before_the_next_append(root: Path, index: Index, torn: bytes) -> None:
    await opened(root, index).append_log(TASK, [line(0), line(1)])
    with live(root).open("ab") as file:
        file.write(torn)
    streams = opened(root, index)
    assert await all_lines(streams) == [line(0), line(1)]
    await streams.append_log(TASK, [line(1), line(2)])
    assert await all_lines(streams) == [line(0), line(1), line(2)]
    assert live(root).read_bytes().count(b"\n") == 3


async def test_a_reader_waits_for_the_rest_of_a_line_that_is_being_written(root: Path, index: Index) -> None:
    streams = opened(root, index)
    await streams.append_log(TASK, [line(0)])
    at = (await streams.read_log(TASK, 0)).next_offset
    with live(root).open("ab") as file:
        file.write(b"0\t0\t1\t1001\to")
        file.flush()
        chunk = await streams.read_log(TASK, at)
        assert (chunk.lines, chunk.next_offset, chunk.is_end) == ((), at, True)
        assert await streams.log_size(TASK) == (await streams.read_log(TASK, 10**9)).next_offset == at
        file.write(b"\t0\tline 1\n")
    assert (await streams.read_log(TASK, at)).lines == (line(1),)


async def test_a_damaged_line_in_the_middle_costs_only_itself(root: Path, index: Index) -> None:
    await opened(root, index, 10**6).append_log(TASK, [line(n) for n in range(5)])
    data = live(root).read_bytes()
    live(root).write_bytes(data.replace(b"0\t0\t2\t1002", b"0\t\x00\x00\x00\xff\xff002"))
    streams = opened(root, index, 10**6)
    assert [x.n for x in await all_lines(streams)] == [0, 1, 3, 4]
    assert await streams.next_number(TASK, "log", 0, 0) == 5


async def test_a_record_that_is_twice_on_disk_is_read_once(root: Path, index: Index) -> None:
    await opened(root, index).append_log(TASK, [line(0), line(1)])
    live(root).write_bytes(live(root).read_bytes() * 2)
    assert await all_lines(opened(root, index)) == [line(0), line(1)]


async def test_a_crash_between_index_and_next_segment_changes_nothing(root: Path, index: Index) -> None:
    lines = await fill(opened(root, index), 0, 9)
    assert not index.rows and live(root).stat().st_size >= 1000
    await index.add(Segment(f"{TASK}/log", 0, 0, live(root).stat().st_size, {"0/0": 9}))
    streams = opened(root, index)
    assert await all_lines(streams) == lines
    lines += await fill(streams, 9, 12)
    assert await all_lines(streams) == lines and len(index.rows) == 1


async def test_an_index_older_than_the_files_is_made_good(root: Path, index: Index) -> None:
    lines = await fill(opened(root, index), 0, 40)
    complete, index.rows = index.rows, index.rows[:1]
    streams = opened(root, index)
    assert await all_lines(streams) == lines
    lines += await fill(streams, 40, 41)
    assert await all_lines(streams) == lines
    assert index.rows == complete


async def test_two_servers_take_turns_on_one_stream(root: Path, index: Index) -> None:
    servers = [opened(root, index), opened(root, index)]
    lines = []
    for n in range(60):
        lines.append(line(n, "w" * 90))
        await servers[n % 2].append_log(TASK, lines[-3:])
        assert (await servers[1 - n % 2].read_log(TASK, await servers[0].tail_offset(TASK, 1))).lines == (lines[-1],)
    for server in servers:
        assert await all_lines(server, limit_bytes=500) == lines
        assert await server.next_number(TASK, "log", 0, 0) == 60


async def test_a_stream_that_another_server_is_writing_is_busy(root: Path, index: Index) -> None:
    streams = opened(root, index)
    await streams.append_log(TASK, [line(0)])
    with (root / TASK / "log.lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            await streams.append_log(TASK, [line(1)])
        assert await all_lines(streams) == [line(0)]
    await streams.append_log(TASK, [line(1)])
    assert await all_lines(streams) == [line(0), line(1)]


async def test_a_caller_that_goes_away_leaves_the_append_whole(root: Path, index: Index) -> None:
    streams = opened(root, index, 10**8)
    big = [line(n, "v" * 1000) for n in range(5000)]
    append = asyncio.create_task(streams.append_log(TASK, big))
    await asyncio.sleep(0)
    append.cancel()
    with pytest.raises(asyncio.CancelledError):
        await append
    await streams.append_log(TASK, [line(5000)])
    await streams.close()
    assert await all_lines(streams) == [*big, line(5000)]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The kernel refuses to grow a file past the limit in the middle of a write, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_is_said_and_nothing_of_the_batch_is_seen(root: Path, index: Index) -> None:
    streams = opened(root, index, 10**6)
    await streams.append_log(TASK, [line(0)])
    batch = [line(n, "u" * 100) for n in range(1, 200)]
    with files_no_larger_than(5000), pytest.raises(StorageFailed, match="File too large"):
        await streams.append_log(TASK, batch)
    assert await all_lines(streams) == await all_lines(opened(root, index, 10**6)) == [line(0)]
    assert await streams.next_number(TASK, "log", 0, 0) == 1
    await streams.append_log(TASK, batch)
    assert await all_lines(streams) == [line(0), *batch]


def a_file_where_the_folder_should_be(path: Path) -> None:
    path.parent.mkdir()
    path.touch()


async def test_a_folder_that_cannot_be_written_is_said(root: Path, index: Index) -> None:
    a_file_where_the_folder_should_be(root / TASK)
    with pytest.raises(StorageFailed, match="cannot write in"):
        await opened(root, index).append_log(TASK, [line(0)])


async def test_ten_megabytes_without_a_newline_come_back_piece_by_piece(root: Path, index: Index) -> None:
    streams = FileStreams(root, add_segment=index.add, segments=index.list)
    piece = "\\" * (64 << 10)  # doubled on disk
    pieces = [line(n, piece, is_partial=n < 159) for n in range(160)]
    await streams.append_log(TASK, pieces)
    assert await all_lines(streams, limit_bytes=1000) == pieces
    last = await streams.read_log(TASK, await streams.tail_offset(TASK, 1))
    assert last.lines == (pieces[-1],)


async def test_a_hundred_megabytes_of_log_pass_well_within_a_minute(root: Path, index: Index) -> None:
    streams = FileStreams(root, add_segment=index.add, segments=index.list)
    text = "step 100 loss 0.123 " * 6
    began = time.process_time()
    total = n = 0
    while total < 100 << 20:
        batch = [line(n + i, text) for i in range(2000)]
        await streams.append_log(TASK, batch)
        n += len(batch)
        total += len(text) * len(batch)
    offset = read = 0
    while not (chunk := await streams.read_log(TASK, offset)).is_end:
        offset = chunk.next_offset
        read += len(chunk.lines)
    assert read + len(chunk.lines) == n
    assert time.process_time() - began < 40
    assert len(index.rows) >= 6


WRITER = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = sys.argv[4:]
from crucible.ports.streams import LogLine
from crucible.streams.files import FileStreams

async def main(root, segment_bytes, first):
    rows = []
    async def add(segment): rows.append(segment)
    async def segments(stream): return rows
    streams = FileStreams(root, add_segment=add, segments=segments, segment_bytes=segment_bytes)
    n = first
    while True:
        batch = [LogLine(0, 0, n + i, 0, "out", f"line {n + i} " + "q" * 300) for i in range(20)]
        await streams.append_log("task-1", batch)
        n += 20
        print(n, flush=True)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
"""


def write_until_killed(root: Path, first: int, batches: int) -> int:
    """Start a writer at record `first`, kill it after so many acknowledged batches; how many records it had told us."""
    argv = [sys.executable, "-c", WRITER, str(root), "20000", str(first), *sys.path]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(batches)]
        os.kill(writer.pid, signal.SIGKILL)
        told += [int(word) for word in writer.stdout.read().split()]
    return told[-1]


async def test_killing_the_writer_at_any_moment_loses_nothing_acknowledged(root: Path, index: Index) -> None:
    """The index dies with the process too, so every restart has to find the truth in the files."""
    for batches in (1, 5, 13, 21):
        first = await opened(root, index, 20_000).next_number(TASK, "log", 0, 0)
        acknowledged = await asyncio.to_thread(write_until_killed, root, first, batches)
        after = opened(root, index, 20_000)
        stored = await after.next_number(TASK, "log", 0, 0)
        assert stored >= acknowledged
        assert [x.n for x in await all_lines(after)] == list(range(stored))


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 9), st.text(max_size=60), st.booleans()),
        max_size=25,
    ),
    segment_bytes=st.integers(1, 600),
    limit=st.integers(1, 400),
)
def test_whatever_is_repeated_or_reopened_each_record_is_read_once_and_in_order(
    batches: list[tuple[int, int, int, str, bool]], segment_bytes: int, limit: int
) -> None:
    async def check(root: Path) -> None:
        index = Index()
        streams = opened(root, index, segment_bytes, inline=True)
        expected: list[LogLine] = []
        numbers = [0, 0, 0]
        for rank, back, count, text, reopen in batches:
            start = max(0, numbers[rank] - back)
            batch = [line(n, f"{rank} {n} {text}", rank=rank) for n in range(start, start + count)]
            batch = [next((e for e in expected if (e.rank, e.n) == (b.rank, b.n)), b) for b in batch]
            await streams.append_log(TASK, batch)
            expected += [b for b in batch if b.n >= numbers[rank]]
            numbers[rank] = max(numbers[rank], start + count)
            if reopen:
                streams = opened(root, index, segment_bytes, inline=True)
        assert await all_lines(streams, limit_bytes=limit) == expected
        offset = await streams.tail_offset(TASK, 3)
        tail = await streams.read_log(TASK, offset, 10**6)
        assert expected[-3:][: len(tail.lines)] == list(tail.lines)

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))
