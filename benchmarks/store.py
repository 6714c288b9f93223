"""Commits on a SQLite file, synced to disk before they are acknowledged: one writer, and as many callers as a busy
server has."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.model.change import born
from crucible.model.ids import UserId
from crucible.model.job import JobSubmitted
from crucible.model.task import TaskCreated
from crucible.store import open_store
from crucible.testing.specimens import NOW, a_job, a_task

COMMITS = 3000
CALLERS = (1, 64)


def measure() -> Iterator[Figure]:
    for callers in CALLERS:
        with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
            spent = asyncio.run(_commit_all(Path(folder), callers))
        yield Figure(
            name=f"commits, {callers} at a time",
            value=COMMITS / spent.wall_s,
            unit="per s",
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={"commits": COMMITS, "cpu_ms_each": spent.cpu_s / COMMITS * 1000},
        )


async def _commit_all(folder: Path, callers: int) -> timing.Spent:
    """A commit is a new job with its task: two rows and two events."""
    store = await open_store(f"sqlite:///{folder / 'bench.db'}")
    jobs = [a_job(f"j{n}") for n in range(COMMITS)]
    changes = [[born(job, JobSubmitted(NOW)), born(a_task(job), TaskCreated(NOW))] for job in jobs]

    async def caller(number: int) -> None:
        for change in changes[number::callers]:
            await store.submit(change, idempotency_key=None, user_id=UserId("ann"))

    before = timing.own()
    await asyncio.gather(*(caller(number) for number in range(callers)))
    spent = timing.own() - before
    await store.close()
    return spent
