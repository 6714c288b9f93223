"""The engine's own reconcilers, stepped by hand over a database in memory: a server that dies at any named point and
forgets all but its rows, nodes that run what they were told, and the shop they were bought in."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from crucible.engine.context import Context
from crucible.engine.engine import Engine
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.planner import NO_KNOWLEDGE
from crucible.engine.poller import Poller
from crucible.engine.shelf import Shelf
from crucible.engine.wakes import Key, Kind, Wakes
from crucible.model.account import Principal, Role
from crucible.model.attempt import Attempt
from crucible.model.change import Change, Entity, Event
from crucible.model.errors import Busy, Conflict, Forbidden, NotFound, ProviderError, StaleClaim, StaleVersion
from crucible.model.ids import JobId, MachineId, TokenId, UserId
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase, Node, Order
from crucible.model.ledger import Posting, Usage
from crucible.model.offer import Offer
from crucible.model.policy import Policy
from crucible.model.record import Record
from crucible.model.storage import parse
from crucible.model.task import Task
from crucible.ports.store import Due, Store
from crucible.store import open_store
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.specimens import EVOLVE
from crucible.testing.virtual import SeededIds, SeededRandom
from crucible.wire import agent as wire
from pretend_catalog import pretend_catalog
from property.shop import EPOCH, HandClock, Shop, Thing

ADMIN = Principal(UserId("admin"), Role.ADMIN, TokenId("t"))
POLICY = Policy()
DUE_BATCH = 1000
# Wake-ups beget wake-ups; so many without rest is a circle.
MOST_WAKES = 2000

SPEC = """\
job:
  command: [train]
  resources: {{gpus: {gpus}, max_gpus_per_node: 2}}
  retry: {{limit: {limit}, delay: 10s}}
  constraints: {{allow_spot: true}}
  framework: pytorch
  execution: {{{execution}}}
