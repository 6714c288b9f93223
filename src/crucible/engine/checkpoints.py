"""What agents ask about checkpoints in storage (ADR 13): where the next one may go, what to resume from, and what a
rank left there when no server could hear it. Everything is signed here; no node ever has credentials."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from crucible.core.checkpoint import (
    Whole,
    is_carried_uri,
    manifest_key,
    part_keys,
    result_key,
    wholes,
)
from crucible.core.stored_manifest import BadManifest, write_stored
from crucible.engine.context import Context, log
from crucible.engine.stored import Place, StoredCheckpoints
from crucible.model.attempt import Attempt, AttemptPhase, RankState
from crucible.model.errors import Forbidden, NotFound, StorageFailed, StorageRefused
from crucible.model.ids import AttemptId, NodeId
from crucible.model.job import Job
from crucible.model.storage import Address, Scheme, parse
from crucible.model.tree import TaskTree
from crucible.ports.objects import Method, Objects
from crucible.wire import agent as wire

LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING, AttemptPhase.STOPPING)
# A manifest may be replaced or removed between the look and the reading; then the look is repeated.
LOOKS = 3
# Words of a rank that ended: its exit and a few lines.
MAX_RESULT_BYTES = 256 << 10
# A machine that is gone is not mourned for longer than this: storage may be away too.
LAST_WORDS_S = 10.0


@dataclass(frozen=True, slots=True)
class Asker:
    """An attempt that is alive, and the place of its task."""

    attempt: Attempt
    job: Job
    task_index: int


class Checkpoints:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.stored = StoredCheckpoints(context)

    async def carries(self, job: Job) -> bool:
        return self._context.carries(job, await self.has_carried(job))

    async def has_carried(self, job: Job) -> bool:
        return any(is_carried_uri(one.uri) for one in await self._context.store.checkpoints(job.lineage))

    # --- where the next one may go ------------------------------------------------------------------

    async def slot(self, node_id: NodeId, asked: wire.SlotRequest) -> wire.SlotReply:
        """Raises Forbidden, StorageFailed and StorageRefused."""
        asker = await self._asker(node_id, asked.attempt_id)
        attempt = asker.attempt
        if not any(rank.rank == asked.rank and rank.node_id == node_id for rank in attempt.ranks):
            raise Forbidden(f"rank {asked.rank} does not run on this node")
        name = asked.slot or self._new_slot(attempt, asked.rank)
        if not self.is_own_slot(attempt, asked.rank, name):
            raise Forbidden(f"the slot {name} was not given to rank {asked.rank} of this attempt; ask for one")
        objects = self._context.storage.open(self._context.storage_of(asker.job, asker.task_index))
        keys = [manifest_key(name), result_key(attempt.id, asked.rank), *part_keys(name, asked.first, asked.count)]
        manifest, result, *parts = await self._signed(objects, "PUT", keys, "slot")
        lives_s = self._context.policy.signature_life.total_seconds()
        prefix = objects.address.uri
        return wire.SlotReply(slot=name, prefix=prefix, manifest=manifest, parts=parts, result=result, lives_s=lives_s)

    def is_own_slot(self, attempt: Attempt, rank: int, slot: str) -> bool:
        head = f"{attempt.number:05d}-{rank:05d}-"
        return slot.startswith(head) and self._context.keys.owns_slot(attempt.id, attempt.number, slot)

    def _new_slot(self, attempt: Attempt, rank: int) -> str:
        nonce = hashlib.sha256(self._context.random.token().encode()).hexdigest()[:10]
        return self._context.keys.slot(attempt.id, attempt.number, rank, nonce)

    async def _asker(self, node_id: NodeId, attempt_id: str) -> Asker:
        """Forbidden, not NotFound: the node itself is still wanted."""
        known = await self._context.store.node_work(node_id)
        for task, attempt in known.at_work:
            if attempt.id == attempt_id and attempt.phase in LIVE:
                return Asker(attempt, known.job, task.index)
        raise Forbidden("no such attempt is alive here")

    async def _signed(self, objects: Objects, method: Method, keys: Sequence[str], label: str) -> list[wire.Signed]:
        self._context.failpoint(f"{label}.before")
        signed = await self.stored.within(objects.sign(method, keys, self._context.policy.signature_life))
        self._context.failpoint(f"{label}.after")
        return [wire.Signed(method=one.method, url=one.url, headers=dict(one.headers)) for one in signed]

    # --- what to resume from ----------------------------------------------------------------------------

    async def candidate(self, node_id: NodeId, asked: wire.CandidateRequest) -> wire.CandidateReply:
        """The newest but `skip`. What the asking attempt itself saved is not among them: every node of the gang must
        find the same, whenever it asks."""
        asker = await self._asker(node_id, asked.attempt_id)
        for _ in range(LOOKS):
            found = await self._candidates(asker)
            if asked.skip >= len(found):
                return wire.CandidateReply(candidate=None)
            place, whole = found[asked.skip]
            try:
                return wire.CandidateReply(candidate=await self._offered(place, whole))
            except (NotFound, BadManifest) as problem:
                log.warning(
                    "the checkpoint of step %d in %s changed: %s", whole.step, place.objects.address.uri, problem
                )
        raise StorageFailed("the checkpoints are changing too quickly; ask again")

    async def _candidates(self, asker: Asker) -> list[tuple[Place, Whole]]:
        own = asker.attempt
        found: list[tuple[Place, Whole]] = []
        for place in await self.places(asker.job, asker.task_index):
            older = [one for one in place.shards if not one.slot or not self._is_own(own, one.slot)]
            found += [(place, whole) for whole in wholes(older)]
        return sorted(found, key=lambda each: (each[1].step, each[1].stored_at, each[1].first.key), reverse=True)

    def _is_own(self, attempt: Attempt, slot: str) -> bool:
        return self._context.keys.owns_slot(attempt.id, attempt.number, slot)

    async def places(self, job: Job, task_index: int) -> list[Place]:
        """Where checkpoints of this task may be: what was carried, and what machines that share files have saved."""
        found = []
        if await self.carries(job):
            found.append(await self.stored.manifests(self._context.storage_of(job, task_index)))
        folder = self.shared_folder(job, task_index)
        if folder is not None:
            found.append(await self.stored.folder(folder))
        return found

    def shared_folder(self, job: Job, task_index: int) -> Address | None:
        """None: no machine of this server shares files, so that a folder means nothing here."""
        if not any(seller.facts.shares_files for seller in self._context.sellers.values()):
            return None
        folder = self._context.folder_of(job, task_index)
        if folder.startswith("file://"):
            return parse(folder)
        is_path = folder.startswith("/") and ".." not in folder.split("/")
        return Address(Scheme.FILE, "", "", folder) if is_path else None

    async def _offered(self, place: Place, whole: Whole) -> wire.Candidate:
        shards = []
        for shard in whole.shards:
            manifest = await self.stored.read(place, shard)
            keys = [one.key for one in manifest.objects]
            signed = await self._signed(place.objects, "GET", keys, "candidate")
            shards.append(wire.StoredShard(slot=manifest.slot, manifest=write_stored(manifest), objects=signed))
        return wire.Candidate(step=whole.step, shards=shards)

    # --- what a rank left there ---------------------------------------------------------------------------

    async def last_words(self, tree: TaskTree) -> list[wire.RankReport]:
        """How ranks ended whose machines are gone, as their agents wrote it down when no server heard them. Empty if
        storage does not answer: a machine that is gone is not waited for."""
        attempt = tree.attempt
        if attempt is None or not await self.carries(tree.job):
            return []
        unheard = [rank.rank for rank in attempt.ranks if rank.state is not RankState.EXITED]
        try:
            objects = self._context.storage.open(self._context.storage_of(tree.job, tree.task.index))
            read = asyncio.gather(*(self._result(objects, attempt.id, rank) for rank in unheard))
            return list(filter(None, await self.stored.within(read, LAST_WORDS_S)))
        except (StorageFailed, StorageRefused) as error:
            log.warning("attempt %s: cannot look for last words: %s", attempt.id, error)
            return []

    async def _result(self, objects: Objects, attempt_id: AttemptId, rank: int) -> wire.RankReport | None:
        key = result_key(attempt_id, rank)
        try:
            data = await objects.get(key, length=MAX_RESULT_BYTES)
            said = wire.RankReport.model_validate_json(data)
        except NotFound:
            return None
        except ValidationError:
            log.warning("%s in %s is not the end of a rank", key, objects.address.uri)
            return None
        is_his = said.attempt_id == attempt_id and said.rank == rank and said.state == "exited"
        return said if is_his else None
