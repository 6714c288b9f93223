"""Samples added up over a stretch of time. What was measured stays: how many, the lowest, the highest, their mean, the
last; a stretch without samples is not there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

MINUTE_MS, QUARTER_MS = 60_000, 900_000
# Kept beside what was measured itself.
RESOLUTIONS_MS = (MINUTE_MS, QUARTER_MS)


@dataclass(frozen=True, slots=True)
class Bucket:
    """`count` samples that are numbers and `invalid` that are none (NaN, infinities); without numbers `low` and `high`
    mean nothing. `last` is the newest of all, with its step."""

    start_ms: int
    count: int
    invalid: int
    low: float
    high: float
    total: float
    last: float
    last_ms: int
    step: int | None

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


Series = Mapping[str, tuple[Bucket, ...]]  # by name; each in the order of time


@dataclass(frozen=True, slots=True)
class Chart:
    resolution_ms: int  # 0: every sample by itself
    series: Series
    left_out: int = 0  # names for which there was no room


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """For how long samples of each kind are kept, and how much of one task. What is removed is in the next coarser kind
    already; what is coarsest goes when its time is over."""

    raw: timedelta
    minutes: timedelta
    quarters: timedelta
    raw_bytes: int  # of one task and channel


@dataclass(frozen=True, slots=True)
class Kept:
    """What one round of keeping came to."""

    tasks: int = 0  # looked at
    rolled: int = 0  # of them, with new samples
    removed_files: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)  # channel -> bytes on disk
