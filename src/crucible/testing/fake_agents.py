"""Agents in memory for the virtual loop: they speak the messages of the wire to a Gateway and run pretend ranks; how
long and how well, the environment of the spec tells (SIM_SECONDS, SIM_FAILS, SIM_CHECKPOINT_EVERY, SIM_LINES). With
SIM_STEPS they make a step a second, save now and then and when they are told to stop, and go on from the newest."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from crucible.model.errors import NotFound, PlatformError
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Machine, Order
from crucible.ports.clock import Clock
from crucible.testing.fake_cloud import Faults
from crucible.wire import agent as wire

T = TypeVar("T")

REPORT_S = 10.0
RETRY_S = 1.0


class Server(Protocol):
    """The agent's side of a Gateway."""

    async def enrol(self, token: str, message: wire.Enrol) -> wire.Enrolled: ...
    async def work(self, key: str, seen: str | None, wait_s: float) -> wire.WorkReply: ...
    async def report(self, key: str, report: wire.Report) -> wire.ReportReply: ...


class Unreachable(Exception):
    """The server did not answer."""


@dataclass(kw_only=True)
class PretendRank:
    """One process that writes lines and checkpoints until its time is over."""

    launch: wire.Launch
    started_at: float
    state: str = "started"
    exit_code: int | None = None
    signal: int | None = None
    lines: int = 0
    acked: int = 0
    acked_metrics: int = 0
    checkpoints: int = 0
    stop_at: float | None = None
    is_evicted: bool = False
    first_step: int = 0
    saved: list[int] = field(default_factory=list)

    def live(self, now: float) -> None:
        if self.state != "started":
            return
        env, age = self.launch.env, now - self.started_at
        self.lines = min(int(age) + 1, int(env.get("SIM_LINES", "10")))
        every = float(env.get("SIM_CHECKPOINT_EVERY", "0"))
        self.checkpoints = int(age / every) if every and self.launch.rank == 0 else 0
        if "SIM_STEPS" in env:
            self._train(now, int(env["SIM_STEPS"]), every)
            return
        fails = self.launch.number < int(env.get("SIM_FAILS", "0"))
        if age >= float(env.get("SIM_SECONDS", "10")):
            self.state, self.exit_code = "exited", 1 if fails else 0
        if self.stop_at is not None and now >= self.stop_at:
            self.state, self.signal = "exited", 15

    def _train(self, now: float, steps: int, every: float) -> None:
        until = now if self.stop_at is None else min(now, self.stop_at)
        step = min(steps, self.first_step + int(until - self.started_at))
        self.checkpoints = 0
        if every and self.launch.rank == 0:
            self.saved = [each for each in range(self.first_step + 1, step + 1) if each % every == 0]
        if step < steps and (self.stop_at is None or now < self.stop_at):
            return
        self.state, self.exit_code = "exited", 0 if step == steps else 143
        if self.launch.rank == 0 and step > self.first_step and step not in self.saved:
            self.saved.append(step)

    def report(self) -> wire.RankReport:
        return wire.RankReport(
            attempt_id=self.launch.attempt_id,
            generation=self.launch.generation,
            rank=self.launch.rank,
            state="exited" if self.state == "exited" else "started",
            exit_code=self.exit_code,
            signal=self.signal,
            evicted=self.is_evicted,
            reason="the machine is taken back" if self.is_evicted else None,
            log_lines=self.lines,
        )

    def batch(self) -> wire.StreamBatch | None:
        """What it wrote since it was last acknowledged."""
        if self.acked >= self.lines:
            return None
        records = [wire.LogRecord(n=n, t=n, s="out", x=f"line {n}") for n in range(self.acked, self.lines)]
        return wire.StreamBatch(
            attempt_id=self.launch.attempt_id, number=self.launch.number, rank=self.launch.rank, log=records
        )

    def checkpoint_reports(self) -> list[wire.CheckpointReport]:
        numbered = (self.launch.number * 1000 + n for n in range(1, self.checkpoints + 1))
        return [self.checkpoint(step) for step in (*numbered, *self.saved)]

    def checkpoint(self, step: int) -> wire.CheckpointReport:
        return wire.CheckpointReport(
            attempt_id=self.launch.attempt_id,
            rank=self.launch.rank,
            step=step,
            uri=f"{self.launch.checkpoints}/step-{step}",
            size_bytes=1,
            manifest_sha256=f"{step:064x}",
            at_ms=0,
        )

    def progress(self) -> wire.ProgressReport | None:
        return None

    def usage(self) -> dict[str, float]:
        """Of the machine that it runs on."""
        return {}


