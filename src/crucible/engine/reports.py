"""What nodes say. A report is a whole picture that may be repeated or late; logs are durable before anything that
follows from them is recorded; what is only heard (beats, progress) is written late and together."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TypeVar

from crucible.core import attempt as attempts
from crucible.core.checkpoint import Whole, is_given_up, manifest_key
from crucible.core.cooling import rests
from crucible.core.step import advance
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context
from crucible.engine.crews import Succession
from crucible.engine.outputs import Outputs
from crucible.engine.progress import ProgressBook, Whose, course_of
from crucible.engine.stored import Place
from crucible.engine.usage import UsageBook, Whence
from crucible.model.attempt import Attempt, AttemptEvent, RankState
from crucible.model.change import changed
from crucible.model.errors import Conflict, Forbidden, NotFound, StaleVersion
from crucible.model.ids import AttemptId, Digest, JobId, NodeId, TaskId
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase
from crucible.model.outputs import Output
from crucible.model.record import Artifact, ArtifactType, Beat, Checkpoint
from crucible.model.task import Task, TaskKind
from crucible.model.tree import NodeWork, TaskTree
from crucible.ports.streams import LogLine, MetricPoint
from crucible.wire import agent as wire

TRIES = 10
MAX_NAME = 100  # of a figure
REMEMBERED = 20_000

Hide = Callable[[JobId, Sequence[str]], Awaitable[Sequence[str]]]
Succeed = Callable[[TaskTree, Attempt | None], AbstractAsyncContextManager[Succession]]

K = TypeVar("K")
V = TypeVar("V")

# What is written beside the news of a rank.
Beside = Checkpoint | Artifact | Output


@dataclass(frozen=True, slots=True)
class Here:
    """Whose a node is; it never changes."""

    node_id: NodeId
    lease: Lease
    job: Job


@dataclass(frozen=True, slots=True)
class Home:
    """Where an attempt belongs, of which a node speaks; it never changes."""

    node_id: NodeId
    whose: Whose
    task_index: int
    is_seated: bool
    lineage: JobId
    storage: str  # URI below which its agents store what they carry

    @property
    def task_id(self) -> TaskId:
        return self.whose.task_id

    @property
    def job_id(self) -> JobId:
        return self.whose.job_id

    @property
    def number(self) -> int:
        """Of the attempt."""
        return self.whose.attempt


class Reports:
    def __init__(
        self,
        context: Context,
        checkpoints: Checkpoints,
        outputs: Outputs,
        hidden: Hide,
        want_place: Callable[[], None],
        succession: Succeed,
    ) -> None:
        """`hidden` takes a job's secrets out of words about it; `want_place` hears that a seat is free which
        `succession` had nobody for."""
        self._succession = succession
        self._context = context
        self._checkpoints = checkpoints
        self._outputs = outputs
        self._hidden = hidden
        self._want_place = want_place
        self._nodes: OrderedDict[NodeId, Here] = OrderedDict()
        self._homes: OrderedDict[tuple[NodeId, str], Home] = OrderedDict()
        self._told: OrderedDict[tuple[str, int], wire.RankReport] = OrderedDict()
        self._saved: OrderedDict[tuple[str, int, str], bool] = OrderedDict()
        self._shards: OrderedDict[tuple[str, int, int], dict[int, wire.CheckpointReport]] = OrderedDict()
        self._beats: dict[NodeId, Beat] = {}
        self.progress = ProgressBook(context)
        self._flushing = asyncio.Lock()
        self._usage = UsageBook(context)

    async def take(self, node_id: NodeId, report: wire.Report) -> list[wire.StreamAck]:
        here = await self._here(node_id)
        self._context.vitals.count("reports")
        self.heard(node_id, report.usage)
        self._sample(here, report)
        acks = [await self._streams(here, batch) for batch in report.streams]
        for item in report.progress:
            await self.progress.note_progress((await self._home(here, item.attempt_id)).whose, item)
        for saved in report.checkpoints:
            await self._checkpoint(here, saved)
        ended = [rank for rank in report.ranks if rank.state == "exited" and self._is_news(rank)]
        for rank in ended:
            await self.progress.settle((await self._home(here, rank.attempt_id)).whose)
        if ended:
            await self.flush()  # the last progress is known before the end is
        await self._ranks(here, [rank for rank in report.ranks if self._is_news(rank)])
        if report.streams or report.progress:
            self._context.hub.notify(here.job.id)
        return acks

    def heard(self, node_id: NodeId, usage: Mapping[str, float] | None = None) -> None:
        now = self._context.clock.now()
        self._context.heard_at[node_id] = self._context.clock.monotonic()
        known = self._beats.get(node_id)
        figures = finite(usage, now.timestamp()) if usage else known.usage if known is not None else {}
        self._beats[node_id] = Beat(node_id=node_id, at=now, usage=figures)

    async def flush(self) -> None:
        """One transaction, however many nodes spoke. Whoever asks while one is written waits for it: what it was about
        to write may be in there."""
        async with self._flushing:
            await self._usage.flush()
            beats, progress = list(self._beats.values()), self.progress.news()
            self._beats = {}
            if not beats and not progress:
                return
            try:
                await self._context.store.heard(beats, progress)
            except BaseException:
                self.progress.take_back(progress)
                raise

    def _sample(self, here: Here, report: wire.Report) -> None:
        """Named after the first rank that runs there. A machine of many tasks is sampled as one of its crew."""
        whence = Whence(here.lease.task_id, 0, here.lease.index)
        home = self._homes.get((here.node_id, report.ranks[0].attempt_id)) if report.ranks else None
        if home is not None and home.task_id == here.lease.task_id:
            whence = Whence(home.task_id, home.number, min(one.rank for one in report.ranks))
        self._usage.note(here.node_id, whence, self._beats[here.node_id].usage)

    # --- whose words these are ----------------------------------------------------------------------

    async def _here(self, node_id: NodeId) -> Here:
        known = self._nodes.get(node_id)
        if known is not None:
            return known
        found = await self._context.store.node_work(node_id)
        if found.lease.phase is LeasePhase.CLOSED:
            raise NotFound("this node's lease is closed")
        return remember(self._nodes, node_id, Here(node_id, found.lease, found.job))

    async def _home(self, here: Here, attempt_id: str) -> Home:
        """Of an attempt of this node's task, or of one that has a seat on its machine."""
        known = self._homes.get((here.node_id, attempt_id))
        if known is not None:
            return known
        try:
            attempt = await self._context.store.attempt(AttemptId(attempt_id))
        except NotFound as error:
            raise Forbidden("no such attempt runs here") from error  # not 410: the node itself is still wanted
        if attempt.task_id != here.lease.task_id and here.lease.id not in attempt.leases:
            raise Forbidden("the attempt runs elsewhere")
        return remember(self._homes, (here.node_id, attempt_id), await self._home_of(here.node_id, here.job, attempt))

    def expect(self, known: NodeWork) -> None:
        """A node is about to hear what it should run: what it will say of that needs no look at where it belongs."""
        for task, attempt in known.at_work:
            if (known.node.id, attempt.id) not in self._homes:
                remember(self._homes, (known.node.id, attempt.id), self._made(known.node.id, known.job, task, attempt))

    async def _home_of(self, node_id: NodeId, job: Job, attempt: Attempt) -> Home:
        return self._made(node_id, job, await self._context.store.task(attempt.task_id), attempt)

    def _made(self, node_id: NodeId, job: Job, task: Task, attempt: Attempt) -> Home:
        course = course_of(self._context.spec_of(job))
        return Home(
            node_id=node_id,
            whose=Whose(task.id, job.id, attempt.id, attempt.number, course),
            task_index=task.index,
            is_seated=task.kind is TaskKind.SEATED,
            lineage=job.lineage,
            storage=self._context.storage_of(job, task.index).uri,
        )

    # --- streams ------------------------------------------------------------------------------------

    async def _streams(self, here: Here, batch: wire.StreamBatch) -> wire.StreamAck:
        home = await self._home(here, batch.attempt_id)
        streams, task, number, rank = self._context.streams, home.task_id, home.number, batch.rank
        self._context.failpoint("stream.append.before")
        if batch.log:
            await streams.append_log(task, [LogLine(number, rank, r.n, r.t, r.s, r.x, r.p) for r in batch.log])
        if batch.metrics:
            points = [MetricPoint(number, rank, r.n, r.t, r.step, numbers(r.v)) for r in batch.metrics]
            await streams.append_metrics(task, points)
            await self.progress.note_metrics(home.whose, points)
        self._context.failpoint("stream.append.after")
        return wire.StreamAck(
            attempt_id=batch.attempt_id,
            rank=rank,
            log=await streams.next_number(task, "log", number, rank),
            metrics=await streams.next_number(task, "metrics", number, rank),
        )

    # --- ranks and checkpoints ------------------------------------------------------------------------

    async def _ranks(self, here: Here, news: Sequence[wire.RankReport]) -> None:
        """Attempts side by side, each in transactions of its own, which then wait for the disk together."""
        by_attempt: dict[str, list[wire.RankReport]] = {}
        for report in news:
            by_attempt.setdefault(report.attempt_id, []).append(report)
        said = await asyncio.gather(
            *(self._ranks_of(here, some) for some in by_attempt.values()), return_exceptions=True
        )
        for trouble in said:
            if trouble is not None:
                raise trouble

    async def _ranks_of(self, here: Here, reports: Sequence[wire.RankReport]) -> None:
        """Of one attempt, one after the other."""
        for report in reports:
            await self._heard_of(await self._home(here, report.attempt_id), report)

    def _is_news(self, report: wire.RankReport) -> bool:
        """A heartbeat repeats what is known: it costs no query."""
        return report.state != "starting" and self._told.get((report.attempt_id, report.rank)) != report

    async def _heard_of(self, home: Home, report: wire.RankReport) -> None:
        said = await self._hidden(home.job_id, [report.reason or "", *report.last_lines])
        seen = attempts.RankReported(
            rank=report.rank,
            generation=report.generation,
            state=RankState(report.state),
            exit_code=report.exit_code,
            signal=report.signal,
            reason=None if report.reason is None else said[0],
            timed_out=report.timed_out,
            evicted=report.evicted,
            last_lines=tuple(said[1:]),
            is_checkpointing=report.is_checkpointing,
            outputs=None if report.outputs is None else Digest(report.outputs),
        )
        seen, left = await self._left(home, AttemptId(report.attempt_id), seen)
        await self._observe(home, AttemptId(report.attempt_id), seen, "report.rank", left)
        remember(self._told, (report.attempt_id, report.rank), report)

    async def _left(
        self, home: Home, attempt_id: AttemptId, seen: attempts.RankReported
    ) -> tuple[attempts.RankReported, tuple[Output, ...]]:
        """With the tree that it left, if it ended well. One that is not whole in storage is not accepted: then the rank
        has failed."""
        if seen.outputs is None:
            return seen, ()
        attempt = await self._context.store.attempt(attempt_id)
        is_news = any(rank.rank == seen.rank == 0 and rank.state is not RankState.EXITED for rank in attempt.ranks)
        if not is_news or seen.exit_code != 0 or seen.evicted:
            return replace(seen, outputs=None), ()
        try:
            return seen, (await self._outputs.left(home.job_id, home.task_index, seen.outputs),)
        except Conflict as error:
            reason = f"could not store the outputs: {error.message}"
            return replace(seen, outputs=None, exit_code=None, reason=reason), ()

    async def _checkpoint(self, here: Here, saved: wire.CheckpointReport) -> None:
        name = (saved.attempt_id, saved.step, saved.manifest_sha256)
        if name in self._saved:
            return
        home = await self._home(here, saved.attempt_id)
        if saved.slot is None:
            await self._save(home, saved)
        else:
            await self._save_shard(home, saved, saved.slot)
        remember(self._saved, name, True)

    async def _save_shard(self, home: Home, saved: wire.CheckpointReport, slot: str) -> None:
        """Of what an agent carried to storage; it counts when all shards are there. Those that another server heard of
        are found in storage."""
        attempt = await self._context.store.attempt(AttemptId(saved.attempt_id))
        if not self._checkpoints.is_own_slot(attempt, saved.rank, slot):
            raise Forbidden(f"the slot {slot} was not given to rank {saved.rank} of this attempt")
        if saved.uri != f"{home.storage}/{manifest_key(slot)}" or saved.shard >= saved.shards:
            raise Forbidden("the checkpoint is not where its slot is, or is no shard of it")
        name = (saved.attempt_id, saved.step, saved.shards)
        shards = remember(self._shards, name, {**self._shards.get(name, {}), saved.shard: saved})
        if len(shards) == saved.shards:
            size = sum(one.size_bytes for one in shards.values())
            await self._save(home, shards[0].model_copy(update={"size_bytes": size}))
        self._context.tidy_later(home.job_id, home.task_index)

    async def _save(self, home: Home, saved: wire.CheckpointReport) -> None:
        now = self._context.clock.now()
        checkpoint = Checkpoint(
            lineage=home.lineage,
            job_id=home.job_id,
            attempt_id=AttemptId(saved.attempt_id),
            step=saved.step,
            uri=saved.uri,
            size_bytes=saved.size_bytes,
            manifest_sha256=Digest(saved.manifest_sha256),
            created_at=now,
            metadata=saved.metadata,
            task_index=home.task_index,
        )
        artifact = Artifact(
            job_id=home.job_id,
            type=ArtifactType.CHECKPOINT,
            uri=saved.uri,
            created_at=now,
            meta={"step": saved.step, "size_bytes": saved.size_bytes},
        )
        seen = attempts.CheckpointSaved(saved.step)
        await self._observe(home, AttemptId(saved.attempt_id), seen, "report.checkpoint", (checkpoint, artifact))

    async def record(self, job: Job, attempt: Attempt, place: Place, whole: Whole) -> None:
        """One that is whole in storage and that no node could report."""
        manifest = await self._checkpoints.stored.read(place, whole.first)
        rank = attempt.ranks[0]
        saved = wire.CheckpointReport(
            attempt_id=attempt.id,
            rank=rank.rank,
            step=whole.step,
            uri=place.objects.address.below(whole.first.key).uri,
            size_bytes=whole.size_bytes,
            manifest_sha256=whole.first.sha256,
            metadata=dict(manifest.node.metadata),
            at_ms=manifest.node.created_ms,
        )
        await self._save(await self._home_of(rank.node_id, job, attempt), saved)

    async def last_words(self, tree: TaskTree) -> bool:
        """Takes in what ranks left in storage when no server heard them. True: there was something."""
        said = await self._checkpoints.last_words(tree)
        if tree.attempt is None:
            return False
        ranks = {rank.rank: rank for rank in tree.attempt.ranks}
        for report in said:
            home = await self._home_of(ranks[report.rank].node_id, tree.job, tree.attempt)
            await self.progress.settle(home.whose)
            await self.flush()
            await self._heard_of(home, report)
        return bool(said)

    async def _observe(
        self,
        home: Home,
        attempt_id: AttemptId,
        seen: attempts.Observation,
        label: str,
        records: Sequence[Beside] = (),
    ) -> None:
        for _ in range(TRIES):
            try:
                if home.is_seated:
                    await self._observe_seated(home, attempt_id, seen, label, records)
                else:
                    await self._observe_alone(home, attempt_id, seen, label, records)
            except StaleVersion:
                continue
            return
        raise StaleVersion(f"attempt {attempt_id} is changing too quickly; report again")

    async def _observe_alone(
        self,
        home: Home,
        attempt_id: AttemptId,
        seen: attempts.Observation,
        label: str,
        records: Sequence[Beside],
    ) -> None:
        context = self._context
        attempt = await context.store.attempt(attempt_id)
        after, changes = changed(attempt, await self._decide(home, attempt, seen), attempts.evolve)
        records = records if changes else apart(records)
        if not changes and not records:
            return
        await context.store.commit(changes, records, label=label)
        context.tell(home.job_id, home.task_id, changes)
        self._tell_nodes(home, attempt, after)

    async def _observe_seated(
        self,
        home: Home,
        attempt_id: AttemptId,
        seen: attempts.Observation,
        label: str,
        records: Sequence[Beside],
    ) -> None:
        """What it means for its task is written in the same breath: such tasks are many, and short."""
        context = self._context
        tree = await context.store.tree(home.task_id)
        if tree.attempt is None or tree.attempt.id != attempt_id:
            return
        view = context.view(tree.job, tree.leases)
        limits = attempts.Limits(view.spec.timeout, view.policy)
        after, news = changed(tree.attempt, attempts.decide(tree.attempt, seen, view.now, limits), attempts.evolve)
        more = advance(replace(tree, attempt=after), view)
        if is_given_up(after, more):
            more = ()  # it may have left word in storage: its own step looks for it
            context.wakes.wake("task", home.task_id)
        changes = (*news, *more)
        records = records if news else apart(records)
        if not changes and not records:
            return
        is_over = any(isinstance(change.after, Task) and change.after.attempt_id is None for change in changes)
        async with self._succession(tree, after if is_over else None) as next_one:
            resting = rests(changes, tree.orders, view.now, context.policy)
            written = (*records, *resting, *next_one.records)
            await context.store.commit((*changes, *next_one.changes), written, label=label)
        context.tell_seated(home.job_id, changes)
        self._tell_nodes(home, tree.attempt, after)
        if is_over and not next_one.changes:
            self._want_place()

    def _tell_nodes(self, home: Home, before: Attempt, after: Attempt) -> None:
        """A gang starts and stops together: what changes for all of them, all of them hear now."""
        nodes = {home.node_id} if after.phase is before.phase else {rank.node_id for rank in after.ranks}
        for node_id in nodes:
            self._context.hub.notify(node_id)

    async def _decide(self, home: Home, attempt: Attempt, seen: attempts.Observation) -> tuple[AttemptEvent, ...]:
        spec = self._context.spec_of(await self._context.store.job(home.job_id))
        limits = attempts.Limits(spec.timeout, self._context.policy)
        return attempts.decide(attempt, seen, self._context.clock.now(), limits)


def apart(records: Sequence[Beside]) -> Sequence[Beside]:
    """Without what counts only together with the exit that it belongs to."""
    return [record for record in records if not isinstance(record, Output)]


def finite(usage: Mapping[str, float], now_s: float) -> dict[str, float]:
    """Figures that are numbers. What the node's clock says becomes how far it is ahead."""
    figures = {name[:MAX_NAME]: value for name, value in usage.items() if math.isfinite(value)}
    clock_s = figures.pop("clock_s", None)
    return figures if clock_s is None else {**figures, "clock_ahead_s": round(clock_s - now_s, 3)}


def numbers(values: dict[str, float | None]) -> dict[str, float]:
    """JSON has no NaN: a null metric is one."""
    return {name: float("nan") if value is None else value for name, value in values.items()}


def remember(cache: "OrderedDict[K, V]", key: K, value: V) -> V:
    cache[key] = value
    if len(cache) > REMEMBERED:
        cache.popitem(last=False)
    return value
