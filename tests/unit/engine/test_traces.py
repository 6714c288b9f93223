"""Traces go to a collector that may be away, slow to come back, or unwilling to take a certain one. On a virtual clock,
with a real store."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from crucible.core.trace import trace_id
from crucible.engine import traces
from crucible.engine.context import Context
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.traces import TRIES, Traces
from crucible.engine.wakes import Wakes
from crucible.model.errors import Unreachable
from crucible.model.ids import JobId
from crucible.model.job import JobStatus, JobStatusChanged
from crucible.model.policy import Policy
from crucible.model.span import Span
from crucible.model.storage import parse
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.specimens import step, submitted
from crucible.testing.virtual import SeededIds, SeededRandom, run_virtually, virtual_clock


class Collector:
    def __init__(self) -> None:
        self.is_away = False
        self.unwanted = ""  # a job whose trace it does not take
        self.taken: list[str] = []
        self.largest = 0

    async def take(self, spans: Sequence[Span]) -> None:
        (trace,) = {span.trace_id for span in spans}
        if self.is_away or trace == trace_id(JobId(self.unwanted)):
            raise Unreachable("no")
        self.largest = max(self.largest, len(spans))
        names = [str(span.attributes["crucible.job.id"]) for span in spans if "crucible.job.id" in span.attributes]
        self.taken += [name for name in names if name not in self.taken]

    async def close(self) -> None: ...


class World:
    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.clock = virtual_clock(asyncio.get_running_loop())
        self.collector = Collector()
        context = Context(
            store=store,
            streams=FileStreams(folder, add_segment=store.add_segment, segments=store.segments, inline=True),
            sellers={("fake", "nowhere-1"): FakeCloud(clock=self.clock, random=random.Random(0), gpus=8)},
            clock=self.clock,
            ids=SeededIds(),
            random=SeededRandom(0),
            keys=Keys(b"key"),
            hub=Hub(self.clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id="server",
            url="http://here",
            checkpoint_root="file:///nowhere",
            storage=FakeStorage(now=self.clock.now),
            storage_root=parse("s3://kept/checkpoints"),
            failpoint=lambda name: None,
        )
        self.traces = Traces(context, self.collector)

    async def ended(self, *names: str) -> None:
        for name in names:
            job, _ = await submitted(self.store, name, created_at=self.clock.now())
            change = step(job, JobStatusChanged(self.clock.now(), JobStatus.FAILED, "no"))[1]
            await self.store.commit([change], label="test")

    async def rounds(self, count: int) -> int:
        """How many of them were in vain."""
        vain = 0
        for _ in range(count):
            try:
                await self.traces.round()
            except Unreachable:
                vain += 1
            await asyncio.sleep(traces.OVERLAP.total_seconds())
        return vain


def told(folder: Path, scene: Callable[[World], Awaitable[None]]) -> None:
    async def scenario() -> None:
        store = await open_store("sqlite://", clock_monotonic=asyncio.get_running_loop().time)
        await scene(World(store, folder))
        await store.close()

    run_virtually(scenario())


def test_a_trace_that_nobody_takes_keeps_no_other_waiting_for_long(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.collector.unwanted = "b"
        await world.ended("a", "b", "c", "d")
        assert await world.rounds(TRIES) == TRIES - 1
        assert world.collector.taken == ["a", "c", "d"]
        world.collector.unwanted = ""
        await world.ended("e")
        assert await world.rounds(1) == 0 and world.collector.taken == ["a", "c", "d", "e"]

    told(tmp_path, scene)


def test_while_the_collector_is_away_none_is_dropped(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.collector.is_away = True
        await world.ended("a", "b", "c")
        assert await world.rounds(3 * TRIES) == 3 * TRIES
        world.collector.is_away = False
        assert await world.rounds(1) == 0 and world.collector.taken == ["a", "b", "c"]

    told(tmp_path, scene)


def test_the_last_trace_waits_until_it_is_known_whose_fault_it_is(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        world.collector.is_away = True
        await world.ended("a")
        assert await world.rounds(3 * TRIES) == 3 * TRIES
        world.collector.is_away = False
        assert await world.rounds(1) == 0 and world.collector.taken == ["a"]

    told(tmp_path, scene)


def test_a_collector_that_was_away_for_long_gets_no_more_of_the_past(tmp_path: Path) -> None:
    async def scene(world: World) -> None:
        await world.ended("old")
        world.collector.is_away = True
        await world.rounds(1)
        await asyncio.sleep((traces.GIVE_UP + timedelta(minutes=5)).total_seconds())
        world.collector.is_away = False
        await world.ended("new")
        assert await world.rounds(1) == 0 and world.collector.taken == ["new"]

    told(tmp_path, scene)


def test_a_long_trace_is_sent_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(world: World) -> None:
        await world.ended("a")
        await world.rounds(1)
        assert world.collector.largest == 1
        assert world.collector.taken == ["a"]

    monkeypatch.setattr(traces, "AT_ONCE", 1)
    told(tmp_path, scene)