def a_rank(launch: wire.Launch, now: float, first_step: int) -> PretendRank:
    return PretendRank(launch=launch, started_at=now, first_step=first_step)


@dataclass(kw_only=True)
class Fleet:
    """Every agent of the pretend cloud, and a watch over what must never happen."""

    clock: Clock
    random: random.Random
    faults: Faults
    server: Callable[[], Server | None]  # None: down
    play: Callable[[wire.Launch, float, int], PretendRank] = a_rank  # by what is launched, when, and from which step on
    report_s: tuple[float, float] = (1.0, REPORT_S)  # between two reports of a node
    poll_s: float = 20.0  # that a node waits for news
    agents: dict[MachineId, "asyncio.Task[None]"] = field(default_factory=dict)
    running: dict[tuple[str, int], str] = field(default_factory=dict)  # (task, rank) -> attempt
    broken: list[str] = field(default_factory=list)
    noticed: dict[MachineId, float] = field(default_factory=dict)  # machines that will be taken, and what they had left
    newest: dict[str, int] = field(default_factory=dict)  # task -> step in storage

    def boot(self, machine: Machine, order: Order, boot: Boot) -> None:
        agent = FakeAgent(fleet=self, machine=machine, order=order, boot=boot)
        self.agents[machine.id] = asyncio.get_running_loop().create_task(agent.run())

    def end(self, machine: MachineId) -> None:
        """The machine is gone, and everything on it."""
        task = self.agents.pop(machine, None)
        if task is not None:
            task.cancel()

    def notice(self, machine: MachineId, left_s: float) -> None:
        self.noticed[machine] = left_s

    def rank_began(self, launch: wire.Launch) -> None:
        place = (launch.task_id, launch.rank)
        other = self.running.get(place)
        if other is not None and other != launch.attempt_id:
            self.broken.append(f"two live copies of task {place}: {other} and {launch.attempt_id}")
        self.running[place] = launch.attempt_id

    def rank_ended(self, launch: wire.Launch) -> None:
        if self.running.get((launch.task_id, launch.rank)) == launch.attempt_id:
            del self.running[launch.task_id, launch.rank]


