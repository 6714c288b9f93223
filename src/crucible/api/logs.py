"""A job's log over plain HTTP: text that curl can show, or a JSON line per record. It is pulled from the stream piece
by piece as the reader takes it, so ten thousand followers cost ten thousand pieces at most."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.history import task_of
from crucible.api.pulse import Pulse
from crucible.api.reply import Pulled, encoded
from crucible.api.routing import Offset, TaskIndex, add, job_id_of
from crucible.api.shutdown import Shutdown
from crucible.model.errors import Conflict
from crucible.model.ids import JobId, TaskId
from crucible.model.job import Job
from crucible.model.retention import Kept
from crucible.ports.streams import LogChunk, LogLine, Streams

PIECE_BYTES = 64 << 10
MAX_TAIL = 100_000
# A silent job keeps its followers' connections alive; only JSON can say nothing.
SIGN_OF_LIFE_S = 15.0

Write = Callable[[Sequence[LogLine], int], bytes]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines of a task."""

    rank: int | None = None
    attempt: int | None = None
    since_ms: int | None = None

    @property
    def is_everything(self) -> bool:
        return self == Wanted()

    def of(self, lines: Sequence[LogLine]) -> Sequence[LogLine]:
        return lines if self.is_everything else [line for line in lines if self._fits(line)]

    def _fits(self, line: LogLine) -> bool:
        return (
            (self.rank is None or line.rank == self.rank)
            and (self.attempt is None or line.attempt == self.attempt)
            and (self.since_ms is None or line.at_ms >= self.since_ms)
        )


class LogRoutes:
    def __init__(self, deps: Deps, pulse: Pulse, shutdown: Shutdown) -> None:
        self._deps = deps
        self._pulse = pulse
        self._shutdown = shutdown

    def add_to(self, router: APIRouter) -> None:
        text = {"schema": {"type": "string"}}
        headers = {
            "X-Next-Offset": {"description": "Where to read on, unless following", "schema": {"type": "integer"}}
        }
        answer = {"content": {"text/plain": text, "application/x-ndjson": text}, "headers": headers}
        add(router, "GET", "/v1/jobs/{job_id}/logs", self.logs, None, responses={200: answer})

    async def logs(
        self,
        request: Request,
        job_id: str,
        offset: Offset = 0,
        follow: bool = False,
        tail: Annotated[int | None, Query(ge=0, le=MAX_TAIL, description="Begin with the last lines")] = None,
        rank: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
        attempt: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
        since: Annotated[
            datetime | None, Query(description="Only lines after this moment, by the node's clock")
        ] = None,
        format: Literal["text", "json"] = "text",
        task: TaskIndex = 0,
    ) -> Response:
        """All there is, from `offset` on; with `follow` also what comes, until the job is over."""
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        task_id = await task_of(self._deps.store, job, task)
        wanted = Wanted(rank, attempt, None if since is None else _ms(since))
        streams = self._deps.streams
        skip = 0
        if tail is not None:
            offset, skip = await tail_start(streams, task_id, tail, wanted)
        stop = await streams.log_size(task_id)
        if not stop and job.status.is_terminal:
            await self._check_kept(job)
        if follow:
            chunks, headers = self._following(job.id, task_id, offset), {}
        else:
            chunks, headers = _until(streams, task_id, offset, stop), {"X-Next-Offset": str(stop)}
        if format == "json":
            return Pulled(_written(chunks, wanted, skip, _json, b"\n"), "application/x-ndjson", headers)
        return Pulled(_written(chunks, wanted, skip, Text(), b""), "text/plain", headers)

    async def _check_kept(self, job: Job) -> None:
        at = (await self._deps.store.when_removed(job.id)).get(Kept.LOGS)
        if at is not None:
            raise Conflict(f"the logs of job {job.id} were removed on {at:%Y-%m-%d}: they are kept for so long only")

    async def _following(self, job_id: JobId, task_id: TaskId, offset: int) -> AsyncGenerator[LogChunk, None]:
        """Ends when the job is over and everything was read after that was known, or when the server stops."""
        monotonic = self._deps.clock.monotonic
        spoke_at = monotonic()
        while True:
            seen = await self._pulse.look(job_id)
            chunk = await self._deps.streams.read_log(task_id, offset, PIECE_BYTES)
            offset = chunk.next_offset
            if chunk.lines or monotonic() - spoke_at > SIGN_OF_LIFE_S:
                spoke_at = monotonic()
                yield chunk
            if not chunk.is_end:
                continue
            if seen.job.status.is_terminal or self._shutdown.is_stopping:
                return
            yield _NOTHING
            await self._pulse.wait(seen)


async def tail_start(streams: Streams, task: TaskId, lines: int, wanted: Wanted) -> tuple[int, int]:
    """Where to begin, and how many wanted lines to leave out there, to get the last `lines` wanted ones."""
    guess = lines
    while True:
        offset = await streams.tail_offset(task, guess)
        if wanted.is_everything:
            return offset, 0
        found = 0
        async for chunk in _until(streams, task, offset, await streams.log_size(task)):
            found += len(wanted.of(chunk.lines))
        if found >= lines or offset == 0:
            return offset, max(0, found - lines)
        guess *= 4


async def _until(streams: Streams, task: TaskId, offset: int, stop: int) -> AsyncGenerator[LogChunk, None]:
    while offset < stop:
        chunk = await streams.read_log(task, offset, min(PIECE_BYTES, stop - offset))
        if chunk.next_offset == offset:
            return
        offset = chunk.next_offset
        yield chunk


async def _written(
    chunks: AsyncIterator[LogChunk], wanted: Wanted, skip: int, write: Write, sign_of_life: bytes
) -> AsyncGenerator[bytes, None]:
    async for chunk in chunks:
        lines = wanted.of(chunk.lines)
        skipped = min(skip, len(lines))
        skip -= skipped
        if len(lines) > skipped:
            yield write(lines[skipped:], chunk.next_offset)
        else:
            yield b"" if chunk is _NOTHING or chunk.lines else sign_of_life


def _json(lines: Sequence[LogLine], next_offset: int) -> bytes:
    """A reader whose connection breaks asks again from the last `offset` it saw, and knows lines by their number."""
    last = encoded({**views.log_line(lines[-1]), "offset": next_offset})
    return b"\n".join([*(encoded(views.log_line(line)) for line in lines[:-1]), last, b""])


def _ms(moment: datetime) -> int:
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


class Text:
    """Pieces of one long line are put together again, unless another rank speaks in between."""

    def __init__(self) -> None:
        self._open: tuple[int, int] | None = None  # whose line is not finished yet

    def __call__(self, lines: Sequence[LogLine], next_offset: int) -> bytes:
        out: list[str] = []
        for line in lines:
            source = (line.attempt, line.rank)
            if self._open not in (None, source):
                out.append("\n")
            out.append(line.text if line.is_partial else f"{line.text}\n")
            self._open = source if line.is_partial else None
        return "".join(out).encode("utf-8", "replace")


# Said to the writer when there is nothing to write: a chance to notice that the reader has gone.
_NOTHING = LogChunk((), 0, True)
