"""What people ask about checkpoints: which there are, whether every byte is right, the files, and to remove one. Of
those that agents carried and of those in folders that this server sees."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from crucible.core.checkpoint import MIN_KEEP, Removal, Shard, Whole, is_carried_uri, is_committed, without
from crucible.core.stored_manifest import BadManifest, NodeManifest, StoredManifest, StoredObject
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context
from crucible.engine.stored import Place
from crucible.model.errors import Conflict, NotFound
from crucible.model.ids import AttemptId, Digest, JobId
from crucible.model.job import Job, JobStatus
from crucible.model.record import Checkpoint
from crucible.ports.objects import Objects, Signed
from crucible.ports.store import JobQuery

# Objects read at once by one verification.
READS_AT_ONCE = 4
# Every mistake of a broken checkpoint is the same news.
MAX_PROBLEMS = 20
LIVE_JOBS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A checkpoint that is there now."""

    made: Checkpoint
    attempt: int | None  # its number within the task
    shards: int
    is_stored: bool  # in object storage; else in a folder


@dataclass(frozen=True, slots=True)
class Checked:
    """How far a verification has come; with `problems`, none or some, it is over."""

    checked_bytes: int
    problems: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """A shard's files, and a signed GET for each object that holds their pieces."""

    manifest: StoredManifest
    signed: Sequence[Signed]


class CheckpointDesk:
    def __init__(self, context: Context, checkpoints: Checkpoints) -> None:
        self._context = context
        self._checkpoints = checkpoints

    @property
    def lives_s(self) -> float:
        """How long the addresses of files hold."""
        return self._context.policy.signature_life.total_seconds()

    # --- which there are ------------------------------------------------------------------------------

    async def rows(self, job: Job, task_index: int = 0) -> list[Row]:
        """Of the whole lineage, oldest step first: what a resumed job goes on from belongs to all of its chain."""
        saved = await self._context.store.checkpoints(job.lineage)
        recorded = [one for one in saved if one.task_index == task_index]
        place = await self._carried(job, task_index)
        stored = {} if place is None else {self._uri(place, one): one for one in place.wholes}
        numbers = await self._numbers({job.id, *(one.job_id for one in recorded)})
        rows = [
            Row(
                made=one,
                attempt=numbers.get(one.attempt_id),
                shards=shards if stored.get(one.uri) is None else len(stored[one.uri].shards),
                is_stored=one.uri in stored,
            )
            for one, shards in together(recorded)
            if (one.uri in stored if is_carried_uri(one.uri) else is_kept(one.uri))
        ]
        known = {row.made.uri for row in rows}
        rows += [self._unrecorded(job, uri, whole) for uri, whole in stored.items() if uri not in known]
        return sorted(rows, key=lambda row: (row.made.step, row.made.created_at))

    async def _numbers(self, jobs: Iterable[JobId]) -> dict[AttemptId, int]:
        return {one.id: one.number for job_id in jobs for one in await self._context.store.job_attempts(job_id)}

    def _unrecorded(self, job: Job, uri: str, whole: Whole) -> Row:
        made = Checkpoint(
            lineage=job.lineage,
            job_id=JobId(whole.first.job_id or job.id),
            attempt_id=AttemptId(""),
            step=whole.step,
            uri=uri,
            size_bytes=whole.size_bytes,
            manifest_sha256=Digest(whole.first.sha256),
            created_at=whole.stored_at,
        )
        return Row(made=made, attempt=whole.first.attempt, shards=len(whole.shards), is_stored=True)

    def _uri(self, place: Place, whole: Whole) -> str:
        return place.objects.address.below(whole.first.key).uri

    async def _carried(self, job: Job, task_index: int) -> Place | None:
        if not await self._checkpoints.carries(job):
            return None
        return await self._checkpoints.stored.manifests(self._context.storage_of(job, task_index))

    # --- one of them ------------------------------------------------------------------------------------

    async def find(self, job: Job, task_index: int, step: int) -> tuple[Place, Whole]:
        """The one that would be loaded of that step. Raises NotFound."""
        for place in await self._checkpoints.places(job, task_index):
            for whole in place.wholes:
                if whole.step == step:
                    return place, whole
        hint = f"`crucible checkpoints ls {job.id}` lists them"
        raise NotFound(f"job {job.id} has no checkpoint of step {step}; {hint}", field="step")

    async def files(self, place: Place, whole: Whole) -> list[ShardFiles]:
        """Raises NotFound if it is removed meanwhile."""
        found = []
        for shard in whole.shards:
            manifest = await self._read(place, shard)
            keys = [one.key for one in manifest.objects]
            life = self._context.policy.signature_life
            signed = await self._checkpoints.stored.within(place.objects.sign("GET", keys, life))
            found.append(ShardFiles(manifest, signed))
        return found

    async def _read(self, place: Place, shard: Shard) -> StoredManifest:
        try:
            return await self._checkpoints.stored.read(place, shard)
        except (BadManifest, NotFound) as problem:
            message = f"the checkpoint of step {shard.step} has changed meanwhile: {problem}; ask again"
            raise NotFound(message, field="step") from problem

    async def verify(self, place: Place, whole: Whole) -> AsyncIterator[Checked]:
        """Reads every byte, a few objects at a time, and says how far it is."""
        manifests = [await self._read(place, shard) for shard in whole.shards]
        work = [(manifest.node, one) for manifest in manifests for one in manifest.objects]
        problems: list[str] = []
        done = 0
        for start in range(0, len(work), READS_AT_ONCE):
            batch = work[start : start + READS_AT_ONCE]
            found = await asyncio.gather(*(flaw(place.objects, node, one) for node, one in batch))
            problems += [problem for problem in found if problem is not None]
            done += sum(one.size for _, one in batch)
            yield Checked(done)
        yield Checked(done, tuple(problems[:MAX_PROBLEMS]))

    async def remove(self, job: Job, task_index: int, step: int) -> None:
        """All that is kept of that step. Raises NotFound, and Conflict for what a live job may need."""
        places = await self._checkpoints.places(job, task_index)
        held = [place for place in places if any(shard.step == step for shard in place.shards)]
        if not held:
            await self.find(job, task_index, step)
        await self._refuse_if_needed(job, places, step)
        for place in held:
            await self._remove(place, step)

    async def _refuse_if_needed(self, job: Job, places: Sequence[Place], step: int) -> None:
        steps = sorted({whole.step for place in places for whole in place.wholes}, reverse=True)[:MIN_KEEP]
        user = await self._live(job) if step in steps else None
        if user is not None:
            raise Conflict(
                f"job {user.id} is {user.status} and may need step {step}: the newest {MIN_KEEP} checkpoints stay; "
                "cancel it first, or remove an older one"
            )

    async def _live(self, job: Job) -> Job | None:
        """A job that is not over and goes on from the same checkpoints; its name is that of the first."""
        if not job.status.is_terminal:
            return job
        alive = frozenset(status for status in JobStatus if not status.is_terminal)
        page = await self._context.store.jobs(JobQuery(status=alive, name=job.name, limit=LIVE_JOBS))
        for item in page.items:
            other = await self._context.store.job(item.id)
            if other.lineage == job.lineage:
                return other
        return None

    async def _remove(self, place: Place, step: int) -> None:
        removal = without(place.shards, step)
        if place.is_folder:
            head = f"step-{step:09d}/"
            rest = [key for key in place.parts if key.startswith(head) and key not in removal.manifests]
            removal = Removal(removal.manifests, tuple(rest))
        for keys in (removal.manifests, removal.objects):
            self._context.failpoint("retention.before")
            await self._checkpoints.stored.within(place.objects.delete(keys))
            self._context.failpoint("retention.after")


