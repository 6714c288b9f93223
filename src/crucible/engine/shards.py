"""Shards of items: cut when a job is submitted, handed to its workers, and taken back with what came of them. All that
a worker reads or writes is signed here."""

from collections.abc import Sequence

from crucible.core import job as jobs
from crucible.core import shards as core
from crucible.engine.context import Context, log
from crucible.engine.items import ItemFinder
from crucible.engine.trees import Trees
from crucible.model.change import changed
from crucible.model.errors import Conflict, Forbidden, StaleVersion, StorageFailed, StorageRefused
from crucible.model.ids import AttemptId, JobId
from crucible.model.job import Desired, Job, JobDrained
from crucible.model.shards import Shard, Shards, ShardState
from crucible.model.storage import PIECE_BYTES
from crucible.ports.blobs import Blobs
from crucible.ports.objects import Method, Objects
from crucible.wire import agent as agents
from crucible.wire import shards as wire

TRIES = 10
# A job that is held is asked for again: its workers are stopped soon.
HELD_S = 5.0
# A question for work waits here so long at most.
LONGEST_POLL_S = 10.0
# Attempts whose job is known.
REMEMBERED = 10_000
# Rows that are read at once.
PAGE = 1000
# Most outputs are smaller than a part; who has more asks for more.
FIRST_PARTS = 1


