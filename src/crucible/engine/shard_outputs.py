"""What came of the items of a job, for people: outputs and errors in the order of the items, however many workers wrote
them; how far it is; and what nobody needs any more is removed. Nothing is held in memory but one piece."""

import hashlib
import json
from collections.abc import AsyncIterator

from crucible.core import shards as core
from crucible.engine.context import Context
from crucible.engine.shards import ShardDesk, part_sizes
from crucible.engine.trees import CALL_S, LIST_S, Trees
from crucible.model.errors import Conflict, StorageFailed
from crucible.model.ids import JobId
from crucible.model.job import Job
from crucible.model.shards import Shard, Shards, ShardState, ShardTally
from crucible.model.spec import SHARDED
from crucible.model.units import MicroUsd

PAGE = 1000
# A busy page asks again and again; counting a hundred thousand shards takes a moment.
TALLY_S = 1.0
TALLIES = 1000
DELETED_AT_ONCE = 500
# Lines of errors that are sent together.
GATHERED_BYTES = 64 << 10


class ShardOutputs:
    def __init__(self, context: Context, trees: Trees, desk: ShardDesk) -> None:
        self._context = context
        self._trees = trees
        self._desk = desk
        self._tallies: dict[JobId, tuple[float, ShardTally]] = {}

    # --- how far it is --------------------------------------------------------------------------------------

    def shards_of(self, job: Job) -> Shards:
        """Raises Conflict for a job that does not work on items."""
        shards = self._context.spec_of(job).shards
        if shards is None:
            raise Conflict(f"job {job.id} has no `shards`: it works on no items")
        return shards

    async def progress(self, job: Job, cost: MicroUsd) -> core.ShardProgress | None:
        """None: it works on no items."""
        if job.job_type not in SHARDED or self._context.spec_of(job).shards is None:
            return None  # most are told by their type: no old spec is read again for a look at its job
        now, tally = self._context.clock.now(), await self._tally(job)
        return core.progress(tally, job.started_at, job.finished_at, cost, now)

    async def _tally(self, job: Job) -> ShardTally:
        now = self._context.clock.monotonic()
        known = self._tallies.get(job.id)
        if known is not None and now - known[0] < TALLY_S and not job.status.is_terminal:
            return known[1]
        tally = await self._context.store.shard_tally(job.id)
        if len(self._tallies) >= TALLIES:
            self._tallies.clear()
        self._tallies[job.id] = now, tally
        return tally

    # --- what came of it ------------------------------------------------------------------------------------

    async def output(self, job: Job) -> AsyncIterator[bytes]:
        """All committed outputs, in order. Breaks off with StorageFailed at one that is not what was committed."""
        objects = self._desk.objects(job)
        async for shard in self._done(job):
            digest = hashlib.sha256()
            for part, size in enumerate(part_sizes(shard.size_bytes)):
                left = size
                async for piece in objects.stream(core.part_key(shard.output or "", part)):
                    digest.update(piece)
                    left -= len(piece)
                    yield piece
                if left:
                    raise StorageFailed(f"part {part} of the output of shard {shard.number} has another size")
            if shard.size_bytes and shard.sha256 not in (None, digest.hexdigest()):
                raise StorageFailed(f"the output of shard {shard.number} is not what was committed")

    async def errors(self, job: Job) -> AsyncIterator[bytes]:
        """A line of JSON for each item that failed: index, item where it has a name, reason."""
        objects = self._desk.objects(job)
        async for shard in self._done(job):
            if shard.failed and shard.output is None:
                async for piece in self._all_failed(job, shard):
                    yield piece
            elif shard.failed:
                async for piece in objects.stream(core.errors_key(shard.output or "")):
                    yield piece

    async def _all_failed(self, job: Job, shard: Shard) -> AsyncIterator[bytes]:
        reason = shard.errors[0].get("reason", "") if shard.errors else ""
        shards = self.shards_of(job)
        is_named = shards.count is None and shards.lines is None
        names = await self._desk.names(job, shard) if is_named else None
        gathered = b""
        for number in range(shard.items):
            named = {} if names is None else {"item": names[number]}
            line = {"index": shard.first + number, **named, "reason": reason}
            gathered += json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            if len(gathered) >= GATHERED_BYTES:
                yield gathered
                gathered = b""
        yield gathered

    async def _done(self, job: Job) -> AsyncIterator[Shard]:
        after = -1
        while page := await self._context.store.shards(job.id, after=after, limit=PAGE, state=ShardState.DONE):
            for shard in page:
                yield shard
            after = page[-1].number

    # --- what may go ----------------------------------------------------------------------------------------

    async def tidy(self, job: Job) -> None:
        """Of a job that is over: outputs that nobody committed."""
        if not job.status.is_terminal or self._context.spec_of(job).shards is None:
            return
        kept = {shard.output async for shard in self._done(job) if shard.output is not None}
        objects, waste = self._desk.objects(job), []
        listing = self._listed(job)
        for key in await self._trees.within(listing, LIST_S):
            if key.rpartition("/")[0] not in kept:
                waste.append(key)
        for start in range(0, len(waste), DELETED_AT_ONCE):
            self._context.failpoint("retention.before")
            await self._trees.within(objects.delete(waste[start : start + DELETED_AT_ONCE]), CALL_S)
            self._context.failpoint("retention.after")

    async def _listed(self, job: Job) -> list[str]:
        return [facts.key async for facts in self._desk.objects(job).list(core.output_folder(job.id))]
