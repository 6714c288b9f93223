"""A thousand jobs in the database, and a million: what a look at one of them and at a page of fifty costs, on both
databases, with a real server each. The small and the large one are asked in turn, so that whatever slows this computer
down slows both. CPU is that of the server and of its database. Only here jobs are written in bulk, by SQL, with all
that hangs on them: through the engine a million would take days."""

import asyncio
import contextlib
import statistics
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import psycopg

from benchmarks import load, server, timing
from benchmarks.costs import Postgres, family_cpu
from benchmarks.figure import Figure
from crucible.store import open_store
from crucible.store.mapping import micros
from crucible.testing import years

FEW, MANY, LIVE = 1000, 1_000_000, 10
PAST = timedelta(days=60)  # nothing is old enough to be removed
ROUNDS = 15
REQUESTS = 300  # of a round
BOUND = 1.2
QUIET_S = 3.0
# Each fills its page of fifty in the small table too.
PAGES = ("", "&team=t1", "&project=p3", "&status=failed", "&cursor={cursor}")


@dataclass(frozen=True, slots=True)
class Site:
    one: server.Server
    made: years.Years
    database: Callable[[], float]  # CPU seconds of it, if it is a process of its own

    def gets(self, random: Random) -> list[bytes]:
        """All over the table."""
        return [self._request(f"/v1/jobs/{years.job_id(self._any(random))}") for _ in range(REQUESTS)]

    def lists(self, random: Random) -> list[bytes]:
        """The newest; those of a team, a project, a status; and whatever follows on any job."""
        pages = [PAGES[number % len(PAGES)].format(cursor=self._cursor(random)) for number in range(REQUESTS)]
        return [self._request(f"/v1/jobs?limit=50{page}") for page in pages]

    def cpu_ms(self, requests: list[bytes]) -> float:
        before = self.one.spent().cpu_s + self.database()
        load.spread(self.one, requests)
        return (self.one.spent().cpu_s + self.database() - before) / len(requests) * 1000

    def _request(self, path: str) -> bytes:
        return load.request(self.one, "GET", path)

    def _any(self, random: Random) -> int:
        """Fifty are before it, and it has ended."""
        return random.randrange(50, self.made.jobs - LIVE)

    def _cursor(self, random: Random) -> str:
        number = self._any(random)
        return urlsafe_b64encode(
            f"{micros(self.made.since) + number * self.made.step} {years.job_id(number)}".encode()
        ).decode()


Ask = Callable[[Site, Random], list[bytes]]


def measure() -> Iterator[Figure]:
    for name, opened in (("SQLite", _sqlite), ("PostgreSQL", _postgres)):
        with opened(FEW) as few, opened(MANY) as many:
            yield _compared(f"one of a million jobs against one of a thousand, {name}", few, many, Site.gets)
            yield _compared(f"a page of a million jobs against one of a thousand, {name}", few, many, Site.lists)


def _compared(name: str, few: Site, many: Site, ask: Ask) -> Figure:
    random, began = Random(7), time.perf_counter()
    for site in (few, many):
        site.cpu_ms(ask(site, random))
    pairs = [(few.cpu_ms(ask(few, random)), many.cpu_ms(ask(many, random))) for _ in range(ROUNDS)]
    return Figure(
        name=name,
        value=statistics.median(large for _, large in pairs) / statistics.median(small for small, _ in pairs),
        unit="times the CPU",
        bound=BOUND,
        cpu_s=sum(map(sum, pairs)) * REQUESTS / 1000,
        wall_s=time.perf_counter() - began,
        context={
            "small_ms": statistics.median(small for small, _ in pairs),
            "large_ms": statistics.median(large for _, large in pairs),
            "least": min(large for _, large in pairs) / min(small for small, _ in pairs),
            "requests": 2 * ROUNDS * REQUESTS,
        },
    )


# --- databases ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _sqlite(jobs: int) -> Iterator[Site]:
    with _folder() as home:
        made = _filled(f"sqlite:///{home / 'crucible.db'}", jobs)
        with _serving(home) as one:
            yield Site(one, made, lambda: 0.0)


@contextlib.contextmanager
def _postgres(jobs: int) -> Iterator[Site]:
    """Each table in a PostgreSQL of its own, so that one's housekeeping is not counted for the other."""
    with _folder() as home, _folder() as folder:
        engine = Postgres(folder)
        engine.start()
        try:
            url = engine.fresh_database()
            made = _filled(url, jobs)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
            with _serving(home, "--database", url) as one:
                yield Site(one, made, lambda: family_cpu(engine.pid))
        finally:
            engine.stop()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def _serving(home: Path, *options: str) -> Iterator[server.Server]:
    with contextlib.closing(server.launch(home, *options)) as one:
        timing.until(one.is_ready, "the server")
        timing.until(lambda: _is_quiet(one), "the server to have looked at all of it once", 300)
        yield one


def _is_quiet(one: server.Server) -> bool:
    before = one.spent()
    time.sleep(QUIET_S)
    return (one.spent() - before).cpu_s < QUIET_S / 10


def _filled(url: str, jobs: int) -> years.Years:
    async def opened() -> None:
        await (await open_store(url)).close()

    asyncio.run(opened())
    now = datetime.now(UTC)
    made = years.Years(jobs, now - PAST, now, LIVE)
    years.fill(url, made)
    return made
