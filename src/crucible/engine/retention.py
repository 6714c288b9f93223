"""Keeping and forgetting: what is older than it should be goes, in steps so short that nobody waits for them, half of
the time at most. What is due follows from rows, and what was begun is written down, so that a pass that was cut off is
simply made again; servers take turns under a claim."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from crucible.core import retention as core
from crucible.core.rights import changes_job
from crucible.engine.context import Context, log
from crucible.engine.holding import holding
from crucible.engine.removing import Remover
from crucible.engine.trees import Trees
from crucible.model.account import Principal, Role
from crucible.model.audit import AuditEntry
from crucible.model.errors import Busy, Forbidden, StaleClaim
from crucible.model.ids import Digest
from crucible.model.job import Job
from crucible.model.retention import Ages, Kept, KeptJob, Pruned, Retained
from crucible.ports.blobs import Blobs
from crucible.ports.store import Claim

CLAIM = "retention"
FIRST_S = 60.0  # after a start there is more urgent work
EVERY_S = 3600.0
BATCH = 200
PERSON_ROWS = 200
# While somebody waits for the answer; they ask again.
ASKED_S = 5.0
PATIENCE_S = 10.0
# More is told as "at least".
COUNTED = 10_000
SPACE_BYTES = 4 << 20  # given back in one transaction
_JOBS = (Kept.LOGS, Kept.EVENTS, Kept.JOBS)
_LINES = (Kept.PLANS, Kept.NOTICES, Kept.AUDIT)


class Retention:
    def __init__(self, context: Context, blobs: Blobs, trees: Trees) -> None:
        self._context = context
        self._blobs = blobs
        self._trees = trees

    # --- the policy -----------------------------------------------------------------------------------------

    async def ages(self) -> Ages:
        """How long each kind is kept now."""
        return core.ages(await self._context.store.retention(), self._context.keep_days)

    async def stored(self) -> Mapping[Kept, Retained]:
        return {one.what: one for one in await self._context.store.retention()}

    def set_by(self, what: Kept) -> str:
        """Where no admin has set it."""
        return "server" if what in self._context.keep_days else "default"

    async def set(self, who: Principal, what: Kept, days: int | None) -> None:
        entry = self._entry(who, "retention.set", f"retention:{what}", {"days": days})
        await self._context.store.set_retention(what, days, entry)

    async def keep(self, who: Principal, job: Job) -> None:
        check_changes(who, job)
        kept = KeptJob(job_id=job.id, user_id=who.user_id, at=self._context.clock.now())
        await self._context.store.keep_job(kept, self._entry(who, "job.keep", f"job:{job.id}", {}, job.team))

    async def unkeep(self, who: Principal, job: Job) -> None:
        check_changes(who, job)
        await self._context.store.unkeep_job(job.id, self._entry(who, "job.unkeep", f"job:{job.id}", {}, job.team))

    async def kept(self, who: Principal, limit: int) -> Sequence[KeptJob]:
        """By this person; an admin hears of everybody's."""
        return await self._context.store.kept_jobs(None if who.role is Role.ADMIN else who.user_id, limit)

    def _entry(
        self, who: Principal, action: str, subject: str, details: Mapping[str, object], team: str | None = None
    ) -> AuditEntry:
        return AuditEntry(
            at=self._context.clock.now(),
            user_id=who.user_id,
            token_id=who.token_id,
            action=action,
            subject=subject,
            team=team,
            details=details,
        )

    # --- passes ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """For ever."""
        clock = self._context.clock
        await clock.sleep(FIRST_S)
        while True:
            try:
                done = await self.pass_once()
            except (Busy, StaleClaim):
                done = Pruned()  # another server is at it
            if any(done.removed.values()):
                told = ", ".join(f"{count} {what}" for what, count in sorted(done.removed.items()) if count)
                log.info("removed for their age: %s; %d bytes of files", told, done.freed_bytes)
            await clock.sleep(EVERY_S)

    async def due(self) -> Mapping[Kept, int]:
        """What a pass would remove; at most `COUNTED` of each kind are counted."""
        cutoffs = core.cutoffs(await self.ages(), self._context.clock.now())
        store = self._context.store
        found = {
            what: await store.old(what, core.is_ended_before(what, cutoffs[what]), COUNTED)
            for what in (*_JOBS, *_LINES)
            if what in cutoffs
        }
        if Kept.PACKAGES in cutoffs:
            found[Kept.PACKAGES] = len(await self._unneeded(cutoffs[Kept.PACKAGES]))
        return found

    async def pass_once(self, within_s: float | None = None) -> Pruned:
        """Raises Busy while another server is at it."""
        async with holding(self._context, CLAIM, PATIENCE_S if within_s else 0.0) as claim:
            return await Pass(self, self._context, Remover(self._context, self._trees), claim, within_s).run()

    async def packages(self, since: datetime) -> tuple[int, int]:
        """Code that no job has any more; how many, and their bytes."""
        freed = [await self._blobs.remove(digest, since) for digest in await self._unneeded(since)]
        return sum(1 for size in freed if size), sum(freed)

    async def _unneeded(self, since: datetime) -> list[Digest]:
        unused = await self._blobs.unused(since)
        needed = await self._context.store.needed_packages(unused) if unused else frozenset()
        return [digest for digest in unused if digest not in needed]


