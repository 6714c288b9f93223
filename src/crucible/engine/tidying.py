"""Keeps what is stored in order, in the background: records what is whole and was never reported, removes what is older
than the newest few, and what nobody can commit any more. Everything follows from what is stored and from rows, so a
pass that was cut off is simply made again; two servers take turns under a claim."""

import heapq
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta

from crucible.core.checkpoint import RESULTS, Removal, Whole, removable
from crucible.core.stored_manifest import is_slot, slot_of_part
from crucible.engine.checkpoints import Checkpoints
from crucible.engine.context import Context, log
from crucible.engine.stored import Place
from crucible.model.attempt import Attempt
from crucible.model.errors import NotFound, StorageFailed, StorageRefused
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.job import Job, JobStatus
from crucible.ports.store import JobQuery

# All tasks of a job, instead of one by its index.
ALL = -1
# A job of so many tasks is looked through whole when it has ended.
FEW_TASKS = 100
# Objects removed by one call.
BATCH = 1000
# Commits come in bunches (shards, several tasks): one pass serves them all.
SETTLE_S = 2.0
TROUBLE_S = 60.0
# Jobs that ended while no server was there to tidy up after them.
RECENT = timedelta(days=1)
RECENT_JOBS = 200
# What belongs to no attempt that we know: somebody else may share the place, and gets this long.
STRANGER = timedelta(days=1)
# Resumes of resumes that are looked through.
MAX_CHAIN = 100
# Since the last signature was given; nobody can write after that.
GRACE_LIVES = 2

Record = Callable[[Job, Attempt, Place, Whole], Awaitable[None]]
TidyOutputs = Callable[[Job], Awaitable[None]]


