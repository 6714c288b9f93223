"""What every implementation of ports.streams must do. A test file subclasses StreamsContract and gives a `streams`
fixture; it adds tests only for what its own storage can suffer."""

import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest

from crucible.model.errors import InvalidRequest
from crucible.model.ids import TaskId
from crucible.model.metrics import Keeping
from crucible.ports.streams import Channel, ChartQuery, LogLine, MetricPoint, Streams

TASK = TaskId("task-1")
AGES = timedelta(days=10_000)
FOR_EVER = Keeping(raw=AGES, minutes=AGES, quarters=AGES, raw_bytes=1 << 40)


def line(n: int, text: str | None = None, *, attempt: int = 0, rank: int = 0, is_partial: bool = False) -> LogLine:
    return LogLine(attempt, rank, n, 1000 + n, "out", f"line {n}" if text is None else text, is_partial)


def point(n: int, **values: float) -> MetricPoint:
    return MetricPoint(0, 0, n, 1000 + n, n * 10, values)


async def all_lines(streams: Streams, task: TaskId = TASK, limit_bytes: int = 1 << 20) -> list[LogLine]:
    """Everything, as a reader gets it who comes back with the cursor until the end."""
    lines: list[LogLine] = []
    offset = 0
    while True:
        chunk = await streams.read_log(task, offset, limit_bytes)
        lines += chunk.lines
        assert chunk.next_offset >= offset
        offset = chunk.next_offset
        if chunk.is_end:
            return lines


