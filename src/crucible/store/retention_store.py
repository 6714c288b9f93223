"""The part of the store that keeps and forgets: every method is one transaction, handed to the runner; what removes
something checks that this worker may."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from crucible.model.audit import AuditEntry
from crucible.model.ids import Digest, JobId, TaskId, UserId
from crucible.model.retention import Erasure, Kept, KeptJob, Removal, Retained
from crucible.ports.retention import Chapter
from crucible.ports.store import Claim
from crucible.store import about, erasing, removals, retention
from crucible.store.claims import Claims
from crucible.store.runner import Runner
from crucible.store.sql import Transaction

T = TypeVar("T")


class RetentionStore:
    _runner: Runner
    _claims: Claims

    async def retention(self) -> Sequence[Retained]:
        return await self._runner.read(retention.retained)

    async def set_retention(self, what: Kept, days: int | None, entry: AuditEntry) -> None:
        await self._runner.write(lambda tx: retention.set_days(tx, what, days, entry), label="retention.set")

    async def keep_job(self, kept: KeptJob, entry: AuditEntry) -> None:
        await self._runner.write(lambda tx: retention.keep(tx, kept, entry), label="keep")

    async def unkeep_job(self, job_id: JobId, entry: AuditEntry) -> None:
        await self._runner.write(lambda tx: retention.unkeep(tx, job_id, entry), label="keep")

    async def kept_jobs(self, user_id: UserId | None, limit: int) -> Sequence[KeptJob]:
        return await self._runner.read(lambda tx: retention.kept_by(tx, user_id, limit))

    async def when_removed(self, job_id: JobId) -> Mapping[Kept, datetime]:
        return await self._runner.read(lambda tx: retention.when_removed(tx, job_id))

    # --- what goes ------------------------------------------------------------------------------------------

    async def old(self, what: Kept, before: datetime, limit: int) -> int:
        return await self._runner.read(lambda tx: retention.old(tx, what, before, limit))

    async def open_horizon(self, horizons: Mapping[Kept, datetime], *, claim: Claim) -> None:
        await self._under(claim, "removal.horizon", lambda tx: retention.open_horizon(tx, horizons))

    async def mark_old(self, what: Kept, before: datetime, now: datetime, limit: int, *, claim: Claim) -> int:
        return await self._under(claim, "removal.mark", lambda tx: retention.mark_old(tx, what, before, now, limit))

    async def removals(self, after: JobId | None, limit: int) -> Sequence[Removal]:
        return await self._runner.read(lambda tx: removals.decided(tx, after, limit))

    async def removed_tasks(
        self, job_ids: Sequence[JobId], after: tuple[JobId, int] | None, limit: int
    ) -> Sequence[tuple[JobId, int, TaskId]]:
        return await self._runner.read(lambda tx: removals.tasks_of(tx, job_ids, after, limit))

    async def is_lineage_needed(self, lineage: JobId) -> bool:
        return await self._runner.read(lambda tx: retention.is_lineage_needed(tx, lineage))

    async def is_source_needed(self, job_id: JobId) -> bool:
        return await self._runner.read(lambda tx: retention.is_source_needed(tx, job_id))

    async def forget_streams(self, tasks: Collection[TaskId], *, claim: Claim) -> None:
        await self._under(claim, "removal.streams", lambda tx: removals.forget_streams(tx, tasks))

    async def forget_checkpoints(self, lineages: Sequence[JobId], limit: int, *, claim: Claim) -> bool:
        return await self._under(claim, "removal.rows", lambda tx: removals.forget_checkpoints(tx, lineages, limit))

    async def remove_rows(
        self, what: Kept, job_ids: Sequence[JobId], now: datetime, limit: int, *, claim: Claim
    ) -> bool:
        return await self._under(claim, "removal.rows", lambda tx: removals.remove_rows(tx, what, job_ids, now, limit))

    async def prune(self, what: Kept, before: datetime, now: datetime, limit: int, *, claim: Claim) -> int:
        return await self._under(claim, "removal.rows", lambda tx: removals.prune(tx, what, before, now, limit))

    async def ran(self, removed: Mapping[Kept, int], now: datetime, *, claim: Claim) -> None:
        await self._under(claim, "removal.ran", lambda tx: retention.count(tx, removed, now))

    async def needed_packages(self, digests: Collection[Digest]) -> frozenset[Digest]:
        return await self._runner.read(lambda tx: removals.needed_packages(tx, digests))

    async def give_back_space(self, limit_bytes: int) -> int:
        return await self._runner.write(lambda tx: tx.give_back(limit_bytes), label="removal.space", durable=False)

    # --- people -----------------------------------------------------------------------------------------------

    async def about(self, user_id: UserId, after: str | None) -> tuple[Sequence[Chapter], str | None]:
        return await self._runner.snapshot(lambda tx: about.about(tx, user_id, after))

    async def begin_erasure(self, erasure: Erasure, entry: AuditEntry) -> Erasure:
        return await self._runner.write(lambda tx: erasing.begin(tx, erasure, entry), label="erasure.begin")

    async def erasures(self) -> Sequence[Erasure]:
        return await self._runner.read(erasing.begun)

    async def erase_some(self, erasure: Erasure, now: datetime, limit: int, *, claim: Claim) -> int:
        return await self._under(claim, "erasure.rows", lambda tx: erasing.erase_some(tx, erasure, now, limit))

    async def end_erasure(self, erasure: Erasure, *, claim: Claim) -> bool:
        return await self._under(claim, "erasure.end", lambda tx: erasing.end(tx, erasure))

    async def _under(self, claim: Claim, label: str, work: Callable[[Transaction], T]) -> T:
        def guarded(tx: Transaction) -> T:
            self._claims.check(tx, claim)
            return work(tx)

        return await self._runner.write(guarded, label=label)
