"""The days before: the engine itself, on a virtual clock and the Lab's market, lives through them in seconds. People
submit jobs as they would today; rows, events, prices and the ledger are what follows. Nothing is entered by hand."""

import asyncio
import random
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from examples.demo.market import PastMarket, PastPrices, PastRegion, a_world
from examples.demo.past_jobs import Day, PastJob
from examples.demo.people import MEMBERS, PROJECTS, SERVICE, TEAMS, VIEWER
from examples.demo.pretending import Learner, Script

from crucible import catalog
from crucible.blobs.files import FileBlobs
from crucible.engine.budget_desk import Wanted
from crucible.engine.context import Context
from crucible.engine.engine import Engine
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.wakes import Wakes
from crucible.home import prepare, secret_key
from crucible.main import ADMIN, Shipped, first_admin
from crucible.model.account import Principal, Role, UserKind
from crucible.model.budget import Period, Scope
from crucible.model.errors import Conflict
from crucible.model.ids import UserId
from crucible.model.policy import HealthLimits, Policy
from crucible.model.storage import parse
from crucible.model.units import micro_usd
from crucible.ports.store import Store
from crucible.search.optuna_search import OptunaSampler
from crucible.store.claims import MemoryClaims
from crucible.store.runner import no_failpoint
from crucible.store.schema import create
from crucible.store.sqlite import MemoryRunner
from crucible.store.store import SqlStore
from crucible.streams.files import FileStreams
from crucible.system import SystemClock, SystemRandom, uuid7
from crucible.testing.fake_agents import Fleet
from crucible.testing.fake_cloud import Faults
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.virtual import run_virtually
from crucible.wire import agent as wire

SEED = 9
# Every line is synced to the disk, which waits for nobody's virtual clock: it is written where that costs nothing.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
# Machines are looked at less often than of late, and loops that need not hurry do not: a day takes a second.
POLICY = Policy(
    silence=timedelta(minutes=20),
    budget_tick=timedelta(minutes=5),
    metrics_every=timedelta(days=1),
    usage_every=timedelta(minutes=5),
    price_refresh=timedelta(hours=8),
    health=HealthLimits(every=timedelta(minutes=10)),
)
REPORTS_S, POLL_S = (280.0, 320.0), 600.0
LEAST_NAP_S = 120.0
# Spot machines of these days are taken more often than the catalog says: there is something to see.
HAZARD = 3.0
# Of a workflow: nobody submits its steps.
A_STEP = Script(minutes=22)
# What must be over before the day is: machines given back, books closed.
EVENING_S = 900.0
LONGEST_DAY_S = 12 * 3600.0


class UnhurriedClock(SystemClock):
    """For loops that look at everything once a second: nothing here happens that often."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(max(seconds, LEAST_NAP_S))


class PastIds:
    """Names that sort by time of making, also beside those of today."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._dice = random.Random(SEED)

    def new(self, kind: str) -> str:
        moment = int(self._clock.now().timestamp() * 1000)
        if kind == "job":
            return str(uuid7(moment, self._dice.getrandbits(74)))
        return f"{kind}-{moment:011x}{self._dice.getrandbits(48):012x}"