class Pass:
    def __init__(
        self, retention: Retention, context: Context, remover: Remover, claim: Claim, within_s: float | None
    ) -> None:
        self._retention = retention
        self._context = context
        self._remover = remover
        self._claim = claim
        self._began = context.clock.monotonic()
        self._until = None if within_s is None else self._began + within_s
        self._removed: Counter[Kept] = Counter()

    async def run(self) -> Pruned:
        context, now = self._context, self._context.clock.now()
        cutoffs = core.cutoffs(await self._retention.ages(), now)
        await context.store.open_horizon(core.erasable(cutoffs), claim=self._claim)
        is_done = await self._people() and await self._jobs(cutoffs) and await self._lines(cutoffs)
        freed = self._remover.freed_bytes
        if is_done:
            freed += await self._packages(cutoffs) + await self._space()
        return Pruned(dict(self._removed), freed, is_done)

    async def _people(self) -> bool:
        """Whoever is to be forgotten, first: what was decided for their sake is carried out with all the rest."""
        store, now = self._context.store, self._context.clock.now()
        begun = await store.erasures()
        for erasure in begun:
            while await store.erase_some(erasure, now, PERSON_ROWS, claim=self._claim):
                if not await self._pause():
                    return False
        if not await self._remover.carry_out(self._claim, self._pause):
            return False
        for erasure in begun:
            await store.end_erasure(erasure, claim=self._claim)
        return True

    async def _jobs(self, cutoffs: Mapping[Kept, datetime]) -> bool:
        store, now = self._context.store, self._context.clock.now()
        for what in (kind for kind in _JOBS if kind in cutoffs):
            before = core.is_ended_before(what, cutoffs[what])
            while count := await store.mark_old(what, before, now, BATCH, claim=self._claim):
                self._removed[what] += count
                if not await self._pause() or not await self._remover.carry_out(self._claim, self._pause):
                    return False
        return True

    async def _lines(self, cutoffs: Mapping[Kept, datetime]) -> bool:
        store, now = self._context.store, self._context.clock.now()
        for what in (kind for kind in _LINES if kind in cutoffs):
            while count := await store.prune(what, cutoffs[what], now, BATCH, claim=self._claim):
                self._removed[what] += count
                if not await self._pause():
                    return False
        return True

    async def _packages(self, cutoffs: Mapping[Kept, datetime]) -> int:
        count, size = 0, 0
        if Kept.PACKAGES in cutoffs:
            count, size = await self._retention.packages(cutoffs[Kept.PACKAGES])
        self._removed[Kept.PACKAGES] += count
        seen = {**dict.fromkeys(cutoffs, 0), Kept.PACKAGES: count}
        await self._context.store.ran(seen, self._context.clock.now(), claim=self._claim)
        return size

    async def _space(self) -> int:
        given = 0
        while more := await self._context.store.give_back_space(SPACE_BYTES):
            given += more
            await self._pause()
        return given

    async def _pause(self) -> bool:
        """As long as the last step took: others have the other half. False: the time is over."""
        clock = self._context.clock
        took = clock.monotonic() - self._began
        await clock.sleep(max(0.0, took))
        self._began = clock.monotonic()
        return self._until is None or self._began < self._until


def check_changes(who: Principal, job: Job) -> None:
    if not changes_job(who, job):
        raise Forbidden(f"job {job.id} is not yours to change; ask its owner or a manager of its team")
