"""The whole engine on a virtual loop with in-memory SQLite, a pretend cloud and its agents: hours pass in milliseconds.

The same seed gives the same run. The server is stopped and started again at random moments, sometimes with its clock an
hour off; what must never happen is watched all the time."""

import asyncio
import hashlib
import json
import random
import tempfile
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from crucible.blobs.files import FileBlobs
from crucible.engine.context import Context
from crucible.engine.engine import Engine
from crucible.engine.gateway import Gateway
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.planner import NO_KNOWLEDGE
from crucible.engine.wakes import Wakes
from crucible.model.account import Principal, Role
from crucible.model.errors import Conflict
from crucible.model.ids import JobId, TokenId, UserId
from crucible.model.job import JobStatus
from crucible.model.policy import Policy
from crucible.model.storage import parse
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.system import SystemClock
from crucible.testing.fake_agents import Fleet
from crucible.testing.fake_cloud import FakeCloud, Faults
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.virtual import EPOCH, SeededIds, SeededRandom, run_virtually
from pretend_catalog import pretend_catalog

ADMIN = Principal(UserId("admin"), Role.ADMIN, TokenId("t"))
# Files that are gone in a minute need no disk to sync with.
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
LIMIT_S = 7 * 86400.0
CLEAN_UP_S = 1800.0
ALWAYS = 1_000_000  # more attempts than any job has: those that found everything sold out count too

SPEC = """\
job:
  command: [train]
  resources: {{gpus: {gpus}, max_gpus_per_node: 2}}
  retry: {{limit: 2, delay: 10s}}
  constraints: {{allow_spot: true}}
  env: {{SIM_SECONDS: "{seconds}", SIM_FAILS: "{fails}", SIM_LINES: "{lines}", SIM_CHECKPOINT_EVERY: "{every}"}}
"""


@dataclass(frozen=True)
class Story:
    """What one job will do, and what may become of it."""

    gpus: int
    seconds: int
    fails: int
    lines: int
    every: int
    cancel_after: float | None

    def spec(self) -> str:
        return SPEC.format(**{k: v for k, v in self.__dict__.items() if k != "cancel_after"})

    def endings(self) -> set[JobStatus]:
        natural = JobStatus.FAILED if self.fails > 2 else JobStatus.COMPLETED
        return {natural} if self.cancel_after is None else {natural, JobStatus.CANCELLED}


@dataclass
class Outcome:
    digest: str
    broken: list[str]
    statuses: dict[JobStatus, int]
    virtual_s: float
    restarts: int
    billed_microusd: int
    machines: int


