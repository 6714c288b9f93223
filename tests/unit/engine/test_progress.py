"""What tasks report is not lost between servers: a book that was never told reads the stream. On a virtual clock, with
a real store and real streams."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from crucible.engine import progress
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context
from crucible.engine.crews import Succession
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.outputs import Outputs
from crucible.engine.progress import Course, ProgressBook, Whose, course_of
from crucible.engine.reports import Reports
from crucible.engine.secrets import Secrets
from crucible.engine.trees import Trees
from crucible.engine.wakes import Wakes
from crucible.model.attempt import Attempt
from crucible.model.errors import Busy
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.policy import Policy
from crucible.model.record import Beat, Progress
from crucible.model.spec import JobSpec
from crucible.model.storage import parse
from crucible.model.sweep import Evaluation, Objective, Pruner, Pruning, Sweep
from crucible.model.tree import TaskTree
from crucible.ports.store import Store
from crucible.ports.streams import MetricPoint
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.virtual import SeededIds, SeededRandom, run_virtually, virtual_clock
from crucible.wire.agent import ProgressReport

COURSE = Course(Objective(metric="loss"), Pruning(rule=Pruner.ASHA))
TRIAL = Whose(TaskId("t1"), JobId("j1"), AttemptId("a1"), 0, COURSE)
PLAIN = replace(TRIAL, course=None)


class World:
    """One database, one folder of streams, any number of servers."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def server(self) -> ProgressBook:
        return ProgressBook(self.context)

    async def say(self, book: ProgressBook, *points: MetricPoint, whose: Whose = TRIAL) -> None:
        """As a report does: the stream has it first."""
        await self.context.streams.append_metrics(whose.task_id, points)
        await book.note_metrics(whose, points)

    async def write(self, book: ProgressBook) -> Progress | None:
        await self.context.store.heard([], book.news())
        return await self.context.store.task_progress(TRIAL.task_id)


