"""What is kept and for how long; what is removed, in steps that a crash may interrupt anywhere; people who are
forgotten, and all that is known of one."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from crucible.model.audit import AuditEntry
from crucible.model.ids import Digest, JobId, TaskId, UserId
from crucible.model.retention import Erasure, Kept, KeptJob, Removal, Retained

if TYPE_CHECKING:
    from crucible.ports.store import Claim


@dataclass(frozen=True, slots=True)
class Chapter:
    """Some rows about a person, as plain values: times in UTC, no secrets."""

    name: str  # of what they are: "jobs", "audit"
    rows: Sequence[Mapping[str, Any]]


class RetentionBook(Protocol):
    # --- the policy -----------------------------------------------------------------------------------------
    async def retention(self) -> Sequence[Retained]:
        """One for each kind that anything is known of."""
        ...

    async def set_retention(self, what: Kept, days: int | None, entry: AuditEntry) -> None:
        """None: as if nobody had set it. 0: for ever."""
        ...

    async def keep_job(self, kept: KeptJob, entry: AuditEntry) -> None:
        """However old it gets. Keeping it twice is keeping it once. Raises NotFound for a job that is gone."""
        ...

    async def unkeep_job(self, job_id: JobId, entry: AuditEntry) -> None: ...
    async def kept_jobs(self, user_id: UserId | None, limit: int) -> Sequence[KeptJob]:
        """The newest first; of one person, or everybody's."""
        ...

    async def when_removed(self, job_id: JobId) -> Mapping[Kept, datetime]:
        """Of a job that is there: what of it is not there any more, and since when."""
        ...

    # --- what goes --------------------------------------------------------------------------------------------
    async def old(self, what: Kept, before: datetime, limit: int) -> int:
        """How many are due; at most `limit` are counted."""
        ...

    async def open_horizon(self, horizons: Mapping[Kept, datetime], *, claim: "Claim") -> None:
        """What is older than this may be removed from tables that are only ever added to. It never moves back."""
        ...

    async def mark_old(self, what: Kept, before: datetime, now: datetime, limit: int, *, claim: "Claim") -> int:
        """Decide for some jobs that ended before then that their logs, their history or all of them goes; whatever is
        kept or needed stays. A job that goes is gone for everybody at once. Returns how many."""
        ...

    async def removals(self, after: JobId | None, limit: int) -> Sequence[Removal]:
        """What was decided and is not carried out, by job."""
        ...

    async def removed_tasks(
        self, job_ids: Sequence[JobId], after: tuple[JobId, int] | None, limit: int
    ) -> Sequence[tuple[JobId, int, TaskId]]:
        """The tasks of these jobs, by job and index, those above `after`: to find what they left elsewhere."""
        ...

    async def is_lineage_needed(self, lineage: JobId) -> bool:
        """Whether a job is there that saves to it."""
        ...

    async def is_source_needed(self, job_id: JobId) -> bool:
        """Whether a job that is not over was given something of it."""
        ...

    async def forget_streams(self, tasks: Collection[TaskId], *, claim: "Claim") -> None:
        """Their segments. Once nobody looks there, the files may go."""
        ...

    async def forget_checkpoints(self, lineages: Sequence[JobId], limit: int, *, claim: "Claim") -> bool:
        """The rows only; True when none is left."""
        ...

    async def remove_rows(
        self, what: Kept, job_ids: Sequence[JobId], now: datetime, limit: int, *, claim: "Claim"
    ) -> bool:
        """At most `limit` rows of each table; True when nothing was left, and the decisions are carried out. What was
        charged, and the rows that say for what, are never touched."""
        ...

    async def prune(self, what: Kept, before: datetime, now: datetime, limit: int, *, claim: "Claim") -> int:
        """Plans, notices or lines of the audit log, the oldest first. Returns how many."""
        ...

    async def ran(self, removed: Mapping[Kept, int], now: datetime, *, claim: "Claim") -> None:
        """A pass is over: count what it removed besides."""
        ...

    async def needed_packages(self, digests: Collection[Digest]) -> frozenset[Digest]:
        """Those of these that some job has."""
        ...

    async def give_back_space(self, limit_bytes: int) -> int:
        """Return room in the database to the disk, at most so many bytes; how many it was."""
        ...

    # --- people -------------------------------------------------------------------------------------------------
    async def about(self, user_id: UserId, after: str | None) -> tuple[Sequence[Chapter], str | None]:
        """All that is stored about a person, a bounded piece at a time; None: that was the last."""
        ...

    async def begin_erasure(self, erasure: Erasure, entry: AuditEntry) -> Erasure:
        """No token of theirs opens anything any more. Returns the one that was begun earlier, if there is one. Raises
        NotFound, and Conflict while jobs of theirs are not over."""
        ...

    async def erasures(self) -> Sequence[Erasure]: ...
    async def erase_some(self, erasure: Erasure, now: datetime, limit: int, *, claim: "Claim") -> int:
        """Their name is replaced, or what has it removed, in at most `limit` rows of each table; how many it were."""
        ...

    async def end_erasure(self, erasure: Erasure, *, claim: "Claim") -> bool:
        """Their account becomes one that leads to nobody. False while something that was decided is not carried
        out."""
        ...
