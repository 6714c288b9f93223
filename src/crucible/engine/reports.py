"""What nodes say. A report is a whole picture that may be repeated or late; logs are durable before anything that
follows from them is recorded; what is only heard (beats, progress) is written late and together."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from crucible.core import attempt as attempts
from crucible.core.checkpoint import Whole, manifest_key
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context
from crucible.engine.stored import Place
from crucible.model.attempt import Attempt, AttemptEvent, RankState
from crucible.model.change import changed
from crucible.model.errors import Forbidden, NotFound, StaleVersion
from crucible.model.ids import AttemptId, Digest, JobId, NodeId, TaskId
from crucible.model.job import Job
from crucible.model.lease import LeasePhase
from crucible.model.record import Artifact, ArtifactType, Beat, Checkpoint, Progress
from crucible.model.tree import TaskTree
from crucible.ports.streams import LogLine, MetricPoint
from crucible.wire import agent as wire

TRIES = 10
REMEMBERED = 20_000

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Home:
    """Where a node belongs; it never changes."""

    node_id: NodeId
    task_id: TaskId
    job_id: JobId
    lineage: JobId
    storage: str  # URI below which its agents store what they carry


class Reports:
    def __init__(self, context: Context, checkpoints: Checkpoints) -> None:
        self._context = context
        self._checkpoints = checkpoints
        self._homes: OrderedDict[NodeId, Home] = OrderedDict()
        self._numbers: OrderedDict[AttemptId, tuple[TaskId, int]] = OrderedDict()
        self._told: OrderedDict[tuple[str, int], wire.RankReport] = OrderedDict()
        self._saved: OrderedDict[tuple[str, int, str], bool] = OrderedDict()
        self._shards: OrderedDict[tuple[str, int, int], dict[int, wire.CheckpointReport]] = OrderedDict()
        self._beats: dict[NodeId, Beat] = {}
        self._progress: dict[TaskId, Progress] = {}

    async def take(self, node_id: NodeId, report: wire.Report) -> list[wire.StreamAck]:
        home = await self._home(node_id)
        self.heard(node_id, report.usage)
        acks = [await self._streams(home, batch) for batch in report.streams]
        for item in report.progress:
            await self._note_progress(home, item)
        for saved in report.checkpoints:
            await self._checkpoint(home, saved)
        if any(rank.state == "exited" for rank in report.ranks):
            await self.flush()  # the last progress is known before the end is
        for rank in report.ranks:
            await self._rank(home, rank)
        if report.streams or report.progress:
            self._context.hub.notify(home.job_id)
        return acks

    def heard(self, node_id: NodeId, usage: Mapping[str, float] | None = None) -> None:
        self._context.heard_at[node_id] = self._context.clock.monotonic()
        self._beats[node_id] = Beat(node_id=node_id, at=self._context.clock.now(), usage=usage or {})

    async def flush(self) -> None:
        """One transaction, however many nodes spoke."""
        beats, progress = list(self._beats.values()), list(self._progress.values())
        self._beats, self._progress = {}, {}
        if beats or progress:
            await self._context.store.heard(beats, progress)

    # --- whose words these are ----------------------------------------------------------------------

    async def _home(self, node_id: NodeId) -> Home:
        known = self._homes.get(node_id)
        if known is not None:
            return known
        _, lease, job, _ = await self._context.store.node_work(node_id)
        if lease.phase is LeasePhase.CLOSED:
            raise NotFound("this node's lease is closed")
        return remember(self._homes, node_id, await self._home_of(node_id, job, lease.task_id))

    async def _home_of(self, node_id: NodeId, job: Job, task_id: TaskId) -> Home:
        index = (await self._context.store.task(task_id)).index
        return Home(node_id, task_id, job.id, job.lineage, self._context.storage_of(job, index).uri)

    async def _number(self, home: Home, attempt_id: str) -> int:
        """The attempt's number, if it is an attempt of this node's task."""
        known = self._numbers.get(AttemptId(attempt_id))
        if known is None:
            try:
                attempt = await self._context.store.attempt(AttemptId(attempt_id))
            except NotFound as error:
                raise Forbidden("no such attempt runs here") from error  # not 410: the node itself is still wanted
            known = remember(self._numbers, attempt.id, (attempt.task_id, attempt.number))
        if known[0] != home.task_id:
            raise Forbidden("the attempt runs elsewhere")
        return known[1]

    # --- streams ------------------------------------------------------------------------------------

    async def _streams(self, home: Home, batch: wire.StreamBatch) -> wire.StreamAck:
        number = await self._number(home, batch.attempt_id)
        streams, task, rank = self._context.streams, home.task_id, batch.rank
        self._context.failpoint("stream.append.before")
        if batch.log:
            await streams.append_log(task, [LogLine(number, rank, r.n, r.t, r.s, r.x, r.p) for r in batch.log])
        if batch.metrics:
            points = [MetricPoint(number, rank, r.n, r.t, r.step, numbers(r.v)) for r in batch.metrics]
            await streams.append_metrics(task, points)
            self._note_metrics(home, batch.attempt_id, points[-1])
        self._context.failpoint("stream.append.after")
        return wire.StreamAck(
            attempt_id=batch.attempt_id,
            rank=rank,
            log=await streams.next_number(task, "log", number, rank),
            metrics=await streams.next_number(task, "metrics", number, rank),
        )

    # --- ranks and checkpoints ------------------------------------------------------------------------

    async def _rank(self, home: Home, report: wire.RankReport) -> None:
        """A heartbeat repeats what is known: it costs no query."""
        name = (report.attempt_id, report.rank)
        if report.state == "starting" or self._told.get(name) == report:
            return
        await self._number(home, report.attempt_id)
        seen = attempts.RankReported(
            rank=report.rank,
            generation=report.generation,
            state=RankState(report.state),
            exit_code=report.exit_code,
            signal=report.signal,
            reason=report.reason,
            timed_out=report.timed_out,
            evicted=report.evicted,
            last_lines=tuple(report.last_lines),
            is_checkpointing=report.is_checkpointing,
        )
        await self._observe(home, AttemptId(report.attempt_id), seen, "report.rank")
        remember(self._told, name, report)

    async def _checkpoint(self, home: Home, saved: wire.CheckpointReport) -> None:
        name = (saved.attempt_id, saved.step, saved.manifest_sha256)
        if name in self._saved:
            return
        await self._number(home, saved.attempt_id)
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
        self._context.tidy_later(home.job_id)

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
        await self._save(await self._home_of(rank.node_id, job, attempt.task_id), saved)

    async def last_words(self, tree: TaskTree) -> bool:
        """Takes in what ranks left in storage when no server heard them. True: there was something."""
        said = await self._checkpoints.last_words(tree)
        ranks = {rank.rank: rank for rank in tree.attempt.ranks} if tree.attempt else {}
        for report in said:
            home = await self._home_of(ranks[report.rank].node_id, tree.job, tree.task.id)
            await self._rank(home, report)
        return bool(said)

    async def _observe(
        self,
        home: Home,
        attempt_id: AttemptId,
        seen: attempts.Observation,
        label: str,
        records: Sequence[Checkpoint | Artifact] = (),
    ) -> None:
        context = self._context
        for _ in range(TRIES):
            attempt = await context.store.attempt(attempt_id)
            after, changes = changed(attempt, await self._decide(home, attempt, seen), attempts.evolve)
            if not changes and not records:
                return
            try:
                await context.store.commit(changes, records, label=label)
            except StaleVersion:
                continue
            context.tell(home.job_id, home.task_id, changes)
            self._tell_nodes(home, attempt, after)
            return
        raise StaleVersion(f"attempt {attempt_id} is changing too quickly; report again")

    def _tell_nodes(self, home: Home, before: Attempt, after: Attempt) -> None:
        """A gang starts and stops together: what changes for all of them, all of them hear now."""
        nodes = {home.node_id} if after.phase is before.phase else {rank.node_id for rank in after.ranks}
        for node_id in nodes:
            self._context.hub.notify(node_id)

    async def _decide(self, home: Home, attempt: Attempt, seen: attempts.Observation) -> tuple[AttemptEvent, ...]:
        spec = self._context.spec_of(await self._context.store.job(home.job_id))
        limits = attempts.Limits(spec.timeout, self._context.policy)
        return attempts.decide(attempt, seen, self._context.clock.now(), limits)

    # --- progress -------------------------------------------------------------------------------------

    async def _note_progress(self, home: Home, item: wire.ProgressReport) -> None:
        await self._number(home, item.attempt_id)
        before = self._progress.get(home.task_id)
        fraction = item.fraction
        if fraction is None and item.step is not None and item.total_steps:
            fraction = min(1.0, item.step / item.total_steps)
        self._progress[home.task_id] = Progress(
            task_id=home.task_id,
            job_id=home.job_id,
            attempt_id=AttemptId(item.attempt_id),
            at=self._context.clock.now(),
            step=item.step,
            total_steps=item.total_steps,
            fraction=fraction,
            metrics=before.metrics if before else {},
        )

    def _note_metrics(self, home: Home, attempt_id: str, point: MetricPoint) -> None:
        before = self._progress.get(home.task_id)
        self._progress[home.task_id] = Progress(
            task_id=home.task_id,
            job_id=home.job_id,
            attempt_id=AttemptId(attempt_id),
            at=self._context.clock.now(),
            step=point.step if point.step is not None else (before.step if before else None),
            total_steps=before.total_steps if before else None,
            fraction=before.fraction if before else None,
            metrics={**(before.metrics if before else {}), **point.values},
        )


def numbers(values: dict[str, float | None]) -> dict[str, float]:
    """JSON has no NaN: a null metric is one."""
    return {name: float("nan") if value is None else value for name, value in values.items()}


def remember(cache: "OrderedDict[K, V]", key: K, value: V) -> V:
    cache[key] = value
    if len(cache) > REMEMBERED:
        cache.popitem(last=False)
    return value