@dataclass(kw_only=True)
class Past:
    home: Path  # of the server that goes on from here
    folder: Path  # where this is written
    regions: Sequence[str]
    until: datetime
    days: Sequence[Day]
    scripts: dict[str, Script] = field(default_factory=dict)  # by job
    people: dict[str, Principal] = field(default_factory=dict)

    async def live(self) -> None:
        since = self.until - timedelta(days=len(self.days))
        loop = asyncio.get_running_loop()
        self.clock = UnhurriedClock(wall=lambda: since, monotonic=loop.time)
        self.ids, self.shipped = PastIds(self.clock), Shipped()
        runner = MemoryRunner(no_failpoint)
        create(runner.transaction)
        self.store: Store = SqlStore(runner, MemoryClaims(loop.time))
        steady = SystemClock(wall=lambda: since, monotonic=loop.time)
        dice = random.Random(SEED)
        self.engine: Engine | None = None
        fleet = Fleet(
            clock=steady,
            random=dice,
            faults=Faults(),
            server=lambda: None if self.engine is None else self.engine.gateway,
            play=self._play,
            report_s=REPORTS_S,
            poll_s=POLL_S,
        )
        world = a_world(catalog.load(), self.regions, self.until, HAZARD)
        self.market = PastMarket(world=world, clock=steady, fleet=fleet)
        passing = asyncio.create_task(self.market.run())
        for number, day in enumerate(self.days):
            await asyncio.sleep(max(0.0, number * 86_400.0 + day.begins_h * 3600 - loop.time()))
            async with self._at_work() as engine:
                if number == 0:
                    await self._found(engine)
                await self._spend(engine, day)
        passing.cancel()
        with suppress(asyncio.CancelledError):
            await passing
        keep(runner, self.folder / "crucible.db")
        await self.store.close()

    @asynccontextmanager
    async def _at_work(self) -> AsyncIterator[Engine]:
        """A server by day; at night nobody works here."""
        storage = FakeStorage(now=self.clock.now)
        streams = FileStreams(
            self.folder / "streams", add_segment=self.store.add_segment, segments=self.store.segments, inline=True
        )
        context = Context(
            store=self.store,
            streams=streams,
            sellers={("aws", region): PastRegion(self.market, region) for region in self.regions},
            clock=self.clock,
            ids=self.ids,
            random=SystemRandom(),
            keys=Keys(secret_key(self.folder)),
            hub=Hub(self.clock),
            wakes=Wakes(),
            policy=POLICY,
            server_id="past",
            url="http://past.invalid",
            checkpoint_root=(self.home / "checkpoints").as_uri(),
            storage=storage,
            storage_root=parse((self.home / "objects").as_uri()),
            failpoint=no_failpoint,
            sampler=OptunaSampler(),
        )
        prices = [PastPrices(self.market.world, region, self.clock.now) for region in self.regions]
        engine = Engine(context, FileBlobs(self.folder / "packages", inline=True), self.shipped, prices)
        await engine.start()
        self.engine = engine
        try:
            yield engine
        finally:
            self.engine = None
            await engine.stop()
            await streams.close()

    def _play(self, launch: wire.Launch, now: float, first_step: int) -> Learner:
        began = self.clock.now().timestamp() - now
        return Learner(
            launch=launch,
            started_at=now,
            first_step=first_step,
            script=self.scripts.get(launch.job_id, A_STEP),
            now_ms=lambda at: int((began + at) * 1000),
        )

    # --- people ---------------------------------------------------------------------------------------------------

    async def _found(self, engine: Engine) -> None:
        """Who there is, from the first day on."""
        await first_admin(self.store, self.clock, self.folder)
        admin = await engine.people.authenticate((self.folder / "admin-token").read_text().strip())
        for team in TEAMS:
            await engine.teams.create(admin, team)
        for project, team in PROJECTS.items():
            await engine.teams.create_project(admin, project, team)
        for name, (team, role) in MEMBERS.items():
            await engine.people.create_user(admin, name=name, role=Role.MEMBER, team=team)
            if role is not Role.MEMBER:
                await engine.teams.set_member(admin, team, UserId(name), role)
        await engine.people.create_user(
            admin, name=SERVICE.name, role=Role.MEMBER, kind=UserKind.SERVICE, team=SERVICE.team
        )
        await engine.people.create_user(admin, name=VIEWER, role=Role.VIEWER)
        for name in (*MEMBERS, SERVICE.name):
            _, secret = await engine.people.create_token(admin, name="laptop", user=UserId(name))
            self.people[name] = await engine.people.authenticate(secret)
        self.people[ADMIN] = admin
        await engine.budgets.create(admin, Scope.SERVER, "", Period.MONTH, Wanted(limit=micro_usd("25000")))
        for team in TEAMS:
            await engine.budgets.create(admin, Scope.TEAM, team, Period.MONTH, Wanted(limit=micro_usd("8000")))
        for project in PROJECTS:
            await engine.budgets.create(admin, Scope.PROJECT, project, Period.ONCE, Wanted(limit=micro_usd("6000")))

    async def _spend(self, engine: Engine, day: Day) -> None:
        await asyncio.gather(*(self._person(engine, job) for job in day.jobs))
        await asyncio.sleep(EVENING_S)

    async def _person(self, engine: Engine, wanted: PastJob) -> None:
        """Submits one job, and looks after it until it is over."""
        await asyncio.sleep(wanted.after_min * 60)
        who = self.people[wanted.user]
        job = await engine.service.submit(who, name=wanted.name, spec_yaml=wanted.spec)
        self.scripts[job.id] = wanted.script
        if wanted.cancel_after_min is not None:
            await asyncio.sleep(wanted.cancel_after_min * 60)
            with suppress(Conflict):
                await engine.service.cancel(who, job.id)
        deadline = asyncio.get_running_loop().time() + LONGEST_DAY_S
        while not (job := await self.store.job(job.id)).status.is_terminal:
            if asyncio.get_running_loop().time() > deadline:
                raise RuntimeError(f"{job.name} is still {job.status} in the evening: {job.reason}")
            await asyncio.sleep(300)


def keep(runner: MemoryRunner, path: Path) -> None:
    """The database as a file, written by SQLite itself."""
    runner.transaction.script([f"VACUUM INTO '{path}'"])
    path.chmod(0o600)
    with sqlite3.connect(path) as written:
        assert written.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def make_past(home: Path, regions: Sequence[str], days: Sequence[Day]) -> None:
    """The days before now, in `home`, where a server can go on from there."""
    prepare(home)
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        written, until = Path(folder), datetime.now(UTC)
        run_virtually(Past(home=home, folder=written, regions=regions, until=until, days=days).live())
        shutil.copytree(written, home, dirs_exist_ok=True)