class Tidier:
    def __init__(
        self, context: Context, checkpoints: Checkpoints, record: Record, tidy_outputs: Sequence[TidyOutputs]
    ) -> None:
        """`tidy_outputs` remove what a job that is over stored in vain."""
        self._context = context
        self._checkpoints = checkpoints
        self._record = record
        self._tidy_outputs = tidy_outputs
        self._due: list[tuple[float, JobId, int]] = []

    async def run(self) -> None:
        """For ever; one job at a time."""
        await self._look_back()
        context = self._context
        while True:
            seen = context.hub.counter("tidy")
            self._take_wishes()
            wait = self._due[0][0] - context.clock.monotonic() if self._due else TROUBLE_S
            context.vitals.beat("tidying", max(wait, 0.0))
            if wait > 0:
                await context.hub.wait("tidy", seen, wait)
                continue
            _, job_id, index = heapq.heappop(self._due)
            await self._try(job_id, index)

    def _take_wishes(self) -> None:
        for job_id, index in self._context.untidy:
            self._later(job_id, ALL if index is None else index, SETTLE_S)
        self._context.untidy.clear()

    def _later(self, job_id: JobId, index: int, seconds: float) -> None:
        """The sooner of two wishes holds."""
        at = self._context.clock.monotonic() + seconds
        if not any(due <= at and (job, of) == (job_id, index) for due, job, of in self._due):
            self._due = [one for one in self._due if one[1:] != (job_id, index)]
            heapq.heapify(self._due)
            heapq.heappush(self._due, (at, job_id, index))

    async def _look_back(self) -> None:
        """What a server before this one has left to do."""
        ended = frozenset(status for status in JobStatus if status.is_terminal)
        page = await self._context.store.jobs(JobQuery(status=ended, limit=RECENT_JOBS))
        since = self._context.clock.now() - RECENT
        for item in page.items:
            if item.finished_at is not None and item.finished_at >= since:
                self._later(item.id, ALL, SETTLE_S)

    async def _try(self, job_id: JobId, index: int) -> None:
        try:
            again = await self.tidy(job_id, index)
        except NotFound:
            return
        except (StorageFailed, StorageRefused) as error:
            log.warning("what job %s stored cannot be tidied: %s", job_id, error)
            again = TROUBLE_S
        if again is not None:
            self._later(job_id, index, again)

    # --- one pass -------------------------------------------------------------------------------------

    async def tidy(self, job_id: JobId, index: int = ALL) -> float | None:
        """Seconds until it is worth another look, if nothing else happens; None: never."""
        context = self._context
        job = await context.store.job(job_id)
        for tidy_outputs in self._tidy_outputs:
            await tidy_outputs(job)
        if not await self._checkpoints.carries(job):
            return None
        for each in await self._indices(job) if index == ALL else [index]:
            address = context.storage_of(job, each)
            claim = await context.store.claim(f"checkpoints:{address.uri}", context.server_id, context.claim_ttl)
            if claim is None:
                return TROUBLE_S
            try:
                place = await self._checkpoints.stored.everything(address)
                attempts = await self._attempts(job, each)
                await self._record_all(job, place, attempts)
                await self._remove(job, place, attempts, keep=context.spec_of(job).checkpoint.keep)
            finally:
                await context.store.release(claim)
        return self._next_look(job)

    async def _indices(self, job: Job) -> list[int]:
        """Tasks that may have something stored. Of very many those that have said so: looking is a request each."""
        saved = {one.task_index for one in await self._context.store.checkpoints(job.lineage)}
        tally = await self._context.store.tally(job.id)
        count = sum(tally.counts.values())
        return sorted(saved | set(range(count))) if count <= FEW_TASKS else sorted(saved)

    def _next_look(self, job: Job) -> float | None:
        """Once more when the last signature of an ended job has expired."""
        if not job.status.is_terminal or job.finished_at is None:
            return None
        left = (job.finished_at + self._grace - self._context.clock.now()).total_seconds()
        return left + SETTLE_S if left > 0 else None

    @property
    def _grace(self) -> timedelta:
        return GRACE_LIVES * self._context.policy.signature_life

    async def _record_all(self, job: Job, place: Place, attempts: Sequence[Attempt]) -> None:
        """Whole ones that nobody could report: the node died, or its shards were told to several servers."""
        known = {one.uri for one in await self._context.store.checkpoints(job.lineage)}
        for whole in reversed(place.wholes):
            uri = place.objects.address.below(whole.first.key).uri
            saved_by = [one for one in attempts if self._is_of(one, whole.first.slot)]
            if uri not in known and saved_by:
                await self._record(job, saved_by[0], place, whole)

    async def _attempts(self, job: Job, index: int) -> list[Attempt]:
        """Of a task of the job, and of those that it goes on from: they have saved here too."""
        found = list(await self._context.store.task_attempts(job.id, index))
        origin = job.origin
        for _ in range(MAX_CHAIN):
            if origin is None:
                break
            try:
                earlier = await self._context.store.job(origin)
            except NotFound:
                break  # it was removed: what it saved belongs to nobody any more
            if earlier.lineage == job.lineage:
                found += await self._context.store.task_attempts(earlier.id, index)
            origin = earlier.origin
        return found

    async def _remove(self, job: Job, place: Place, attempts: Sequence[Attempt], keep: int) -> None:
        live = {(str(one.job_id), one.number) for one in attempts if one.outcome is None and one.ranks}
        removal = removable(
            place.shards,
            place.unreadable,
            place.parts,
            keep=keep,
            live=live,
            is_open=self._opening(job, attempts, place),
        )
        await self._delete(place, removal)
        if job.status.is_terminal:
            await self._delete_results(place, attempts)

    def _opening(self, job: Job, attempts: Sequence[Attempt], place: Place) -> Callable[[str], bool]:
        """Whether somebody may still write to a slot."""
        last, at_work = last_written(place), newest_at_work(job, attempts)
        known: dict[str, bool] = {}

        def is_open(slot: str) -> bool:
            if slot not in known:
                known[slot] = self._is_open(attempts, at_work, slot, last.get(slot))
            return known[slot]

        return is_open

    def _is_open(
        self, attempts: Sequence[Attempt], at_work: Collection[AttemptId], slot: str, last: datetime | None
    ) -> bool:
        now = self._context.clock.now()
        for attempt in attempts:
            if self._is_of(attempt, slot):
                is_late = attempt.ended_at is not None and now - attempt.ended_at >= self._grace
                return attempt.id in at_work and not is_late
        return last is None or now - last < STRANGER

    def _is_of(self, attempt: Attempt, slot: str) -> bool:
        return is_slot(slot) and self._context.keys.owns_slot(attempt.id, attempt.number, slot)

    async def _delete(self, place: Place, removal: Removal) -> None:
        for keys in (removal.manifests, removal.objects):
            for start in range(0, len(keys), BATCH):
                self._context.failpoint("retention.before")
                await self._checkpoints.stored.within(place.objects.delete(keys[start : start + BATCH]))
                self._context.failpoint("retention.after")

    async def _delete_results(self, place: Place, attempts: Sequence[Attempt]) -> None:
        """Last words that were heard, or are too late."""
        now = self._context.clock.now()
        over = [one.id for one in attempts if one.ended_at is not None and now - one.ended_at >= self._grace]
        if not over:
            return
        names = tuple(f"{RESULTS}{attempt_id}-" for attempt_id in over)
        keys = [one.key async for one in place.objects.list(RESULTS) if one.key.startswith(names)]
        await self._delete(place, Removal(objects=tuple(keys)))


def newest_at_work(job: Job, attempts: Sequence[Attempt]) -> set[AttemptId]:
    """Of each task the last attempt that got its machines: by then those of all earlier ones were gone."""
    started = [one for one in attempts if one.ranks]
    own = [one for one in started if one.job_id == job.id]
    newest: dict[TaskId, Attempt] = {}
    for attempt in own or started:
        if attempt.task_id not in newest or newest[attempt.task_id].number < attempt.number:
            newest[attempt.task_id] = attempt
    return {one.id for one in newest.values()}


def last_written(place: Place) -> dict[str, datetime]:
    """By slot: when anything of it was stored last."""
    found: dict[str, datetime] = {}
    for facts in place.parts.values():
        slot = slot_of_part(facts.key)
        if slot is not None:
            found[slot] = max(facts.modified_at, found.get(slot, facts.modified_at))
    for shard in place.shards:
        found[shard.slot] = max(shard.stored_at, found.get(shard.slot, shard.stored_at))
    return found
