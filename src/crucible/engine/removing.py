"""Carries out what was decided to go: files and objects first, for nobody finds them any more, then rows, and last the
decision itself. A crash anywhere leaves a decision, and whoever finds it begins again."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import groupby

from crucible.core import outputs
from crucible.engine.context import Context, log
from crucible.engine.trees import DELETED_AT_ONCE, LIST_S, Trees
from crucible.model.errors import StorageFailed, StorageRefused
from crucible.model.ids import JobId
from crucible.model.retention import Kept, Removal
from crucible.model.storage import Address, parse
from crucible.ports.objects import ObjectFacts
from crucible.ports.store import Claim

# Decisions that are carried out together: one transaction for the rows of so many jobs.
TOGETHER = 100
# Rows of each table that go at a time: some milliseconds, for which everybody else's writes wait.
ROWS = 500
TASKS = 500
AT_ONCE = 16  # jobs whose storage is asked

Pause = Callable[[], Awaitable[bool]]  # lets others have their turn; False: the time is over


class Remover:
    def __init__(self, context: Context, trees: Trees) -> None:
        self._context = context
        self._trees = trees
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self.freed_bytes = 0

    async def carry_out(self, claim: Claim, pause: Pause) -> bool:
        """All that was decided, but for what storage refuses now. False: the time was over first."""
        after: JobId | None = None
        while found := await self._context.store.removals(after, TOGETHER):
            for what, some in groupby(sorted(found, key=lambda one: one.what), key=lambda one: one.what):
                if not await self._together(what, list(some), claim, pause):
                    return False
            after = found[-1].job_id
        return True

    async def _together(self, what: Kept, some: Sequence[Removal], claim: Claim, pause: Pause) -> bool:
        ready = await self._without_files(what, some, claim)
        ids, now = [one.job_id for one in ready], self._context.clock.now()
        while ids and not await self._context.store.remove_rows(what, ids, now, ROWS, claim=claim):
            if not await pause():
                return False
        return await pause()

    async def _without_files(self, what: Kept, some: Sequence[Removal], claim: Claim) -> Sequence[Removal]:
        """Those whose files are gone; the others not now."""
        if what in (Kept.LOGS, Kept.JOBS):
            await self._without_streams([one.job_id for one in some], claim)
        if what is not Kept.JOBS:
            return some
        tried = await asyncio.gather(*(self._try(one) for one in some))
        ready = [one for one, is_gone in zip(some, tried, strict=True) if is_gone]
        gone = [one.lineage for one in ready if not await self._context.store.is_lineage_needed(one.lineage)]
        while gone and not await self._context.store.forget_checkpoints(gone, ROWS, claim=claim):
            await self._context.clock.sleep(0)
        return ready

    async def _without_streams(self, job_ids: Sequence[JobId], claim: Claim) -> None:
        """Rows before files: a segment that is listed must be there."""
        context, after = self._context, None
        while page := await context.store.removed_tasks(job_ids, after, TASKS):
            tasks = [task for *_, task in page]
            await context.store.forget_streams(tasks, claim=claim)
            context.failpoint("stream.remove.before")
            self.freed_bytes += await context.streams.remove(tasks)
            context.failpoint("stream.remove.after")
            after = page[-1][0], page[-1][1]

    async def _try(self, one: Removal) -> bool:
        async with self._at_once:
            try:
                return await self._without_objects(one)
            except (StorageFailed, StorageRefused) as error:
                log.warning("what job %s stored cannot be removed now: %s", one.job_id, error)
                return False

    async def _without_objects(self, one: Removal) -> bool:
        """What a job that runs was given stays until it is over; what a lineage saved, until its last job goes."""
        context = self._context
        if await context.store.is_source_needed(one.job_id):
            return False
        await self._empty(outputs.place_of(context.storage_root, one.job_id))
        if not await context.store.is_lineage_needed(one.lineage):
            for root in (context.storage_root, parse(context.checkpoint_root)):
                await self._empty(root.below(one.lineage))
        return True

    async def _empty(self, place: Address) -> None:
        """Only ever below what is ours: a folder that a spec named belongs to whoever wrote it."""
        objects = self._context.storage.open(place)
        while keys := await self._trees.within(_some_keys(objects.list()), LIST_S):
            self._context.failpoint("retention.before")
            await self._trees.within(objects.delete([key for key, _ in keys]))
            self._context.failpoint("retention.after")
            self.freed_bytes += sum(size for _, size in keys)


async def _some_keys(listed: AsyncIterator[ObjectFacts]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    async for facts in listed:
        found.append((facts.key, facts.size))
        if len(found) == DELETED_AT_ONCE:
            break
    return found