"""
ELASTIC = "min_nodes: 1, max_nodes: 3"


class Died(BaseException):
    """The server ends here, as with kill -9."""


@dataclass
class Diary:
    """Every committed change, in order, and what the rows are by them."""

    rows: dict[tuple[type, str], Entity] = field(default_factory=dict)
    folded: dict[tuple[type, str], Entity] = field(default_factory=dict)  # its first state and all its events
    log: dict[tuple[type, str], list[Event]] = field(default_factory=dict)
    usages: dict[tuple[str, str, datetime], Usage] = field(default_factory=dict)
    postings: dict[str, Posting] = field(default_factory=dict)
    rewritten: list[str] = field(default_factory=list)  # what must never change, and did

    def note(self, changes: Sequence[Change], records: Sequence[Record]) -> None:
        for change in changes:
            key = (type(change.after), change.after.id)
            if change.before is None:
                self.folded[key] = change.after
                self.log[key] = []
            else:
                self.folded[key] = reduce(EVOLVE[key[0]], change.events, self.folded[key])
                self.log[key] += change.events
            self.rows[key] = change.after
        for record in records:
            if isinstance(record, Usage):
                self._note_usage(record)
            elif isinstance(record, Posting) and self.postings.setdefault(record.id, record) != record:
                self.rewritten.append(f"{self.postings[record.id]} was written again as {record}")

    def _note_usage(self, usage: Usage) -> None:
        key = (usage.machine_id, usage.rate.kind, usage.from_at)
        before = self.usages.get(key)
        if before is not None and before != usage and before.to_at is not None:
            self.rewritten.append(f"{before} was closed and is now {usage}")
        self.usages[key] = usage

    def money(self) -> dict[tuple[str, str], list[Usage]]:
        """The stretches of each machine and kind, oldest first."""
        found: dict[tuple[str, str], list[Usage]] = defaultdict(list)
        for key in sorted(self.usages):
            found[key[:2]].append(self.usages[key])
        return found

    def all(self, kind: type) -> list[Any]:
        return [row for (type_, _), row in self.rows.items() if type_ is kind]


class WatchedStore:
    """The real store; what it commits is noted."""

    def __init__(self, store: Store, seen: Diary) -> None:
        self._store = store
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def commit(self, changes: Sequence[Change], records: Sequence[Any] = (), **options: Any) -> None:
        await self._noting(changes, records, self._store.commit(changes, records, **options))

    async def submit(self, changes: Sequence[Change], **options: Any) -> JobId:
        return await self._noting(changes, (), self._store.submit(changes, **options))

    async def _noting(self, changes: Sequence[Change], records: Sequence[Any], work: Awaitable[Any]) -> Any:
        try:
            result = await work
        except Died as death:
            if str(death).endswith(".after"):
                self._seen.note(changes, records)
            raise
        self._seen.note(changes, records)
        return result


@dataclass
class PretendRank:
    launch: wire.Launch
    is_told_to_stop: bool = False
    told_at: float = 0.0
    exit_code: int | None = None
    signal: int | None = None

    @property
    def runs(self) -> bool:
        return self.exit_code is None and self.signal is None

    def report(self) -> wire.RankReport:
        return wire.RankReport(
            attempt_id=self.launch.attempt_id,
            generation=self.launch.generation,
            rank=self.launch.rank,
            state="started" if self.runs else "exited",
            exit_code=self.exit_code,
            signal=self.signal,
        )


@dataclass
class Agent:
    """What runs on a machine as long as it lives. It obeys what it hears; cut off, it goes on with what it has."""

    thing: Thing
    is_cut_off: bool = False
    is_retired: bool = False
    key: str = ""
    seen: str | None = None
    ranks: dict[tuple[str, int], PretendRank] = field(default_factory=dict)

    @property
    def running(self) -> list[PretendRank]:
        return [rank for rank in self.ranks.values() if rank.runs] if self.thing.is_alive else []


class LifeWorld:
    def __init__(self, *, has_tokens: bool, counts_stock: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = HandClock()
        self.storage = FakeStorage(now=self.clock.now)
        self.shop = Shop(self.clock, has_tokens, counts_stock, self._purchase, self._delete)
        catalog = pretend_catalog(self.shop.name, self.shop.region, EPOCH)
        self._knowledge = NO_KNOWLEDGE if counts_stock else catalog
        self.seen = Diary()
        self.agents: dict[MachineId, Agent] = {}
        self.broken: list[str] = []
        self.limits: dict[JobId, int] = {}
        # What the user's programs did, by (task, attempt number): the reference for how a job may end.
        self.exits: dict[tuple[str, int], dict[int, int]] = {}
        self.worlds: dict[tuple[str, int], int] = {}
        self.failed_by_user: set[tuple[str, int]] = set()
        self.ended: dict[tuple[type, str], Entity] = {}  # rows as they were when they ended
        self.told_ends: set[MachineId] = set()  # machines whose end the server has been told of
        self.dies_at: str | None = None
        self.deaths = 0
        self._ids, self._random = SeededIds(), SeededRandom(0)
        self.loop.run_until_complete(self._open())
        self.start()

    async def _open(self) -> None:
        opened = await open_store("sqlite://", clock_monotonic=self.clock.monotonic, failpoint=self._failpoint)
        self.store = WatchedStore(opened, self.seen)

    def close(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()

    # --- the server ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Nothing is known but what is in the rows."""
        self.context = Context(
            store=self.store,  # type: ignore[arg-type]
            streams=None,  # type: ignore[arg-type] -- nobody prints here
            sellers={(self.shop.name, self.shop.region): self.shop},
            clock=self.clock,
            ids=self._ids,
            random=self._random,
            keys=Keys(b"secret"),
            hub=Hub(self.clock),
            wakes=Wakes(),
            policy=POLICY,
            server_id=f"server-{self.deaths}",
            url="http://server",
            checkpoint_root="file:///checkpoints",
            storage=self.storage,
            storage_root=parse("s3://kept/checkpoints"),
            failpoint=self._failpoint,
        )
        self.engine = Engine(self.context, None, self._knowledge)  # type: ignore[arg-type] -- nobody ships code here
        self.poller = Poller(self.context, self.shop, self.engine.placer.want)

    def _failpoint(self, name: str) -> None:
        if name == self.dies_at:
            self.dies_at = None
            raise Died(name)

    def do(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """As a worker of the engine does it: trouble is logged and found again. None after a death."""

        async def done() -> Any:
            try:
                return await work()
            except (Conflict, NotFound, ProviderError, StaleClaim, StaleVersion):
                return None
            except Died as death:
                return death

        answer = self.loop.run_until_complete(done())
        if isinstance(answer, Died):
            self.restart()
            return None
        return answer

    def restart(self) -> None:
        self.deaths += 1
        self.start()

    def submit(self, gpus: int, limit: int, is_elastic: bool) -> None:
        text = SPEC.format(gpus=gpus, limit=limit, execution=ELASTIC if is_elastic else "")
        job = self.do(lambda: self.engine.service.submit(ADMIN, name="job", spec_yaml=text))
        if job is not None:
            self.limits[job.id] = limit

    def is_elastic(self, job_id: JobId) -> bool:
        job = self.seen.rows[Job, job_id]
        return isinstance(job, Job) and ELASTIC in job.spec_yaml

    def wish(self, job_id: JobId, wish: str) -> None:
        service = self.engine.service
        if wish == "cancel":
            self.do(lambda: service.cancel(ADMIN, job_id))
        elif wish == "hold":
            self.do(lambda: service.hold(ADMIN, job_id, None))
        else:
            self.do(lambda: service.release(ADMIN, job_id))

    def step(self, kind: Kind, row_id: str) -> None:
        self.do(lambda: self.engine.step(Key(kind, row_id)))

    def place(self) -> None:
        async def cycle() -> None:
            claim = await self.store.claim("cycle", self.context.server_id, self.context.claim_ttl)
            if claim is not None:
                try:
                    await self.engine.placer.cycle(claim)
                finally:
                    await self.store.release(claim)

        self.do(cycle)

    def sweep(self) -> None:
        if self.do(self.poller.sweep) is not None:
            self.told_ends |= self.shop.shown_ends

    def look_for_due(self) -> None:
        async def look() -> None:
            due = await self.store.due(self.clock.now(), DUE_BATCH)
            for kind, ids in (("task", due.tasks), ("order", due.orders), ("job", due.jobs)):
                for row_id in ids:
                    self.context.wakes.wake(kind, row_id)

        self.do(look)

    def work_off(self, most: int = MOST_WAKES) -> int:
        """What is awake is looked at, in order. Returns how much was done."""
        done = 0
        while not self.context.wakes.is_idle and done < most:
            wakes = self.context.wakes
            key = self.loop.run_until_complete(wakes.next())
            self.do(lambda key=key: self.engine.step(key))
            wakes.done(key)
            done += 1
        return done

    async def offers(self) -> Sequence[Offer]:
        return await Shelf(self.context).offers()

    async def looked_after(self) -> tuple[Due, set[str], set[str]]:
        """The rows that some query of the engine finds, sooner or later."""
        later = self.clock.now() + timedelta(days=1000)
        waiting = {tree.task.id for tree in await self.store.waiting(later, DUE_BATCH)}
        return await self.store.due(later, DUE_BATCH), waiting, set(await self.store.stranded(DUE_BATCH))

    def differences(self) -> list[str]:
        """Rows of the database that are not what was committed."""
        load = {
            Job: self.store.job,
            Task: self.store.task,
            Attempt: self.store.attempt,
            Lease: self.store.lease,
            Node: self.store.node,
            Order: lambda order_id: self.store.order(order_id),
        }
        found = []
        for (kind, row_id), row in self.seen.rows.items():
            stored = self.loop.run_until_complete(load[kind](row_id))
            stored = stored[0] if kind is Order else stored
            if stored != row:
                found.append(f"{row_id} is stored as {stored}, committed was {row}")
        return found

    # --- the nodes ----------------------------------------------------------------------------------

    def boot(self) -> None:
        """Machines that were made since."""
        for thing in self.shop.things.values():
            self.agents.setdefault(thing.id, Agent(thing))

    def talk(self, agent: Agent) -> None:
        """One exchange: enrol, or fetch work, then report."""
        if not agent.thing.is_alive or agent.is_cut_off or agent.is_retired:
            return
        if not agent.key:
            self._enrol(agent)
        else:
            self._report(agent)
            self._fetch(agent)
            self.do(self.engine.gateway.flush)  # as the engine does every second

    def _enrol(self, agent: Agent) -> None:
        message = wire.Enrol(
            protocol=wire.PROTOCOL,
            order_id=agent.thing.order_id,
            machine_id=agent.thing.id,
            agent_id=f"agent-{agent.thing.id}",
            boot_id="boot",
            agent_version="model",
            address="127.0.0.1",
            rendezvous_port=29500,
        )
        answer = self._ask(agent, lambda: self.engine.gateway.enrol(agent.thing.token, message))
        if answer is not None:
            agent.key = answer.node_key

    def _fetch(self, agent: Agent) -> None:
        reply = self._ask(agent, lambda: self.engine.gateway.work(agent.key, agent.seen, 0.0))
        if reply is not None and not reply.unchanged:
            agent.seen = reply.version
            self._apply(agent, reply)

    def _report(self, agent: Agent) -> None:
        report = wire.Report(boot_id="boot", ranks=[rank.report() for rank in agent.ranks.values()])
        self._ask(agent, lambda: self.engine.gateway.report(agent.key, report))

    def _ask(self, agent: Agent, work: Callable[[], Awaitable[Any]]) -> Any:
        async def asked() -> Any:
            try:
                return await work()
            except (Busy, Forbidden):
                return None
            except NotFound:
                self._retire(agent)

        return self.do(asked)

    def _retire(self, agent: Agent) -> None:
        """Nobody wants this node any more: it ends what it runs."""
        agent.is_retired = True
        agent.ranks.clear()

    def _apply(self, agent: Agent, reply: wire.WorkReply) -> None:
        wanted = {(w.launch.attempt_id, w.launch.rank): w for w in reply.ranks}
        for name in [name for name in agent.ranks if name not in wanted]:
            del agent.ranks[name]
        for name, work in wanted.items():
            known = agent.ranks.get(name)
            if known is None:
                known = agent.ranks[name] = PretendRank(work.launch, signal=15 if work.stop else None)
                self._note_world(work.launch)
            elif work.stop and not known.is_told_to_stop:
                known.is_told_to_stop, known.told_at = True, self.clock.monotonic()

    def _note_world(self, launch: wire.Launch) -> None:
        self.worlds[launch.task_id, launch.number] = int(launch.env["WORLD_SIZE"])

    def exit_rank(self, rank: PretendRank, code: int) -> None:
        """The user's program ends by itself."""
        rank.exit_code = code
        name = (rank.launch.task_id, rank.launch.number)
        self.exits.setdefault(name, {})[rank.launch.rank] = code
        if code != 0:
            self.failed_by_user.add(name)

    def pass_time(self, seconds: float) -> None:
        self.clock.passed += seconds
        for agent in self.agents.values():
            for rank in agent.running:
                if rank.is_told_to_stop and self.clock.monotonic() - rank.told_at >= rank.launch.stop_grace_s:
                    rank.signal = 9

    # --- what the shop sees -------------------------------------------------------------------------

    def _purchase(self, order: Order) -> None:
        row = self.seen.rows.get((Order, order.id))
        if row is None:
            self.broken.append(f"{order.id} was bought before it was written down")
        elif isinstance(row, Order) and (row.body != order.body or row.is_settled):
            self.broken.append(f"the call for {order.id} is not the one that was written down: {row}")

    def _delete(self, machine: MachineId) -> None:
        if machine not in self.shop.things:
            self.broken.append(f"{machine} is to be deleted, and nobody ever sold it to us")
        kept = [le for le in self.seen.all(Lease) if le.machine_id == machine and le.phase is LeasePhase.ACTIVE]
        self.broken += [f"{machine} is deleted while {lease.id} is active" for lease in kept]
