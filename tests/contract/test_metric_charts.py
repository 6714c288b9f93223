"""Metrics that are added up and removed on files: whatever is repeated, torn, killed or reopened, on however many
servers, a chart comes to what was measured, once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crucible.core.rollup import bucketed, series_of
from crucible.model.metrics import MINUTE_MS, QUARTER_MS, Bucket, Keeping
from crucible.ports.store import Segment
from crucible.ports.streams import Channel, ChartQuery, MetricPoint
from crucible.streams.files import FileStreams
from crucible.streams.rollups import Rollup
from crucible.testing.streams_contract import FOR_EVER, TASK

HOUR = timedelta(hours=1)
SHORT = replace(FOR_EVER, raw=HOUR)


class Index:
    def __init__(self) -> None:
        self.rows: list[Segment] = []

    async def add(self, segment: Segment) -> None:
        self.rows.append(segment)

    async def list(self, stream: str) -> Sequence[Segment]:
        return [one for one in self.rows if one.stream == stream]


def opened(root: Path, index: Index, segment_bytes: int = 2000) -> FileStreams:
    return FileStreams(root, add_segment=index.add, segments=index.list, segment_bytes=segment_bytes, inline=True)


def point(n: int, rank: int = 0) -> MetricPoint:
    return MetricPoint(0, rank, n, n * 20_000, n, {"loss": 1.0 / (n + 1), "lr": float(n)})


async def kept(streams: FileStreams, keeping: Keeping = FOR_EVER, later: timedelta = HOUR) -> int:
    return (await streams.keep_metrics(keeping, datetime.now(UTC) + later)).removed_files


async def charted(streams: FileStreams, resolution_ms: int) -> dict[str, tuple[Bucket, ...]]:
    query = ChartQuery(resolution_ms=resolution_ms, max_points=100_000)
    return dict((await streams.chart(TASK, Channel.METRICS, query)).series)


def measured(points: Sequence[MetricPoint], resolution_ms: int) -> dict[str, tuple[Bucket, ...]]:
    told = [(one.rank, one.at_ms, one.step, one.values) for one in points]
    return dict(series_of(bucketed(told, resolution_ms), None))


def agree(one: dict[str, tuple[Bucket, ...]], other: dict[str, tuple[Bucket, ...]]) -> bool:
    """But for how sums were rounded."""

    def rounded(series: dict[str, tuple[Bucket, ...]]) -> object:
        return {name: [replace(each, total=round(each.total, 6)) for each in found] for name, found in series.items()}

    return rounded(one) == rounded(other)


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["add", "add", "roll", "shed", "tear", "reopen"]), st.integers(1, 40)), max_size=30
    ),
    segment_bytes=st.integers(300, 5000),
)
def test_whatever_happens_in_between_a_chart_comes_to_what_was_measured(
    steps: list[tuple[str, int]], segment_bytes: int
) -> None:
    async def check(root: Path) -> None:
        index, points = Index(), list[MetricPoint]()
        servers = [opened(root, index, segment_bytes) for _ in range(2)]
        for turn, (step, much) in enumerate(steps):
            streams = servers[turn % 2]
            if step == "add":
                points += [point(n) for n in range(len(points), len(points) + much)]
                await streams.append_metrics(TASK, points[-2 * much :])  # what is known already comes again
            elif step == "roll":
                await kept(streams)
            elif step == "shed":
                await kept(streams, SHORT, 2 * HOUR)
            elif step == "tear":
                torn(root, much)
            else:
                servers[turn % 2] = opened(root, index, segment_bytes)
        for resolution in (MINUTE_MS, QUARTER_MS):
            for streams in servers:
                assert agree(await charted(streams, resolution), measured(points, resolution))

    with TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


def torn(root: Path, size: int) -> None:
    """What a crash leaves: the beginning of a block that was never ended."""
    for path in sorted((root / TASK).glob("metrics.*.seg")) if (root / TASK).exists() else ():
        with path.open("ab") as file:
            file.write(b'[0,0,"loss",5,0,9.0,9.0,45.0,9.0,0,null]\n'[:size])


@pytest.fixture
def index() -> Index:
    return Index()


async def story_of_a_long_job(root: Path, index: Index) -> FileStreams:
    streams = opened(root, index, 20_000)
    for start in range(0, 5000, 500):
        await streams.append_metrics(TASK, [point(n) for n in range(start, start + 500)])
    return streams


def test_what_was_measured_itself_goes_and_its_sums_stay(tmp_path: Path, index: Index) -> None:
    async def story() -> None:
        streams = await story_of_a_long_job(tmp_path, index)
        before = {of: await charted(streams, of) for of in (MINUTE_MS, QUARTER_MS)}
        await kept(streams)
        assert await kept(streams, SHORT, 2 * HOUR) > 5
        assert not list((tmp_path / TASK).glob("metrics-*.seg"))
        for server in (streams, opened(tmp_path, index, 20_000)):
            assert {of: agree(await charted(server, of), before[of]) for of in before} == dict.fromkeys(before, True)
            assert (await server.read_metrics(TASK, 0)).is_end
            assert await server.next_number(TASK, "metrics", 0, 0) == 5000

    asyncio.run(story())


def test_a_task_goes_on_after_all_it_had_measured_is_gone(tmp_path: Path, index: Index) -> None:
    async def story() -> None:
        streams = await story_of_a_long_job(tmp_path, index)
        end = (await streams.read_metrics(TASK, 10**9)).next_offset
        await kept(streams, SHORT, 2 * HOUR)
        other = opened(tmp_path, index, 20_000)
        await other.append_metrics(TASK, [point(5000)])
        for server in (streams, other):
            chunk = await server.read_metrics(TASK, 0)
            assert [one.n for one in chunk.points] == [5000] and chunk.next_offset > end and chunk.is_end
            assert agree(await charted(server, QUARTER_MS), measured([point(n) for n in range(5001)], QUARTER_MS))

    asyncio.run(story())


def test_too_much_of_one_task_goes_before_its_time_but_not_before_it_is_added_up(tmp_path: Path, index: Index) -> None:
    async def story() -> None:
        streams = await story_of_a_long_job(tmp_path, index)
        size = sum(path.stat().st_size for path in (tmp_path / TASK).glob("metrics-*.seg"))
        await kept(streams, replace(FOR_EVER, raw_bytes=size // 3))
        left = sum(path.stat().st_size for path in (tmp_path / TASK).glob("metrics-*.seg"))
        assert 0 < left <= size // 3
        assert agree(await charted(streams, MINUTE_MS), measured([point(n) for n in range(5000)], MINUTE_MS))

    asyncio.run(story())


def test_sums_go_when_their_time_is_over_but_not_where_the_adding_up_stands(tmp_path: Path) -> None:
    rollup = Rollup(tmp_path / TASK, "metrics", MINUTE_MS, file_bytes=500)
    mark = rollup.mark()
    (tmp_path / TASK).mkdir()
    for n in range(40):
        buckets = bucketed([(0, n * MINUTE_MS, None, {"loss": 1.0})], MINUTE_MS)
        mark = rollup.append(mark, buckets, offset=n + 1)
    assert len(rollup.files.numbers()) > 5
    assert rollup.remove_older(time.time() - 3600) == 0
    assert rollup.remove_older(time.time() + 1) >= 5
    assert rollup.files.numbers() == [mark.number] and rollup.mark() == mark and rollup.mark().offset == 40
    assert rollup.remove_older(time.time() + 1) == 0


def test_a_week_is_charted_in_bounded_points_and_quickly(tmp_path: Path, index: Index) -> None:
    async def story() -> None:
        streams = FileStreams(tmp_path, add_segment=index.add, segments=index.list, inline=True)
        week = [MetricPoint(0, 0, n, n * 10_000, n, {"loss": 1.0, "lr": 2.0}) for n in range(7 * 8640)]
        for start in range(0, len(week), 5000):
            await streams.append_metrics(TASK, week[start : start + 5000])
        await kept(streams)
        began = time.process_time()
        chart = await streams.chart(TASK, Channel.METRICS, ChartQuery(max_points=700))
        assert time.process_time() - began < 1.0
        assert chart.resolution_ms == QUARTER_MS and len(chart.series["loss"]) == 7 * 96
        hour = ChartQuery(from_ms=3 * 86_400_000, to_ms=3 * 86_400_000 + 3_600_000, max_points=700)
        near = await streams.chart(TASK, Channel.METRICS, hour)
        assert near.resolution_ms == 0 and len(near.series["loss"]) == 360

    asyncio.run(story())


KEEPER = """
import asyncio, json, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
sys.path[:0] = sys.argv[3:]
from crucible.model.metrics import Keeping
from crucible.ports.store import Segment
from crucible.ports.streams import MetricPoint
from crucible.streams.files import FileStreams

