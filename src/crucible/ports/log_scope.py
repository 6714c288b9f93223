"""What a line of the log is about: the request that is answered, the job that is looked at. Whoever begins with one
says so; whoever writes the line need not know."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MAX_NAME = 64

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
job_id: ContextVar[str | None] = ContextVar("job_id", default=None)
row: ContextVar[str | None] = ContextVar("row", default=None)  # of the engine: "task task-1"


@contextmanager
def looking_at(kind: str, row_id: str) -> Iterator[None]:
    """A worker of the engine looks at one row."""
    token, job = row.set(f"{kind} {row_id}"), job_id.set(row_id if kind in ("job", "workflow") else None)
    try:
        yield
    finally:
        row.reset(token)
        job_id.reset(job)


def for_job(name: str) -> None:
    """The request that is answered is about this job; a client may have made up the name."""
    job_id.set(name[:MAX_NAME])