def in_a_world(folder: Path, story: Callable[[World], Awaitable[None]]) -> None:
    async def play() -> None:
        store = await open_store("sqlite://")
        clock = virtual_clock(asyncio.get_running_loop())
        context = Context(
            store=store,
            streams=FileStreams(folder, add_segment=store.add_segment, segments=store.segments, inline=True),
            sellers={("fake", "nowhere-1"): FakeCloud(clock=clock, random=random.Random(0), gpus=8)},
            clock=clock,
            ids=SeededIds(),
            random=SeededRandom(0),
            keys=Keys(b"key"),
            hub=Hub(clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id="server",
            url="http://here",
            checkpoint_root="file:///nowhere",
            storage=FakeStorage(now=clock.now),
            storage_root=parse("s3://kept/checkpoints"),
            failpoint=lambda name: None,
        )
        try:
            await story(World(context))
        finally:
            await store.close()

    run_virtually(play())


def point(n: int, loss: float, step: int | None = None, attempt: int = 0, rank: int = 0, **more: float) -> MetricPoint:
    return MetricPoint(attempt, rank, n, 1, n + 1 if step is None else step, {"loss": loss, **more})


def test_the_last_of_each_metric_counts_however_often_it_was_written_in_between(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        book = world.server()
        await world.say(book, point(0, 3.0, acc=0.1), point(1, 2.0, lr=0.5))
        await world.write(book)
        await world.say(book, MetricPoint(0, 0, 2, 1, None, {"loss": 1.0}))
        said = await world.write(book)
        assert said is not None
        assert (said.metrics, said.step) == ({"loss": 1.0, "acc": 0.1, "lr": 0.5}, 2)
        assert book.news() == []

    in_a_world(tmp_path, story)


def test_a_job_without_trials_needs_no_stream(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        book = world.server()
        await book.note_progress(PLAIN, ProgressReport(attempt_id="a1", rank=0, step=5, total_steps=10))
        await world.say(book, point(0, 1.0, step=6), whose=PLAIN)
        await book.settle(PLAIN)
        said = await world.write(book)
        assert said is not None
        assert (said.step, said.total_steps, said.fraction, said.curve) == (6, 10, 0.5, None)

    in_a_world(tmp_path, story)


def test_what_a_server_heard_and_did_not_write_is_found_by_the_next(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        await world.say(world.server(), point(0, 3.0), point(1, 0.5), point(2, 0.7))  # it dies before it writes
        other = world.server()
        await other.settle(TRIAL)
        said = await world.write(other)
        assert said is not None and said.curve is not None
        assert (said.curve.last, said.curve.best, said.curve.number) == (0.7, 0.5, 3)
        assert said.curve.marks == ((1, 3.0), (3, 0.7))
        assert said.metrics == {"loss": 0.7}

    in_a_world(tmp_path, story)


def test_two_servers_that_take_turns_count_every_point_once(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        here, there = world.server(), world.server()
        await world.say(here, point(0, 5.0))
        await world.write(here)
        await world.say(there, point(1, 4.0), point(2, 1.0))
        await world.write(there)
        await world.say(here, point(3, 3.0))  # it has not heard of two of them
        said = await world.write(here)
        assert said is not None and said.curve is not None
        assert (said.curve.last, said.curve.best, said.curve.reports) == (3.0, 1.0, 4)

    in_a_world(tmp_path, story)


def test_a_server_that_was_left_out_settles_by_the_stream(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        here, there = world.server(), world.server()
        await world.say(here, point(0, 5.0))
        await world.say(there, point(1, 1.0))  # and the end is told to the first
        await here.settle(TRIAL)
        said = await world.write(here)
        assert said is not None and said.curve is not None
        assert (said.curve.last, said.curve.reports) == (1.0, 2)

    in_a_world(tmp_path, story)


def test_the_first_rank_speaks_for_the_trial(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        book = world.server()
        await world.say(book, point(0, 2.0))
        await world.say(book, point(0, 9.0, rank=1))
        said = await world.write(book)
        assert said is not None and said.curve is not None
        assert (said.curve.last, said.curve.reports) == (2.0, 1)

    in_a_world(tmp_path, story)


def test_a_new_attempt_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        book = world.server()
        await world.say(book, point(0, 2.0), point(1, 1.0))
        again = replace(TRIAL, attempt_id=AttemptId("a2"), attempt=1)
        await world.say(book, point(0, 1.5, step=2, attempt=1), whose=again)
        other = world.server()
        await other.settle(again)
        said = await world.write(other)
        assert said is not None and said.curve is not None
        assert (said.curve.last, said.curve.best, said.curve.attempt) == (1.5, 1.0, 1)
        assert said.attempt_id == "a2"

    in_a_world(tmp_path, story)


def test_names_beyond_number_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "MOST_NAMES", 3)

    async def story(world: World) -> None:
        book = world.server()
        for n in range(10):
            await world.say(book, MetricPoint(0, 0, n, 1, n, {f"m{n}": 1.0}))
        said = await world.write(book)
        assert said is not None and list(said.metrics) == ["m7", "m8", "m9"]

    in_a_world(tmp_path, story)


def test_searches_and_evaluations_are_followed_and_nothing_else() -> None:
    assert course_of(JobSpec()) is None
    assert course_of(JobSpec(evaluation=Evaluation())) == Course(None, None)
    assert course_of(JobSpec(sweep=Sweep(objective=COURSE.objective, pruning=COURSE.pruning))) == COURSE


# --- written together -------------------------------------------------------------------------------------------


class SlowStore:
    """Writes what was heard when it is let, and fails if it is told to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lets = asyncio.Event()
        self.fails = False
        self.written: list[Progress] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def heard(self, beats: Sequence[Beat], progress: Sequence[Progress]) -> None:
        await self.lets.wait()
        if self.fails:
            raise Busy("not now")
        self.written += progress


async def nobody(tree: TaskTree, attempt: Attempt) -> Succession:
    return Succession()


def reports_of(context: Context, store: SlowStore) -> Reports:
    slow = replace(context, store=cast(Store, store))
    outputs = Outputs(slow, Trees(slow))
    return Reports(slow, Checkpoints(slow), outputs, Secrets(slow).hidden, lambda: None, nobody)


def test_whoever_flushes_waits_for_what_another_is_writing(tmp_path: Path) -> None:
    """Else the end of a trial would be recorded before its value is."""

    async def story(world: World) -> None:
        store = SlowStore(world.context.store)
        reports = reports_of(world.context, store)
        await world.say(reports.progress, point(0, 3.0))
        first, second = asyncio.create_task(reports.flush()), asyncio.create_task(reports.flush())
        await asyncio.sleep(60)
        assert not first.done() and not second.done() and store.written == []
        store.lets.set()
        await asyncio.gather(first, second)
        assert [one.metrics for one in store.written] == [{"loss": 3.0}]

    in_a_world(tmp_path, story)


def test_what_could_not_be_written_is_written_by_the_next(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        store = SlowStore(world.context.store)
        reports = reports_of(world.context, store)
        await world.say(reports.progress, point(0, 3.0))
        store.fails = True
        first, second = asyncio.create_task(reports.flush()), asyncio.create_task(reports.flush())
        await asyncio.sleep(0)
        store.lets.set()
        with pytest.raises(Busy):
            await first
        with pytest.raises(Busy):
            await second
        store.fails = False
        await world.say(reports.progress, point(1, 2.0))
        await reports.flush()
        assert [one.metrics for one in store.written] == [{"loss": 2.0}]

    in_a_world(tmp_path, story)