AGES = timedelta(days=10_000)

async def main(root, first):
    book = root.parent / "index.jsonl"  # durable, as the database is
    async def add(one):
        with book.open("a") as file:
            file.write(json.dumps([one.stream, one.number, one.first_offset, one.size_bytes, one.cursors]) + "\\n")
    async def segments(stream):
        lines = book.read_text().splitlines() if book.exists() else []
        return [one for one in (Segment(*json.loads(line)) for line in lines) if one.stream == stream]
    streams = FileStreams(root, add_segment=add, segments=segments, segment_bytes=5000, inline=True)
    keeping = Keeping(raw=timedelta(hours=1), minutes=AGES, quarters=AGES, raw_bytes=4000)
    n = first
    while True:
        batch = [MetricPoint(0, 0, n + i, (n + i) * 1000, None, {"v": float(n + i)}) for i in range(50)]
        await streams.append_metrics("task-1", batch)
        n += 50
        print(n, flush=True)
        await streams.keep_metrics(keeping, datetime.now(UTC) + timedelta(minutes=30))

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def test_killing_whoever_adds_up_and_removes_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    root = tmp_path / "streams"
    stored = 0
    for batches in (2, 5, 9, 14):
        stored = keep_until_killed(root, stored, batches)
        query = ChartQuery(resolution_ms=MINUTE_MS, max_points=100_000)
        chart = asyncio.run(book_of(root).chart(TASK, Channel.METRICS, query))
        stored = asyncio.run(book_of(root).next_number(TASK, "metrics", 0, 0))
        told = measured([MetricPoint(0, 0, n, n * 1000, None, {"v": float(n)}) for n in range(stored)], MINUTE_MS)
        assert dict(chart.series) == told


def keep_until_killed(root: Path, first: int, batches: int) -> int:
    argv = [sys.executable, "-c", KEEPER, str(root), str(first), *sys.path]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        told = [int(keeper.stdout.readline()) for _ in range(batches)]
        os.kill(keeper.pid, signal.SIGKILL)
        told += [int(word) for word in keeper.stdout.read().split()]
    return told[-1]


def book_of(root: Path) -> FileStreams:
    """With the index that the killed one wrote."""
    book = root.parent / "index.jsonl"

    async def add(one: Segment) -> None:
        with book.open("a") as file:
            file.write(json.dumps([one.stream, one.number, one.first_offset, one.size_bytes, one.cursors]) + "\n")

    async def segments(stream: str) -> Sequence[Segment]:
        rows = [Segment(*json.loads(line)) for line in (book.read_text().splitlines() if book.exists() else ())]
        return [one for one in rows if one.stream == stream]

    return FileStreams(root, add_segment=add, segments=segments, segment_bytes=5000, inline=True)