@dataclass(kw_only=True)
class FakeAgent:
    fleet: Fleet
    machine: Machine
    order: Order
    boot: Boot
    ranks: dict[tuple[str, int], PretendRank] = field(default_factory=dict)
    seen: str | None = None
    key: str = ""

    async def run(self) -> None:
        try:
            await self.fleet.clock.sleep(self.fleet.random.uniform(1, 20))
            self.key = (await self._until_answered(self._enrol)).node_key
            async with asyncio.TaskGroup() as both:
                both.create_task(self._poll())
                both.create_task(self._report())
        except* (NotFound, _Retired):
            pass
        finally:
            for rank in self.ranks.values():
                self.fleet.rank_ended(rank.launch)

    async def _enrol(self, server: Server) -> wire.Enrolled:
        message = wire.Enrol(
            protocol=wire.PROTOCOL,
            order_id=self.order.id,
            machine_id=self.machine.id,
            agent_id=f"agent-{self.machine.id}",
            boot_id="boot",
            agent_version="sim",
            address="127.0.0.1",
            rendezvous_port=29500,
        )
        return await server.enrol(self.boot.enrolment_token, message)

    async def _poll(self) -> None:
        while True:
            reply = await self._until_answered(lambda server: server.work(self.key, self.seen, self.fleet.poll_s))
            if reply.unchanged:
                continue
            self.seen = reply.version
            self._apply(reply)
            if reply.retire:
                raise _Retired

    def _apply(self, reply: wire.WorkReply) -> None:
        now = self.fleet.clock.monotonic()
        wanted = {(w.launch.attempt_id, w.launch.rank): w for w in reply.ranks}
        for name in [name for name in self.ranks if name not in wanted]:
            self.fleet.rank_ended(self.ranks.pop(name).launch)
        for name, work in wanted.items():
            if name not in self.ranks and not work.stop and self.machine.id not in self.fleet.noticed:
                first = self.fleet.newest.get(work.launch.task_id, 0)
                self.ranks[name] = self.fleet.play(work.launch, now, first)
                self.fleet.rank_began(work.launch)
            elif work.stop and name in self.ranks and self.ranks[name].stop_at is None:
                self.ranks[name].stop_at = now + self.fleet.random.uniform(0, work.launch.stop_grace_s)

    async def _report(self) -> None:
        while True:
            self._give_back()
            for rank in self.ranks.values():
                rank.live(self.fleet.clock.monotonic())
                task = rank.launch.task_id
                self.fleet.newest[task] = max([self.fleet.newest.get(task, 0), *rank.saved])
                if rank.state == "exited":
                    self.fleet.rank_ended(rank.launch)
            report = self._picture()
            reply = await self._until_answered(partial(self._deliver, report))
            for ack in reply.acks:
                known = self.ranks.get((ack.attempt_id, ack.rank))
                if known is not None:
                    known.acked, known.acked_metrics = ack.log, ack.metrics
            await self.fleet.clock.sleep(self.fleet.random.uniform(*self.fleet.report_s))

    def _give_back(self) -> None:
        """The machine goes: its ranks have two thirds of what is left, as with a real agent."""
        left_s = self.fleet.noticed.get(self.machine.id)
        for rank in self.ranks.values() if left_s is not None else ():
            if rank.state == "started" and not rank.is_evicted:
                rank.is_evicted = True
                grace_s = min(rank.launch.stop_grace_s, 2 * (left_s or 0.0) / 3)
                mine = self.fleet.clock.monotonic() + self.fleet.random.uniform(0, grace_s)
                rank.stop_at = min(mine, rank.stop_at or mine)

    async def _deliver(self, report: wire.Report, server: Server) -> wire.ReportReply:
        return await server.report(self.key, report)

    def _picture(self) -> wire.Report:
        ranks = list(self.ranks.values())
        return wire.Report(
            boot_id="boot",
            ranks=[r.report() for r in ranks],
            streams=[batch for rank in ranks if (batch := rank.batch()) is not None],
            checkpoints=[saved for rank in ranks for saved in rank.checkpoint_reports()],
            progress=[progress for rank in ranks if (progress := rank.progress()) is not None],
            usage={name: figure for rank in ranks for name, figure in rank.usage().items()},
        )

    async def _until_answered(self, call: Callable[[Server], Awaitable[T]]) -> T:
        """Try for ever, as an agent does; a lost reply means that the server may have acted."""
        fleet = self.fleet
        while True:
            try:
                if fleet.random.random() < fleet.faults.server_unreachable:
                    raise Unreachable
                server = fleet.server()
                if server is None:
                    raise Unreachable
                answer = await call(server)
                if fleet.random.random() < fleet.faults.reply_lost:
                    raise Unreachable
                return answer
            except NotFound:
                raise
            except (Unreachable, PlatformError):
                await fleet.clock.sleep(fleet.random.uniform(0.1, RETRY_S))


class _Retired(Exception):
    """The server wants nothing more of this machine."""