@dataclass
class World:
    seed: int
    jobs: int
    faults: Faults = field(default_factory=Faults)
    restart_every_s: float | None = None
    clock_steps: bool = False
    is_bought: bool = False  # by the catalog, spot machines among it; else from a stock that the cloud counts

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.broken: list[str] = []
        self.gateway: Gateway | None = None
        self.restarts = 0
        self.offset = timedelta(0)

    def run(self) -> Outcome:
        with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
            return run_virtually(self._run(Path(folder)))

    async def _run(self, folder: Path) -> Outcome:
        loop = asyncio.get_running_loop()
        self.store: Store = await open_store("sqlite://", clock_monotonic=loop.time, failpoint=self.failpoint)
        self.streams = FileStreams(
            folder / "streams",
            add_segment=self.store.add_segment,
            segments=self.store.segments,
            inline=True,
        )
        self.blobs = FileBlobs(folder / "blobs", inline=True)
        self.ids, self.chance = SeededIds(), SeededRandom(self.seed)
        steady = SystemClock(wall=lambda: EPOCH, monotonic=loop.time)
        self.fleet = Fleet(clock=steady, random=self.random, faults=self.faults, server=lambda: self.gateway)
        self.cloud = FakeCloud(
            clock=steady,
            random=self.random,
            faults=self.faults,
            on_boot=self.fleet.boot,
            on_end=self.fleet.end,
            on_notice=self.fleet.notice,
        )
        self.cloud.facts = replace(self.cloud.facts, counts_stock=not self.is_bought)
        self.storage = FakeStorage(now=steady.now)
        self.knowledge = pretend_catalog(self.cloud.name, self.cloud.region, EPOCH) if self.is_bought else NO_KNOWLEDGE
        engine = await self._start()
        people = [asyncio.create_task(self._person(n)) for n in range(self.jobs)]
        while not all(person.done() for person in people):
            pause = self.random.expovariate(1 / self.restart_every_s) if self.restart_every_s else 60.0
            await asyncio.wait(people, timeout=pause)
            if self.restart_every_s:
                engine = await self._restart(engine)
            if loop.time() > LIMIT_S:
                self.broken.append(f"not everything ended within {LIMIT_S / 86400:g} days")
                break
        await asyncio.sleep(CLEAN_UP_S)
        self._check_nothing_is_left()
        await self._check_the_bill()
        outcome = await self._outcome([person.result() for person in people if person.done()])
        await self.engine.stop()
        await self.store.close()
        for task in self.fleet.agents.values():
            task.cancel()
        return outcome

    def failpoint(self, name: str) -> None:
        """Around every transaction and every call to the outside: a world may do something there."""

    # --- the server ---------------------------------------------------------------------------------

    async def _start(self) -> Engine:
        loop = asyncio.get_running_loop()
        wall = EPOCH + timedelta(seconds=loop.time()) + self.offset
        clock = SystemClock(wall=lambda: wall, monotonic=loop.time)
        context = Context(
            store=self.store,
            streams=self.streams,
            sellers={(self.cloud.name, self.cloud.region): self.cloud},
            clock=clock,
            ids=self.ids,
            random=self.chance,
            keys=Keys(b"secret"),
            hub=Hub(clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id=f"server-{self.restarts}",
            url="http://server",
            checkpoint_root="file:///checkpoints",
            storage=self.storage,
            storage_root=parse("s3://kept/checkpoints"),
            failpoint=self.failpoint,
        )
        engine = Engine(context, self.blobs, self.knowledge)
        await engine.start()
        self.engine, self.gateway = engine, engine.gateway
        return engine

    async def _restart(self, engine: Engine) -> Engine:
        self.gateway = None
        await engine.stop()
        self.restarts += 1
        if self.clock_steps:
            self.offset = timedelta(hours=self.random.choice([-1, 0, 0, 1]))
        await asyncio.sleep(self.random.uniform(0, 120))
        return await self._start()

    # --- the people ---------------------------------------------------------------------------------

    def _story(self) -> Story:
        r = self.random
        return Story(
            gpus=r.choice([0, 1, 1, 2, 3, 4, 8]),
            seconds=r.choice([1, 5, 30, 120]),
            fails=r.choice([0, 0, 0, 1, 2, ALWAYS]),
            lines=r.randrange(1, 8),
            every=r.choice([0, 20]),
            cancel_after=r.uniform(0, 400) if r.random() < 0.2 else None,
        )

    async def _person(self, number: int) -> JobId:
        await asyncio.sleep(self.random.uniform(0, 10 * self.jobs))
        story = self._story()
        job_id = await self._insist(
            lambda: self.engine.service.submit(ADMIN, name=f"job{number}", spec_yaml=story.spec())
        )
        if story.cancel_after is not None:
            await asyncio.sleep(story.cancel_after)
            try:
                await self._insist(lambda: self.engine.service.cancel(ADMIN, job_id))
            except Conflict:
                pass
        while not (job := await self.store.job(job_id)).status.is_terminal:
            await asyncio.sleep(5)
        if job.status not in story.endings():
            self.broken.append(f"{job_id} {story} ended {job.status}: {job.reason}")
        return job_id

    async def _insist(self, ask) -> JobId:
        """Ask until the server is up."""
        while self.gateway is None:
            await asyncio.sleep(1)
        return (await ask()).id

    # --- what must be so ----------------------------------------------------------------------------

    def _check_nothing_is_left(self) -> None:
        self.broken += self.fleet.broken
        self.broken += [f"machine {m.id} was leaked" for m in self.cloud.alive()]
        self.broken += [f"rank {place} still runs" for place in self.fleet.running]

    async def _check_the_bill(self) -> None:
        """What the books say and what the cloud asks for is the same, to the micro-dollar, job by job."""
        asked = self.cloud.bills()
        charged = await self.store.job_costs(list(asked))
        self.broken += [
            f"{job_id} is charged {charged.get(job_id)}, the cloud asks for {amount}"
            for job_id, amount in asked.items()
            if charged.get(job_id) != amount
        ]
        balances = await self.store.balances()
        if sum(balances.values()) != 0 or -balances.get("provider:fake", 0) != sum(asked.values()):
            self.broken.append(f"the books hold {balances}, the cloud asks for {sum(asked.values())}")
        self.billed = sum(asked.values())
        self.broken += [f"{usage} is still open" for usage in await self.store.open_usages("fake", self.cloud.region)]

    async def _outcome(self, jobs: list[JobId]) -> Outcome:
        digest = hashlib.sha256()
        statuses: dict[JobStatus, int] = {}
        for job_id in sorted(jobs):
            job = await self.store.job(job_id)
            statuses[job.status] = statuses.get(job.status, 0) + 1
            versions: dict[tuple[str, str], int] = {}
            for event in await self.store.events(job_id, limit=100_000):
                digest.update(
                    json.dumps([event.kind, event.entity_id, event.version, event.type, event.at.isoformat()]).encode()
                )
                expected = versions.get((event.kind, event.entity_id), -1) + 1
                if event.version != expected:
                    self.broken.append(f"{event.kind} {event.entity_id}: event {event.version} follows {expected - 1}")
                versions[event.kind, event.entity_id] = event.version
            if versions.get(("job", job_id)) != job.version:
                self.broken.append(f"{job_id} is at version {job.version}, its log at {versions}")
            self.broken += [
                f"lease {le.id} is {le.phase}" for le in await self.store.job_leases(job_id) if le.phase != "closed"
            ]
        return Outcome(
            digest=digest.hexdigest(),
            broken=self.broken,
            statuses=statuses,
            virtual_s=asyncio.get_running_loop().time(),
            restarts=self.restarts,
            billed_microusd=self.billed,
            machines=len(self.cloud.known),
        )