async def flaw(objects: Objects, node: NodeManifest, one: StoredObject) -> str | None:
    """What is wrong with an object, or None. A read that fails is an error, not a flaw."""
    check = Check(node, one)
    try:
        async for block in objects.stream(one.key):
            check.feed(block)
            if check.problem is not None:
                break
    except NotFound:
        return f"there is no {one.key}, which holds {node.parts[one.holds[0][0]].name}"
    return check.end()


class Check:
    """Compares the bytes of an object, as they come, with the pieces that it should hold."""

    def __init__(self, node: NodeManifest, one: StoredObject) -> None:
        self.problem: str | None = None
        self._node = node
        self._one = one
        self._pieces = iter(one.holds)
        self._begin()

    def feed(self, block: bytes) -> None:
        view = memoryview(block)
        while view and self.problem is None:
            if self._piece is None:
                self.problem = f"{self._one.key} is longer than {self._one.size} bytes"
                return
            taken = view[: self._left]
            self._digest.update(taken)
            self._left -= len(taken)
            view = view[len(taken) :]
            if self._left == 0:
                self._finish(*self._piece)

    def end(self) -> str | None:
        if self.problem is None and self._piece is not None:
            return f"{self._one.key} is shorter than {self._one.size} bytes"
        return self.problem

    def _begin(self) -> None:
        self._piece = next(self._pieces, None)
        self._digest = hashlib.sha256()
        self._left = self._node.piece_size(*self._piece) if self._piece else 0

    def _finish(self, part: int, piece: int) -> None:
        if self._digest.hexdigest() != self._node.parts[part].pieces[piece]:
            self.problem = f"{self._node.parts[part].name} has other content than was saved (in {self._one.key})"
        self._begin()


def together(recorded: Sequence[Checkpoint]) -> list[tuple[Checkpoint, int]]:
    """Shards that ranks saved into one folder were reported one by one: the first stands for all."""
    groups: dict[tuple[int, str], list[Checkpoint]] = {}
    for one in recorded:
        groups.setdefault((one.step, one.uri), []).append(one)
    return [
        (replace(group[0], size_bytes=sum(one.size_bytes for one in group)), len(group)) for group in groups.values()
    ]


def is_kept(uri: str) -> bool:
    """Retention removes a checkpoint's manifests first; what is kept elsewhere than on files is taken to be there."""
    place = urlsplit(uri)
    if place.scheme != "file":
        return True
    try:
        return is_committed(path.name for path in Path(unquote(place.path)).iterdir())
    except OSError:
        return False
