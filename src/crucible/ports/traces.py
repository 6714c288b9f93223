"""Where traces go, and which jobs have ended: the log itself is the queue, so that nothing is kept in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from crucible.model.ids import JobId
from crucible.model.span import Span


@dataclass(frozen=True, slots=True)
class Ended:
    seq: int  # of the line that says so
    job_id: JobId
    at: datetime


class TraceBook(Protocol):
    async def ended_jobs(self, after: int, limit: int) -> Sequence[Ended]:
        """Jobs that ended later than the line `after`, in the order of the log."""
        ...

    async def newest_status(self) -> int:
        """The number of the last line that changed a job's status; 0 if there is none."""
        ...


class SpanSink(Protocol):
    async def take(self, spans: Sequence[Span]) -> None:
        """All of them, or raises Unreachable. The same spans may come again."""
        ...

    async def close(self) -> None: ...
