"""Logs and metrics: append-only streams of numbered records. They do not live in SQL rows.

A stream belongs to a task; its sources are the ranks of its attempts. Records of one source are numbered from 0 without
gaps. Appending a record twice keeps it once. A reader's cursor is a byte offset into the stream."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crucible.model.ids import TaskId


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

    async def next_number(self, task: TaskId, channel: str, attempt: int, rank: int) -> int:
        """The number of the next record expected from that source: what an agent resumes from."""
        ...

    async def read_log(self, task: TaskId, offset: int, limit_bytes: int = 1 << 20) -> LogChunk: ...

    async def read_metrics(self, task: TaskId, offset: int, limit_bytes: int = 1 << 20) -> MetricChunk: ...

    async def log_size(self, task: TaskId) -> int: ...

    async def tail_offset(self, task: TaskId, lines: int) -> int:
        """Where the last `lines` lines begin."""
        ...

    async def close(self) -> None: ...