class ShardDesk:
    def __init__(self, context: Context, trees: Trees, blobs: Blobs) -> None:
        self._context = context
        self._trees = trees
        self._finder = ItemFinder(context, trees, blobs)
        self._jobs: dict[AttemptId, JobId] = {}

    # --- when a job is submitted ----------------------------------------------------------------------------

    async def cut(self, job: Job) -> tuple[Shard, ...]:
        """The shards of a new job; none unless it works on items. What they are is in storage when this returns.
        Raises InvalidRequest with the field if there is nothing to work on."""
        spec = self._context.spec_of(job)
        if spec.shards is None:
            return ()
        if job.lineage != job.id and job.origin is not None:
            return await self._taken_over(job, job.origin)
        found = await self._finder.find(job, spec)
        size = core.size_of(spec.shards, found.count, spec.execution.parallelism)
        if found.text is not None:
            await self._trees.within(self.objects(job).put(core.list_key(job.lineage), found.text))
        return tuple(core.cut(job.id, found.count, size, found.ends))

    async def _taken_over(self, job: Job, origin: JobId) -> tuple[Shard, ...]:
        """Raises Conflict if nothing is left to do."""
        found: list[Shard] = []
        while page := await self._context.store.shards(origin, after=found[-1].number if found else -1, limit=PAGE):
            found += page
        cut = tuple(core.taken_over(shard, job.id) for shard in found)
        if not left(cut):
            raise Conflict(f"every item of job {origin} is done; `crucible retry` starts it from the beginning")
        return cut

    async def forget(self, job: Job) -> None:
        """A job that was not submitted after all."""
        if self._context.spec_of(job).shards is None or job.lineage != job.id:
            return
        try:
            await self._trees.within(self.objects(job).delete([core.list_key(job.lineage)]))
        except (StorageFailed, StorageRefused) as error:
            log.warning("the list of items of job %s is left in storage: %s", job.id, error)

    def objects(self, job: Job) -> Objects:
        root = self._context.storage_root.below(job.lineage).below(core.FOLDER)
        return self._context.storage.open(root)

    # --- workers --------------------------------------------------------------------------------------------

    async def lease(self, attempt_id: AttemptId, asked: wire.LeaseRequest) -> wire.LeaseReply:
        """A long poll: who has nothing to do hears at once when all is done."""
        context = self._context
        until = context.clock.monotonic() + LONGEST_POLL_S
        news = drained_news(await self._job_id(attempt_id))
        while True:
            seen = context.hub.counter(news)
            reply = await self._lease(attempt_id, asked)
            left = until - context.clock.monotonic()
            if reply.wait_s is None or left <= 0 or context.is_stopping:
                return reply
            await context.hub.wait(news, seen, min(left, reply.wait_s))

    async def _lease(self, attempt_id: AttemptId, asked: wire.LeaseRequest) -> wire.LeaseReply:
        job, shards = await self._job_of(attempt_id)
        if job.drained is not None:
            return wire.LeaseReply(reason=job.drained)
        if job.desired is not Desired.RUN:
            return wire.LeaseReply(wait_s=HELD_S, reason=job.reason or "")
        now = self._context.clock.now()
        turn = await self._context.store.lease_shard(
            job.id, attempt_id, asked.asked, lambda desk: core.next_shard(desk, shards, attempt_id, asked.asked, now)
        )
        if turn.dropped or turn.is_over:
            await self._settle(job, shards, has_failures=bool(turn.dropped))
        if turn.given is None:
            return wire.LeaseReply(wait_s=turn.wait_s)
        return wire.LeaseReply(shard=await self._leased(job, shards, turn.given, attempt_id))

    async def _leased(self, job: Job, shards: Shards, given: Shard, attempt_id: AttemptId) -> wire.LeasedShard:
        parts, errors = await self._places(job, given.number, given.fence, attempt_id, FIRST_PARTS)
        return wire.LeasedShard(
            number=given.number,
            first=given.first,
            items=given.items,
            fence=given.fence,
            start=given.start,
            end=given.end,
            source=await self._source(job, shards),
            lease_s=shards.lease.total_seconds(),
            parts=parts,
            errors=errors,
            part_bytes=PIECE_BYTES,
        )

    async def _source(self, job: Job, shards: Shards) -> wire.ItemSource:
        base: wire.Base = "dataset" if self._context.spec_of(job).data.dataset is not None else "code"
        if shards.count is not None:
            return wire.ItemSource(kind="numbers")
        if shards.lines is not None:
            return wire.ItemSource(kind="lines", base=base, path=shards.lines)
        (named,) = await self._signed(self.objects(job), "GET", [core.list_key(job.lineage)])
        if shards.glob is not None:
            return wire.ItemSource(kind="files", base=base, list=named)
        return wire.ItemSource(kind="names" if shards.items else "objects", list=named)

    async def renew(self, attempt_id: AttemptId, asked: wire.RenewRequest) -> wire.RenewReply:
        job, shards = await self._job_of(attempt_id)
        now = self._context.clock.now()
        _, shard = await self._context.store.change_shard(
            job.id,
            asked.number,
            attempt_id,
            lambda seen: core.renewed(seen, attempt_id, asked.fence, shards.lease, now),
            label="shard.renew",
            durable=False,
        )
        if shard.state is ShardState.DONE or job.drained is not None:
            return wire.RenewReply(is_wanted=False)
        parts, errors = await self._places(job, asked.number, asked.fence, attempt_id, asked.parts)
        return wire.RenewReply(is_wanted=True, parts=parts, errors=errors)

    async def commit(self, attempt_id: AttemptId, asked: wire.CommitRequest) -> wire.CommitReply:
        """Raises Conflict if its output has not arrived."""
        job, shards = await self._job_of(attempt_id)
        output = core.output_key(job.id, asked.number, asked.fence, attempt_id)
        if asked.reason is None:
            await self._check_there(job, output, asked)
        now = self._context.clock.now()

        def change(shard: Shard) -> Shard:
            if core.judged(shard, attempt_id, asked.fence) is not core.Verdict.ACCEPTED:
                return shard
            return core.committed(shard, attempt_id, asked.fence, result_of(asked, output, shard), now)

        before, after = await self._context.store.change_shard(
            job.id, asked.number, attempt_id, change, label="shard.commit"
        )
        await self._settle(job, shards, has_failures=after.failed > 0)
        self._context.hub.notify(job.id)
        return wire.CommitReply(verdict=core.judged(before, attempt_id, asked.fence).value)

    async def locate(self, attempt_id: AttemptId, asked: wire.ObjectsRequest) -> wire.ObjectsReply:
        """Signed reads of objects that are items of this shard."""
        job, shards = await self._job_of(attempt_id)
        if shards.prefix is None:
            raise Conflict("the items of this job are no objects")
        shard = await self._context.store.shard(job.id, asked.number)
        if core.judged(shard, attempt_id, asked.fence) is core.Verdict.FOREIGN:
            raise Forbidden(f"shard {asked.number} was not given to this attempt")
        names = await self.names(job, shard)
        place = self._finder.place_of(shards.prefix)
        head = f"{place.uri}/"
        keys = [name.removeprefix(head) for name in names[asked.first : asked.first + asked.count]]
        return wire.ObjectsReply(objects=await self._signed(self._context.storage.open(place), "GET", keys))

    async def names(self, job: Job, shard: Shard) -> list[str]:
        """The items of a shard, of a job that has a list of them."""
        key, length = core.list_key(job.lineage), shard.end - shard.start
        text = await self._trees.within(self.objects(job).get(key, start=shard.start, length=length))
        return text.decode().split("\n")[:-1]

    async def _job_of(self, attempt_id: AttemptId) -> tuple[Job, Shards]:
        """Whether the attempt is alive is asked at the door, and where something is written."""
        job = await self._context.store.job(await self._job_id(attempt_id))
        shards = self._context.spec_of(job).shards
        if shards is None:
            raise Conflict("the job has no `shards`: there are no items to work on")
        return job, shards

    async def _job_id(self, attempt_id: AttemptId) -> JobId:
        """Never changes; an attempt asks for hundreds of shards."""
        if attempt_id not in self._jobs:
            if len(self._jobs) >= REMEMBERED:
                self._jobs.clear()
            self._jobs[attempt_id] = (await self._context.store.attempt(attempt_id)).job_id
        return self._jobs[attempt_id]

    async def _check_there(self, job: Job, output: str, asked: wire.CommitRequest) -> None:
        """What is committed is there, and of that size."""
        objects = self.objects(job)
        for part, size in enumerate(part_sizes(asked.size)):
            facts = await self._trees.within(objects.head(core.part_key(output, part)))
            if facts is None or facts.size != size:
                raise Conflict(f"part {part} of the output of shard {asked.number} has not arrived; send it again")

    async def _places(
        self, job: Job, number: int, fence: int, attempt_id: AttemptId, parts: int
    ) -> tuple[list[agents.Signed], agents.Signed]:
        output = core.output_key(job.id, number, fence, attempt_id)
        keys = [core.errors_key(output), *(core.part_key(output, part) for part in range(parts))]
        errors, *signed = await self._signed(self.objects(job), "PUT", keys)
        return signed, errors

    async def _signed(self, objects: Objects, method: Method, keys: Sequence[str]) -> list[agents.Signed]:
        signed = await self._trees.within(objects.sign(method, keys, self._context.policy.signature_life))
        return [agents.Signed(method=one.method, url=one.url, headers=dict(one.headers)) for one in signed]

    # --- when nothing is left -------------------------------------------------------------------------------

    async def _settle(self, job: Job, shards: Shards, *, has_failures: bool) -> None:
        """Says it, once, when every item is done or too many have failed. A server that dies before is followed by
        one that a worker asks next."""
        may_be_too_many = has_failures and shards.max_errors is not None
        if not may_be_too_many and await self._is_any_left(job.id):
            return
        reason = core.drained(shards, await self._context.store.shard_tally(job.id))
        if reason is not None:
            await self._drain(job.id, reason)

    async def _is_any_left(self, job_id: JobId) -> bool:
        for state in (ShardState.WAITING, ShardState.LEASED):
            if await self._context.store.shards(job_id, limit=1, state=state):
                return True
        return False

    async def _drain(self, job_id: JobId, reason: str) -> None:
        context = self._context
        for _ in range(TRIES):
            job = await context.store.job(job_id)
            if job.drained is not None or job.status.is_terminal:
                return
            _, changes = changed(job, (JobDrained(context.clock.now(), reason),), jobs.evolve)
            try:
                await context.store.commit(changes, label="shards.drain")
            except StaleVersion:
                continue
            context.wakes.wake("job", job_id)
            context.hub.notify(job_id)
            context.hub.notify(drained_news(job_id))
            return
        raise StaleVersion(f"job {job_id} is changing too quickly; ask again")


def drained_news(job_id: JobId) -> str:
    """What workers without work wait for."""
    return f"drained:{job_id}"


def left(shards: Sequence[Shard]) -> int:
    """That somebody has to work on."""
    return sum(shard.state is not ShardState.DONE for shard in shards)


def result_of(asked: wire.CommitRequest, output: str, shard: Shard) -> core.Result:
    if asked.reason is not None:
        words = {"reason": asked.reason[: core.MAX_REASON]}
        return core.Result(
            output=None, size_bytes=0, sha256=None, failed=shard.items, errors=(words,), seconds=asked.seconds
        )
    shown = tuple(one.model_dump(exclude_none=True) for one in asked.errors)
    return core.Result(
        output=output,
        size_bytes=asked.size,
        sha256=asked.sha256,
        failed=min(asked.failed, shard.items),
        errors=tuple({**one, "reason": str(one["reason"])[: core.MAX_REASON]} for one in shown),
        seconds=asked.seconds,
    )


def part_sizes(size: int) -> list[int]:
    """Every part is full but the last."""
    full, rest = divmod(size, PIECE_BYTES)
    return [PIECE_BYTES] * full + ([rest] if rest else [])
