"""What being watched costs: one request that is counted, and a real server that is scraped over a database of a million
jobs that have ended, with their money, and over one of none."""

import asyncio
import contextlib
import itertools
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import server, timing
from benchmarks.figure import Figure
from crucible.api.request_meter import RequestMeter
from crucible.exporting.prometheus import PrometheusMeter
from crucible.store import open_store
from crucible.system import SystemClock
from crucible.testing.specimens import submitted

JOBS = 1_000_000
REQUESTS = 200_000
SCRAPES = 20


def measure() -> Iterator[Figure]:
    yield _request()
    for jobs in (0, JOBS):
        with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
            home = Path(folder)
            asyncio.run(_seeded(home / "crucible.db"))
            _multiplied(home / "crucible.db", jobs)
            with contextlib.closing(server.launch(home)) as one:
                timing.until(one.is_ready, "the server")
                yield _scraped(one, jobs)


def _request() -> Figure:
    """As the guard of every request does it."""
    meter, clock = RequestMeter(PrometheusMeter()), SystemClock()
    before = timing.own()
    for _ in itertools.repeat(None, REQUESTS):
        began = clock.monotonic()
        meter.answered("GET", "/v1/jobs/{job_id}", 200, clock.monotonic() - began)
    spent = timing.own() - before
    each = spent.cpu_s / REQUESTS * 1e6
    return Figure(name="counting a request", value=each, unit="µs", bound=10.0, cpu_s=spent.cpu_s, wall_s=spent.wall_s)


def _scraped(one: server.Server, jobs: int) -> Figure:
    """The first looks at everything; those after it at what is under way, or at nothing, and never wait for a look at
    everything."""
    began = time.perf_counter()
    _scrape(one)
    first = time.perf_counter() - began
    before, times = one.spent(), []
    for _ in range(SCRAPES):
        began = time.perf_counter()
        size = _scrape(one)
        times.append(time.perf_counter() - began)
    spent = one.spent() - before
    return Figure(
        name=f"scrape with {jobs:,} jobs",
        value=spent.cpu_s / SCRAPES * 1000,
        unit="ms of server CPU",
        bound=60.0,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"median_ms": sorted(times)[SCRAPES // 2] * 1000, "first_s": first, "kb": size / 1000},
    )


def _scrape(one: server.Server) -> int:
    with contextlib.closing(one.connect()) as connection:
        connection.request("GET", "/metrics", headers=one.headers)
        answer = connection.getresponse()
        text = answer.read()
    assert answer.status == 200, text
    return len(text)


async def _seeded(path: Path) -> None:
    """One job that waits, of which all others are copies."""
    store = await open_store(f"sqlite:///{path}")
    await submitted(store, "seed")
    await store.close()


def _multiplied(path: Path, jobs: int) -> None:
    """Copies of the job that have ended, each with a posting of its own. By SQL, which takes minutes less."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous=OFF")
        columns = _columns(database, "jobs")
        values = {"id": "'j' || n", "lineage": "'j' || n", "status": "'completed'", "created_at": "created_at + n"}
        numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)"
        if jobs:
            chosen = ", ".join(values.get(name, name) for name in columns)
            database.execute(
                f"INSERT INTO jobs ({', '.join(columns)}) {numbers} SELECT {chosen} FROM numbers, jobs", (jobs,)
            )
            database.execute(
                f"INSERT INTO postings (id, at, memo, job_id, kind) {numbers}"
                " SELECT 'p' || n, n, 'an hour', 'j' || n, 'compute' FROM numbers",
                (jobs,),
            )
            for number, account, sign in ((0, "'job:j' || n", ""), (1, "'provider:fake'", "-")):
                database.execute(
                    f"INSERT INTO ledger (posting_id, number, account, amount_microusd) {numbers}"
                    f" SELECT 'p' || n, {number}, {account}, {sign}n FROM numbers",
                    (jobs,),
                )
        database.commit()


def _columns(database: sqlite3.Connection, table: str) -> list[str]:
    """Those that are not worked out from others."""
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
