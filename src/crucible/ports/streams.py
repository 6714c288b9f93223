"""Logs and metrics: append-only streams of numbered records. They do not live in SQL rows.

A stream belongs to a task; its sources are the ranks of its attempts. Records of one source are numbered from 0 without
gaps. Appending a record twice keeps it once. A reader's cursor is a byte offset into the stream.

Samples of how machines are used (`usage`) are a second stream of metrics that nobody numbers. Metrics and samples are
also kept added up, by the minute and by the quarter of an hour; what was measured itself goes after a while."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from crucible.model.ids import TaskId
from crucible.model.metrics import Chart, Keeping, Kept


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line, or with `is_partial` a piece of a line too long or too slow to wait for."""

    attempt: int
    rank: int
    n: int  # within (attempt, rank)
    at_ms: int  # by the node's clock: data, never used to decide
    stream: str  # "out", "err", "sys" (the agent's own words)
    text: str
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class MetricPoint:
    attempt: int
    rank: int
    n: int
    at_ms: int
    step: int | None
    values: dict[str, float]


class Channel(StrEnum):
    """Streams of metrics."""

    METRICS = "metrics"  # what its program reports
    USAGE = "usage"  # how its machines are used


CHANNELS = ("log", *Channel)  # all that a task has


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartQuery:
    """`to_ms` is not included. None means: all there is; the finest that `max_points` allow; all names; all ranks
    together."""

    from_ms: int | None = None
    to_ms: int | None = None
    resolution_ms: int | None = None
    max_points: int = 1000  # of each name
    names: Collection[str] | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class LogChunk:
    lines: tuple[LogLine, ...]
    next_offset: int
    is_end: bool  # nothing after next_offset at the moment of reading


@dataclass(frozen=True, slots=True)
class MetricChunk:
    points: tuple[MetricPoint, ...]
    next_offset: int
    is_end: bool


class Streams(Protocol):
    async def append_log(self, task: TaskId, lines: Sequence[LogLine]) -> None:
        """Durable when it returns. A record that is already there is skipped; a gap raises InvalidRequest."""
        ...

    async def append_metrics(self, task: TaskId, points: Sequence[MetricPoint]) -> None: ...

    async def append_samples(self, task: TaskId, points: Sequence[MetricPoint]) -> None:
        """Of the channel `usage`. Their numbers count for nothing: each is new, in the order given."""
        ...

    async def next_number(self, task: TaskId, channel: str, attempt: int, rank: int) -> int:
        """The number of the next record expected from that source: what an agent resumes from."""
        ...

    async def read_log(self, task: TaskId, offset: int, limit_bytes: int = 1 << 20) -> LogChunk: ...

    async def read_metrics(self, task: TaskId, offset: int, limit_bytes: int = 1 << 20) -> MetricChunk: ...

    async def newest_metrics(self, task: TaskId, limit_bytes: int = 1 << 16) -> Sequence[MetricPoint]:
        """The last of them, about so many bytes."""
        ...

    async def chart(self, task: TaskId, channel: Channel, query: ChartQuery) -> Chart:
        """The same answer whatever has been added up meanwhile, and whoever is asked."""
        ...

    async def keep_metrics(self, keeping: Keeping, now: datetime) -> Kept:
        """One round over all tasks: adds up what is new, and removes what is older than it need be. May be cut off
        anywhere and made again."""
        ...

    async def log_size(self, task: TaskId) -> int: ...

    async def tail_offset(self, task: TaskId, lines: int) -> int:
        """Where the last `lines` lines begin."""
        ...

    async def room(self) -> tuple[int, int]:
        """Bytes of the disk that they are on: all, and free."""
        ...

    async def remove(self, tasks: Sequence[TaskId]) -> int:
        """All of theirs, logs and metrics; how many bytes. Their segments must have been forgotten. Absent is success,
        and a crash half way leaves what the next call removes."""
        ...

    async def close(self) -> None: ...
