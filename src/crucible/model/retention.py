"""How long things are kept. An age counts from the end of a job, or from the moment that a line was written; money is
kept for ever and has no age here."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from crucible.model.ids import JobId, UserId


class Kept(StrEnum):
    LOGS = "logs"  # of tasks, with the metrics that they wrote
    SAMPLES = "samples"  # what machines were measured at
    EVENTS = "events"  # the history of jobs
    PLANS = "plans"  # that jobs were submitted with
    JOBS = "jobs"  # all of a finished job but what it cost
    PACKAGES = "packages"  # code that no job has any more
    NOTICES = "notices"
    AUDIT = "audit"


DEFAULT_DAYS: Mapping[Kept, int] = MappingProxyType(
    {
        Kept.LOGS: 90,
        Kept.SAMPLES: 30,
        Kept.EVENTS: 365,
        Kept.PLANS: 365,
        Kept.JOBS: 730,
        Kept.PACKAGES: 30,
        Kept.NOTICES: 365,
        Kept.AUDIT: 7 * 365,
    }
)

Ages = Mapping[Kept, timedelta | None]  # None: for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """What is stored of one kind: what an admin has set, and what was done about it."""

    what: Kept
    days: int | None = None  # None: nobody has set it; 0: for ever
    horizon: datetime | None = None  # what is older may be removed: the database lets nobody touch the rest
    ran_at: datetime | None = None
    removed: int = 0  # in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Decided, and not carried out to its end yet."""

    job_id: JobId
    what: Kept
    lineage: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptJob:
    """A job that somebody wants to keep, however old it gets."""

    job_id: JobId
    user_id: UserId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`job_id` has something of `source`, which stays as long as it may be asked for."""

    source: JobId
    job_id: JobId


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A person who is being forgotten: from the moment it is decided until nothing of them is left."""

    user_id: UserId
    pseudonym: UserId  # what stands for them in what is kept
    at: datetime
    keeps_jobs: bool


@dataclass(frozen=True, slots=True)
class Pruned:
    """What one pass did. `is_done` is false where its time was over first."""

    removed: Mapping[Kept, int] = field(default_factory=dict)
    freed_bytes: int = 0
    is_done: bool = True
