"""What jobs took flows back into the next plan (requirement C4), and equal questions are answered once. On a virtual
clock, with a real store."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from crucible.catalog import benchmarks, facts
from crucible.core import plan
from crucible.core import task as tasks
from crucible.core.offers import OfferTable, make_table
from crucible.core.speeds import SpeedBook, make_book
from crucible.engine.answers import UNSEEN, essence
from crucible.engine.context import Context
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.planner import Knowledge, Planner
from crucible.engine.sweeps import Sweeps
from crucible.engine.tasks import JobReconciler
from crucible.engine.telemetry import Telemetry
from crucible.engine.wakes import Wakes
from crucible.model.catalog import Gpu, InstanceType, Price
from crucible.model.change import changed
from crucible.model.errors import InfeasibleJob
from crucible.model.job import JobStatus
from crucible.model.offer import Fabric, Market, Offer
from crucible.model.policy import Policy
from crucible.model.record import Prediction
from crucible.model.secret import SecretUse
from crucible.model.spec import Constraints, Execution, Framework, JobSpec, Mode, ModelClass, Resources, Retry, Workload
from crucible.model.storage import parse
from crucible.model.sweep import Search, Sweep
from crucible.model.task import TaskEnded, TaskPhase
from crucible.model.units import micro_usd
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.specimens import submitted
from crucible.testing.virtual import EPOCH, SeededIds, SeededRandom, run_virtually, virtual_clock

SPEC = JobSpec(
    framework=Framework.PYTORCH,
    command=("python", "train.py"),
    resources=Resources(gpus=8),
    workload=Workload(model_class=ModelClass.LLM, parameters=7e9, tokens=5e9),
)


@cache
def book() -> SpeedBook:
    return make_book(benchmarks.benchmarks(), facts.read(facts.SHIPPED, "gpus.csv", Gpu))


@cache
def table() -> OfferTable:
    node = InstanceType(
        provider="fake",
        name="p5",
        gpu="H100-SXM",
        gpus=8,
        gpu_memory_gib=80,
        cpus=96,
        memory_gib=1024,
        fabric=Fabric.HIGH,
    )
    price = Price(
        provider="fake",
        region="nowhere-1",
        zone="",
        instance_type="p5",
        market=Market.ON_DEMAND,
        price=micro_usd(55),
        as_of=EPOCH,
        source="test",
    )
    return make_table([node], [price])


class World:
    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.clock = virtual_clock(asyncio.get_running_loop())
        self.context = Context(
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
        self.offers: Sequence[Offer] = ()
        self.telemetry = Telemetry(self.context, book)
        self.planner = Planner(self.context, Knowledge(table(), book()), self._prices, self._offers, self.telemetry)

    async def _prices(self) -> tuple[int, Sequence[Price]]:
        return 0, ()

    async def _offers(self) -> Sequence[Offer]:
        return self.offers

    async def hours(self, team: str | None = None) -> float:
        made, _ = await self.planner.propose(replace(SPEC, team=team))
        assert made.chosen is not None and made.chosen.work_h is not None
        return made.chosen.work_h

    async def past(self, count: int, slowdown: float, team: str | None = None) -> None:
        """So many jobs that were planned like this one and took longer."""
        expected = (await self.planner.admit(replace(SPEC, team=team))).expected
        assert expected is not None and expected.book_hours is not None
        for _ in range(count):
            job, _ = await submitted(self.store, self.context.ids.new("job"), team=team)
            done = replace(
                expected,
                job_id=job.id,
                status=JobStatus.COMPLETED,
                ran_on=expected.planned_on,
                attempts=1,
                actual_hours=expected.book_hours * slowdown,
                ended_at=self.clock.now(),
            )
            await self.store.save_prediction(done)

    async def later(self, seconds: float = 301.0) -> None:
        await asyncio.sleep(seconds)


Scene = Callable[[World], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scene], None]:
    def play(scene: Scene) -> None:
        async def whole() -> None:
            store = await open_store("sqlite://", clock_monotonic=asyncio.get_running_loop().time)
            await scene(World(store, tmp_path))
            await store.close()

        run_virtually(whole())

    return play


# --- the book ---------------------------------------------------------------------------------------------


def test_jobs_that_took_twice_as_long_move_the_next_plan_towards_it(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        before = await world.hours()
        await world.past(5, slowdown=2.0)
        await world.later()
        assert before * 1.3 < await world.hours() < before * 1.8  # a few: the table still counts
        await world.past(100, slowdown=2.0)
        await world.later()
        assert before * 1.9 < await world.hours() < before * 2.0

    play(scene)


def test_a_team_that_is_slower_than_the_others_has_hours_of_its_own(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        before = await world.hours()
        await world.past(20, slowdown=1.0, team="quick")
        await world.past(6, slowdown=2.0, team="slow")
        await world.later()
        assert await world.hours("slow") > before * 1.4
        assert await world.hours("quick") == pytest.approx(before, rel=0.05)

    play(scene)


def test_a_job_that_ends_here_is_learnt_from_within_seconds(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        before = await world.telemetry.book()
        await world.past(5, slowdown=2.0)
        assert await world.telemetry.book() is before
        job, _ = await submitted(world.store, "ended")
        await world.store.save_prediction(Prediction(job_id=job.id, book_hours=1.0))
        await world.telemetry.outcome(job)
        assert await world.telemetry.book() is before  # a burst of ends is not a burst of reading
        await world.later(10)
        assert (await world.telemetry.book()).factors

    play(scene)


def test_while_nothing_new_is_said_the_book_stays_the_same_object(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        await world.past(5, slowdown=2.0)
        first = await world.telemetry.book()
        assert first.factors == {}
        await world.later()
        second = await world.telemetry.book()
        assert second.factors
        await world.later()
        assert await world.telemetry.book() is second

    play(scene)


# --- the end of a job -------------------------------------------------------------------------------------


def test_what_came_of_a_job_is_written_when_it_ends_and_only_once(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        job, (task,) = await submitted(world.store, "j", team="mine")
        await world.store.save_prediction(Prediction(job_id=job.id, estimated_hours=2.0))
        reconciler = JobReconciler(world.context, world.telemetry, Sweeps(world.context))
        await reconciler.step(job.id)
        assert (await world.store.prediction(job.id)) == Prediction(job_id=job.id, estimated_hours=2.0)
        _, changes = changed(task, [TaskEnded(world.clock.now(), TaskPhase.CANCELLED, "enough")], tasks.evolve)
        await world.store.commit(changes, label="cancel")
        await world.later(3)
        await reconciler.step(job.id)
        row = await world.store.prediction(job.id)
        assert row is not None
        assert (row.status, row.estimated_hours, row.actual_hours, row.actual_cost) == ("cancelled", 2.0, None, 0)
        assert row.ended_at == EPOCH + timedelta(seconds=3)
        await world.later(60)
        await reconciler.step(job.id)
        assert await world.store.prediction(job.id) == row

    play(scene)


# --- equal questions --------------------------------------------------------------------------------------


def test_jobs_that_differ_in_what_they_run_share_a_plan(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        first = await world.planner.admit(replace(SPEC, env={"SEED": "1"}, name="a"))
        again = await world.planner.admit(replace(SPEC, env={"SEED": "2"}, name="b", retry=Retry(limit=9)))
        assert again is first
        assert await world.planner.admit(replace(SPEC, team="other")) is not first
        assert await world.planner.admit(replace(SPEC, resources=Resources(gpus=4))) is not first

    play(scene)


def test_a_plan_is_made_anew_after_a_minute_a_new_offer_or_a_lesson(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        first = await world.planner.admit(SPEC)
        await world.later(59)
        assert await world.planner.admit(SPEC) is first
        await world.later(1)
        second = await world.planner.admit(SPEC)
        assert second is not first
        world.offers = await world.context.sellers["fake", "nowhere-1"].offers()
        await world.later(2)
        third = await world.planner.admit(SPEC)
        assert json.loads(third.text)["considered"] > json.loads(second.text)["considered"]
        await world.past(5, slowdown=2.0)
        await world.later()
        fourth = await world.planner.admit(SPEC)
        assert third.expected and fourth.expected
        assert fourth.expected.book_hours == third.expected.book_hours
        assert (fourth.expected.estimated_hours or 0) > (third.expected.estimated_hours or 0)

    play(scene)


def test_what_fits_nothing_is_refused_every_time(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        spec = replace(SPEC, constraints=Constraints(budget=micro_usd(1)))
        for _ in range(2):
            with pytest.raises(InfeasibleJob) as caught:
                await world.planner.admit(spec)
            assert caught.value.details["field"] == "constraints.budget"

    play(scene)


def test_a_sweep_is_planned_though_it_cannot_be_remembered(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        spec = replace(SPEC, sweep=Sweep(method=Search.LIST, trials=({"lr": 1}, {"lr": 2}, {"lr": 3})))
        first, again = await world.planner.admit(spec), await world.planner.admit(spec)
        assert json.loads(first.text)["tasks"] == 3
        assert again is not first

    play(scene)


def test_what_a_crew_buys_is_checked_and_thought_about_once(play: Callable[[Scene], None]) -> None:
    async def scene(world: World) -> None:
        tried = Sweep(method=Search.RANDOM, count=3)
        spec = replace(SPEC, sweep=tried, execution=Execution(mode=Mode.MULTI_TASK))
        first = await world.planner.scaling(spec, 3, ())
        assert sum(part.tasks for part in first.buy) == 3
        assert await world.planner.scaling(replace(spec, name="other"), 3, []) is first
        assert await world.planner.scaling(spec, 2, ()) is not first

    play(scene)


def test_planning_never_sees_what_is_left_out() -> None:
    """A field that planning comes to read must leave the list."""
    full: dict[str, Any] = {
        "name": "n",
        "entrypoint": "train.py",
        "args": ("--x",),
        "command": ("a",),
        "code": ".",
        "setup": ("pip install x",),
        "env": {"A": "b"},
        "secrets": (SecretUse(name="A", env="A"),),
        "volumes": {"/data": "x"},
        "inputs": {"weights": "tree://x"},
        "model": None,
        "retry": Retry(limit=9),
        "timeout": timedelta(hours=1),
        "priority": 7,
        "project": "p",
        "template": "t",
        "given": {"lr": 0.1},
    }
    assert set(full) == set(UNSEEN)
    spec = replace(SPEC, **full)

    def proposed(asked: JobSpec) -> object:
        return plan.propose(plan.Question(spec=asked, now=EPOCH, enabled=frozenset({"fake"})), table(), book())

    assert proposed(spec) == proposed(essence(spec))