class StreamsContract:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def test_lines_are_read_back_in_the_order_they_were_appended(self, streams: Streams) -> None:
        await streams.append_log(TASK, [line(0), line(1)])
        await streams.append_log(TASK, [line(2)])
        assert await all_lines(streams) == [line(0), line(1), line(2)]

    async def test_every_field_and_every_character_survives(self, streams: Streams) -> None:
        texts = [
            "",
            "\ttab",
            "a\nb",
            "back\\slash",
            "\\n",
            "\\\\n\n\\",
            "caf\u00e9 \u2028 \x85",
            "\r50%\r",
            "\x00\x1b[31m",
        ]
        lines = [
            LogLine(3, 2, n, -5, stream, text, n % 2 == 0)
            for n, (stream, text) in enumerate(zip(["out", "err", "sys"] * 3, texts, strict=True))
        ]
        await streams.append_log(TASK, lines)
        assert await all_lines(streams) == lines

    async def test_a_record_appended_twice_is_kept_once(self, streams: Streams) -> None:
        await streams.append_log(TASK, [line(0), line(1)])
        await streams.append_log(TASK, [line(0), line(1), line(2)])
        await streams.append_log(TASK, [line(2), line(2)])
        assert await all_lines(streams) == [line(0), line(1), line(2)]

    async def test_a_gap_is_refused_and_nothing_of_the_batch_is_kept(self, streams: Streams) -> None:
        await streams.append_log(TASK, [line(0)])
        with pytest.raises(InvalidRequest, match="from 1 to 2") as refused:
            await streams.append_log(TASK, [line(0, rank=1), line(2)])
        assert refused.value.details["expected"] == 1
        assert await all_lines(streams) == [line(0)]
        assert await streams.next_number(TASK, "log", 0, 1) == 0

    async def test_numbers_that_are_not_numbers_of_records_are_refused(self, streams: Streams) -> None:
        for bad in (line(-1), line(0, rank=-1), line(0, attempt=2**40)):
            with pytest.raises(InvalidRequest):
                await streams.append_log(TASK, [bad])
        with pytest.raises(InvalidRequest, match="out, err or sys"):
            await streams.append_log(TASK, [LogLine(0, 0, 0, 0, "x\ty", "")])
        await streams.append_log(TASK, [line(0)])
        assert await all_lines(streams) == [line(0)]

    async def test_each_rank_of_each_attempt_is_numbered_by_itself(self, streams: Streams) -> None:
        batch = [line(0), line(0, rank=1), line(0, attempt=1), line(1, rank=1)]
        await streams.append_log(TASK, batch)
        assert await all_lines(streams) == batch
        numbers = [await streams.next_number(TASK, "log", a, r) for a, r in ((0, 0), (0, 1), (1, 0), (1, 1))]
        assert numbers == [1, 2, 1, 0]
        assert await streams.next_number(TASK, "metrics", 0, 0) == 0

    async def test_a_reader_with_a_small_limit_gets_everything_once(self, streams: Streams) -> None:
        lines = [line(n, "x" * (n * 37 % 500)) for n in range(200)]
        await streams.append_log(TASK, lines)
        assert await all_lines(streams, limit_bytes=64) == lines
        assert await all_lines(streams, limit_bytes=1) == lines

    async def test_a_reader_at_the_end_gets_what_comes_later(self, streams: Streams) -> None:
        await streams.append_log(TASK, [line(0)])
        chunk = await streams.read_log(TASK, 0)
        again = await streams.read_log(TASK, chunk.next_offset)
        assert (again.lines, again.next_offset, again.is_end) == ((), chunk.next_offset, True)
        await streams.append_log(TASK, [line(1)])
        assert (await streams.read_log(TASK, chunk.next_offset)).lines == (line(1),)

    async def test_an_offset_inside_a_line_moves_to_the_next_line(self, streams: Streams) -> None:
        await streams.append_log(TASK, [line(0), line(1), line(2)])
        second = (await streams.read_log(TASK, 0, 1)).next_offset
        for inside in range(1, second):
            assert (await streams.read_log(TASK, inside)).lines == (line(1), line(2))

    async def test_an_offset_out_of_range_is_the_nearest_one(self, streams: Streams) -> None:
        await streams.append_log(TASK, [line(0)])
        size = await streams.log_size(TASK)
        chunk = await streams.read_log(TASK, 10**12)
        assert (chunk.lines, chunk.next_offset, chunk.is_end) == ((), size, True)
        assert (await streams.read_log(TASK, -7)).lines == (line(0),)

    async def test_the_tail_begins_at_the_last_lines(self, streams: Streams) -> None:
        lines = [line(n, "y" * 3000) for n in range(300)]
        await streams.append_log(TASK, lines)
        for wanted in (0, 1, 7, 299, 300):
            offset = await streams.tail_offset(TASK, wanted)
            chunk = await streams.read_log(TASK, offset, 10**7)
            assert list(chunk.lines) == lines[300 - wanted :]
        assert await streams.tail_offset(TASK, 0) == await streams.log_size(TASK)
        assert await streams.tail_offset(TASK, 10_000) == 0

    async def test_a_stream_nobody_wrote_is_empty(self, streams: Streams) -> None:
        nobody = TaskId("nobody")
        chunk = await streams.read_log(nobody, 0)
        assert (chunk.lines, chunk.next_offset, chunk.is_end) == ((), 0, True)
        assert await streams.log_size(nobody) == 0
        assert await streams.tail_offset(nobody, 10) == 0
        assert await streams.next_number(nobody, "log", 0, 0) == 0

    async def test_metrics_survive_with_their_infinities(self, streams: Streams) -> None:
        points = [
            point(0, loss=1.5, lr=1e-300),
            point(1, loss=math.inf),
            MetricPoint(0, 0, 2, 5, None, {"d/x y": -0.0}),
        ]
        await streams.append_metrics(TASK, points)
        await streams.append_metrics(TASK, [point(1, loss=9.0), point(3, loss=math.nan)])
        chunk = await streams.read_metrics(TASK, 0)
        assert list(chunk.points[:3]) == points
        assert math.isnan(chunk.points[3].values["loss"])
        assert chunk.is_end and (await streams.read_metrics(TASK, chunk.next_offset)).points == ()
        assert await all_lines(streams) == []

    async def test_absurd_steps_and_times_are_kept_within_64_bits(self, streams: Streams) -> None:
        await streams.append_metrics(TASK, [MetricPoint(0, 0, 0, 10**30, -(10**30), {"loss": 1.0})])
        await streams.append_log(TASK, [LogLine(0, 0, 0, -(10**30), "out", "x")])
        (kept,) = (await streams.read_metrics(TASK, 0)).points
        assert (kept.at_ms, kept.step) == (2**63 - 1, -(2**63))
        assert [x.at_ms for x in await all_lines(streams)] == [-(2**63)]

    async def test_names_that_are_not_task_ids_never_reach_the_storage(self, streams: Streams) -> None:
        for name in ("", "..", "../x", "a/b", ".hidden", "a\x00b", "a\nb", "x" * 129, "é"):
            with pytest.raises(InvalidRequest):
                await streams.append_log(TaskId(name), [line(0)])
            with pytest.raises(InvalidRequest):
                await streams.read_log(TaskId(name), 0)

    async def test_many_writers_at_once_lose_nothing(self, streams: Streams) -> None:
        async def write(rank: int) -> None:
            for n in range(0, 40, 4):
                await streams.append_log(TASK, [line(n + i, rank=rank) for i in range(4)])

        await asyncio.gather(*(write(rank) for rank in range(8)))
        lines = await all_lines(streams)
        for rank in range(8):
            assert [x.n for x in lines if x.rank == rank] == list(range(40))

    # --- charts -----------------------------------------------------------------------------------------

    async def test_few_points_are_charted_one_by_one(self, streams: Streams) -> None:
        await streams.append_metrics(TASK, [point(n, loss=float(n)) for n in range(5)])
        chart = await streams.chart(TASK, Channel.METRICS, ChartQuery())
        assert chart.resolution_ms == 0
        assert [(one.last_ms, one.mean, one.step) for one in chart.series["loss"]] == [
            (1000 + n, float(n), 10 * n) for n in range(5)
        ]

    async def test_a_chart_has_no_more_points_than_asked_for(self, streams: Streams) -> None:
        points = [MetricPoint(0, 0, n, n * 1000, n, {"loss": float(n)}) for n in range(3000)]
        await streams.append_metrics(TASK, points)
        chart = await streams.chart(TASK, Channel.METRICS, ChartQuery(max_points=50))
        found = chart.series["loss"]
        assert chart.resolution_ms == 60_000 and len(found) == 50
        assert sum(one.count for one in found) == 3000 and (found[0].low, found[-1].high) == (0.0, 2999.0)
        assert [one.mean for one in found[:2]] == [29.5, 89.5]

    async def test_a_range_a_name_and_a_rank_are_charted_alone(self, streams: Streams) -> None:
        points = [
            MetricPoint(0, rank, n, n * 60_000, n, {"loss": float(rank), "lr": 1.0})
            for rank in (0, 1)
            for n in range(9)
        ]
        await streams.append_metrics(TASK, points)
        query = ChartQuery(from_ms=120_000, to_ms=300_000, resolution_ms=60_000, names=["loss"], rank=1)
        chart = await streams.chart(TASK, Channel.METRICS, query)
        assert [(one.start_ms, one.mean) for one in chart.series["loss"]] == [(n * 60_000, 1.0) for n in (2, 3, 4)]
        assert list(chart.series) == ["loss"]

    async def test_samples_are_numbered_by_the_stream_and_charted_apart(self, streams: Streams) -> None:
        sample = MetricPoint(0, 0, 0, 5000, None, {"cpu_percent": 50.0})
        for _ in range(3):
            await streams.append_samples(TASK, [sample])
        assert await streams.next_number(TASK, "usage", 0, 0) == 3
        chart = await streams.chart(TASK, Channel.USAGE, ChartQuery())
        assert sum(one.count for one in chart.series["cpu_percent"]) == 3
        assert not (await streams.chart(TASK, Channel.METRICS, ChartQuery())).series

    async def test_the_newest_metrics_are_the_last_ones(self, streams: Streams) -> None:
        await streams.append_metrics(TASK, [point(n, loss=float(n)) for n in range(500)])
        newest = await streams.newest_metrics(TASK, 1000)
        assert 5 < len(newest) < 100 and [one.n for one in newest] == list(range(500 - len(newest), 500))
        assert await streams.newest_metrics(TaskId("silent")) == ()

    async def test_adding_up_changes_no_answer(self, streams: Streams) -> None:
        points = [
            MetricPoint(0, 0, n, n * 10_000, n, {"loss": math.nan if n % 7 == 0 else float(n)}) for n in range(2000)
        ]
        await streams.append_metrics(TASK, points)
        queries = [
            ChartQuery(max_points=most, resolution_ms=of) for most in (10, 500) for of in (None, 60_000, 900_000)
        ]
        before = [await streams.chart(TASK, Channel.METRICS, one) for one in queries]
        kept = await streams.keep_metrics(FOR_EVER, datetime.now(UTC) + timedelta(hours=1))
        assert (kept.tasks, kept.rolled, kept.removed_files) == (1, 1, 0) and kept.sizes["metrics"] > 0
        for query, answer in zip(queries, before, strict=True):
            again = await streams.chart(TASK, Channel.METRICS, query)
            assert repr(again) == repr(answer)  # NaN is not equal to itself
        assert (await streams.keep_metrics(FOR_EVER, datetime.now(UTC) + timedelta(hours=1))).rolled == 0
