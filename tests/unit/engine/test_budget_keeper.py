"""What the keeper of budgets does in one look: machines whose time is over, jobs that go on, what is told once."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from crucible.core.billables import Price
from crucible.engine.budget_wishes import BudgetWishes
from crucible.engine.budgets import BudgetKeeper
from crucible.engine.context import Context
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.purse import Purse
from crucible.engine.wakes import Wakes
from crucible.model.audit import AuditEntry
from crucible.model.budget import KEEPER, Budget, Period, Scope, budget_id
from crucible.model.ids import JobId, TokenId, UserId
from crucible.model.job import Desired, JobDesired
from crucible.model.lease import LeaseClosed
from crucible.model.policy import Policy
from crucible.model.storage import parse
from crucible.model.units import MICRO, MicroUsd
from crucible.ports.alerts import NoticeQuery
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.specimens import TARGET, Family, running, step, submitted
from crucible.testing.store_money_contract import a_posting, write
from crucible.testing.virtual import EPOCH, SeededIds, SeededRandom, run_virtually, virtual_clock

PLENTY, NONE = 1000 * MICRO, 1
ANN = UserId("ann")


class World:
    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.clock = store, virtual_clock(asyncio.get_running_loop())
        self.context = Context(
            store=store,
            streams=FileStreams(folder, add_segment=store.add_segment, segments=store.segments, inline=True),
            sellers={(TARGET.provider, TARGET.region): FakeCloud(clock=self.clock, random=random.Random(0))},
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
        self.wanted = 0
        self.keeper = BudgetKeeper(self.context, BudgetWishes(self.context), self._want)

    def _want(self) -> None:
        self.wanted += 1

    async def budget(self, limit: int, scope: Scope = Scope.SERVER, name: str = "") -> None:
        """Of everything; set anew, its limit is another one."""
        now = self.clock.now()
        known = next(iter(await self.store.budgets()), None)
        new = Budget(
            id=budget_id(scope, name, Period.ONCE),
            scope=scope,
            name=name,
            period=Period.ONCE,
            limit=MicroUsd(limit),
            starts_at=EPOCH - timedelta(days=9999),
            created_by=ANN,
            created_at=now,
        )
        said = AuditEntry(at=now, user_id=ANN, token_id=TokenId("t"), action="budget.change", subject="budget")
        changed = new if known is None else replace(new, version=known.version + 1)
        await self.store.save_budget(changed, said)

    async def hold(self, family: Family, by: UserId, ago: timedelta = timedelta(0)) -> None:
        job = await self.store.job(family.job.id)
        held = step(job, JobDesired(self.clock.now() - ago, Desired.HOLD, by, "held"))[1]
        await self.store.commit([held], label="hold")

    async def give_back(self, family: Family) -> None:
        gone = [step(lease, LeaseClosed(self.clock.now(), "over"))[1] for lease in family.leases]
        await self.store.commit(gone, label="gone")


Playing = Callable[[Callable[[World], Awaitable[None]]], None]


@pytest.fixture
def playing(tmp_path: Path) -> Playing:
    def play(scene: Callable[[World], Awaitable[None]]) -> None:
        async def whole() -> None:
            store = await open_store("sqlite://", clock_monotonic=asyncio.get_running_loop().time)
            await scene(World(store, tmp_path))
            await store.close()

        run_virtually(whole())

    return play


def test_a_job_without_money_is_told_to_stop_and_keeps_its_machines_until_it_has_saved(playing: Playing) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        await world.budget(NONE)
        await world.keeper.tick()
        job = await world.store.job(family.job.id)
        assert (job.desired, job.desired_by) == (Desired.HOLD, KEEPER)
        assert job.reason == "the budget server:once of $0.000001 pays for no more: paused until there is money again"
        assert {lease.phase for lease in await world.store.job_leases(job.id)} == {"active"}

    playing(scene)


@pytest.mark.parametrize(("limit", "phases"), [(NONE, {"closing"}), (PLENTY, {"active"})])
def test_machines_end_when_the_time_to_save_is_over_and_there_is_no_money_for_more(
    playing: Playing, limit: int, phases: set[str]
) -> None:
    """Whoever told the job to stop."""

    async def scene(world: World) -> None:
        family = await running(world.store)
        await world.budget(limit)
        await world.hold(family, ANN, ago=timedelta(minutes=4))
        await world.keeper.tick()
        assert {lease.phase for lease in await world.store.job_leases(family.job.id)} == phases

    playing(scene)


def test_what_the_keeper_holds_goes_on_when_there_is_money_and_what_a_person_holds_does_not(playing: Playing) -> None:
    async def scene(world: World) -> None:
        paused, held = await running(world.store), await running(world.store, "j2")
        await world.budget(NONE)
        for family, by in ((paused, KEEPER), (held, ANN)):
            await world.hold(family, by)
            await world.give_back(family)
        await world.keeper.tick()
        assert (await world.store.job(paused.job.id)).desired is Desired.HOLD and world.wanted == 0
        await world.budget(PLENTY)
        await world.keeper.tick()
        assert (await world.store.job(paused.job.id)).desired is Desired.RUN and world.wanted == 1
        assert (await world.store.job(held.job.id)).desired is Desired.HOLD

    playing(scene)


def test_what_there_is_money_for_goes_on_and_the_next_waits(playing: Playing) -> None:
    """The most urgent first; what one is promised the other cannot have."""

    async def scene(world: World) -> None:
        later = await running(world.store, "later")
        first = await running(world.store, "urgent", priority=5)
        for family in (later, first):
            await world.hold(family, KEEPER)
            await world.give_back(family)
        await world.budget(PLENTY)
        (price,) = {world.keeper._price_of(order) for order in (await world.store.stakes()).wanted}
        await world.budget(price.to_begin + price.to_be_worth_it + 1)
        await world.keeper.tick()
        assert (await world.store.job(first.job.id)).desired is Desired.RUN
        assert (await world.store.job(later.job.id)).desired is Desired.HOLD

    playing(scene)


def test_a_job_that_still_stops_is_not_let_go(playing: Playing) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        await world.budget(PLENTY)
        await world.hold(family, KEEPER)
        await world.keeper.tick()
        assert (await world.store.job(family.job.id)).desired is Desired.HOLD

    playing(scene)


def test_a_share_is_told_once_and_again_when_the_limit_is_another(playing: Playing) -> None:
    async def scene(world: World) -> None:
        family = await running(world.store)
        await world.give_back(family)
        await write(world.store, a_posting(family.job.id))  # 4.50 dollars
        told: list[str] = []
        commit = world.store.commit

        async def watched(changes: object, records: object = (), **more: object) -> None:
            told.extend(str(getattr(record, "title", "")) for record in records)  # type: ignore[attr-defined]
            await commit(changes, records, **more)  # type: ignore[arg-type]

        world.store.commit = watched  # type: ignore[method-assign, assignment]
        await world.budget(8 * MICRO)
        for _ in range(3):
            await world.keeper.tick()
        assert told == ["50% of the budget server:once is spent"]
        await world.budget(5 * MICRO)
        await world.keeper.tick()
        assert told[1:] == ["80% of the budget server:once is spent"]

    playing(scene)


def test_a_step_of_a_workflow_stops_with_the_whole_of_it(playing: Playing) -> None:
    async def scene(world: World) -> None:
        await submitted(world.store, "flow")
        child = await running(world.store, "child", parent=JobId("flow"), step=0)
        await world.budget(NONE)
        await world.keeper.tick()
        wishes = {job_id: (await world.store.job(JobId(job_id))).desired for job_id in ("flow", "child")}
        assert wishes == {"flow": Desired.HOLD, "child": Desired.HOLD}
        await world.give_back(child)
        await world.budget(PLENTY)
        await world.keeper.tick()
        wishes = {job_id: (await world.store.job(JobId(job_id))).desired for job_id in ("flow", "child")}
        assert wishes == {"flow": Desired.RUN, "child": Desired.RUN}

    playing(scene)


def test_nothing_is_read_before_somebody_buys_what_costs_money(playing: Playing) -> None:
    async def scene(world: World) -> None:
        purse = Purse(world.context)
        assert await purse.pay((await running(world.store)).job, Price()) is None
        assert purse._stakes is None

    playing(scene)


# --- who hears of it ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "name", "team", "user"),
    [
        (Scope.TEAM, "vision", "vision", None),
        (Scope.PROJECT, "cats", "vision", None),
        (Scope.USER, "ann", None, "ann"),
        (Scope.JOB, "j1", "vision", "ann"),
        (Scope.SERVER, "", None, None),
    ],
)
def test_a_share_that_is_spent_is_told_to_whom_it_concerns(
    playing: Playing, scope: Scope, name: str, team: str | None, user: str | None
) -> None:
    async def scene(world: World) -> None:
        job, _ = await submitted(world.store, team="vision", project="cats", user_id=ANN)
        await write(world.store, a_posting(job.id, amount=900_000))
        await world.budget(MICRO, scope, name)
        await world.keeper.tick()
        told = [notice for _, notice in await world.store.notices(NoticeQuery(limit=10))]
        assert [(notice.team, notice.user_id, notice.title[:3]) for notice in told] == [(team, user, "80%")]

    playing(scene)
