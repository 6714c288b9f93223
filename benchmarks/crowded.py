"""A server's folder with ten thousand jobs, the newest of which wrote a million lines: the page must show them all."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from crucible.model.ids import JobId, TaskId
from crucible.store import open_store
from crucible.testing import long_log, years

JOBS, LINES = 10_000, 1_000_000
PAST = timedelta(days=60)  # nothing is old enough to be removed


@dataclass(frozen=True, slots=True)
class Crowd:
    jobs: int
    lines: int

    @property
    def talkative(self) -> JobId:
        """Whose log is long: the newest."""
        return years.job_id(self.jobs - 1)


def fill(home: Path, jobs: int = JOBS, lines: int = LINES) -> Crowd:
    """Before a server runs there."""
    asyncio.run(_filled(home, jobs, lines))
    return Crowd(jobs, lines)


async def _filled(home: Path, jobs: int, lines: int) -> None:
    url = f"sqlite:///{home / 'crucible.db'}"
    await (await open_store(url)).close()
    now = datetime.now(UTC)
    years.fill(url, years.Years(jobs, now - PAST, now - timedelta(hours=2)))
    task = TaskId(f"t{years.FIRST + jobs - 1}")
    since = now - timedelta(hours=1)
    await long_log.write(url, home / "streams", task, lines, int(since.timestamp() * 1000))
