"""Reports over a year of costs, on both databases: the sums that a million stretches of ten teams come to, and a
thousand machines that run. CPU is that of the server and of its database. Then what closing a stretch costs whoever
writes it, and what adding it up costs later."""

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.core.cost_parts import parts_of
from crucible.core.cost_reports import rows_of, windows
from crucible.model.costs import Charged, CostPart, CostQuery, Dimension, Moved
from crucible.model.ids import MachineId
from crucible.model.ledger import ChargeKind, Rate, Usage
from crucible.model.units import MicroUsd
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.testing.specimens import Family, running

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # where the engines of tests are
from postgres_engine import Postgres

STRETCHES = 1_000_000
JOBS = 250_000
OPEN = 1000
CLOSED = 2000
BATCH = 200
REPEATED = 5
BOUND_MS = 200.0
BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
MONTH = datetime(2026, 12, 1, tzinfo=UTC), END
DAY_US = 86_400_000_000
RATE = Rate(ChargeKind.COMPUTE, MicroUsd(32_772_600), 3600)
# What runs is useful, and a report says of every hour how much of it was.
STARTED = f"UPDATE ranks SET started_at = {int(END.timestamp() - 20 * 3600) * 1_000_000}"
D = Dimension
QUESTIONS: dict[str, tuple[tuple[D, ...], tuple[datetime, datetime]]] = {
    "a year of costs by team and day": ((D.TEAM, D.DAY), (BEGIN, END)),
    "a year of costs by user": ((D.USER,), (BEGIN, END)),
    "a year of costs by provider and region": ((D.PROVIDER, D.REGION), (BEGIN, END)),
    "a month of costs by job": ((D.JOB,), MONTH),
}
# Every job of a month is a row of its own: twenty thousand of them.
JOB_BOUND_MS = 800.0

Rows = Sequence[tuple[Any, ...]]


def measure() -> Iterator[Figure]:
    tables = year()
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        path = Path(folder) / "bench.db"
        yield from asyncio.run(_measure("SQLite", f"sqlite:///{path}", lambda: _into_sqlite(path, tables), _own_cpu))
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            url = server.fresh_database()
            both = lambda: _own_cpu() + family_cpu(server.pid)  # noqa: E731
            yield from asyncio.run(_measure("PostgreSQL", url, lambda: _into_postgres(url, tables), both))
        finally:
            server.stop()


async def _measure(name: str, url: str, fill: Callable[[], None], cpu: Callable[[], float]) -> Sequence[Figure]:
    store = await open_store(url)
    try:
        family = await running(store, nodes=1)
        figures = await _writing(name, store, family, cpu)
        await asyncio.to_thread(fill)
        for number in range(OPEN):
            await store.commit([], [a_stretch(family, f"open-{number}", number)], label="bench")
        for words, (by, period) in QUESTIONS.items():
            figures.append(await _report(f"{words}, {name}", store, CostQuery(by=by, windows=windows(*period)), cpu))
        return figures
    finally:
        await store.close()


async def _report(name: str, store: Store, query: CostQuery, cpu: Callable[[], float]) -> Figure:
    began, spent, rows = time.perf_counter(), [], 0
    for _ in range(REPEATED):
        before = cpu()
        rows = len(rows_of(await store.costs(query), query, END))
        spent.append(cpu() - before)
    return Figure(
        name=name,
        value=timing.percentile(spent, 0.5) * 1000,
        unit="ms of CPU",
        bound=JOB_BOUND_MS if D.JOB in query.by else BOUND_MS,
        cpu_s=sum(spent),
        wall_s=time.perf_counter() - began,
        context={"stretches": STRETCHES, "open": OPEN, "rows": rows},
    )


async def _writing(name: str, store: Store, family: Family, cpu: Callable[[], float]) -> list[Figure]:
    """Stretches that are closed, one transaction for fifty machines as a listing is; then they are added up."""
    stretches = [a_stretch(family, f"m-{number}", number) for number in range(CLOSED)]
    for start in range(0, CLOSED, 50):
        await store.commit([], stretches[start : start + 50], label="bench")
    before, began = cpu(), time.perf_counter()
    for start in range(0, CLOSED, 50):
        some = [replace(one, to_at=END, amount=MicroUsd(10**9)) for one in stretches[start : start + 50]]
        await store.commit([], some, label="bench")
    closing, adding = cpu() - before, cpu()
    claim = await store.claim("costs", "bench", timedelta(minutes=10))
    while claim is not None and await store.add_up(_cut, END + timedelta(hours=1), BATCH, claim=claim):
        pass
    adding = cpu() - adding
    wall = time.perf_counter() - began
    told = (("closing a stretch", closing), ("adding up a stretch of a day", adding))
    return [
        Figure(name=f"{words}, {name}", value=spent / CLOSED * 1e6, unit="µs of CPU", cpu_s=spent, wall_s=wall)
        for words, spent in told
    ]


def _cut(charged: Sequence[Charged], moved: Sequence[Moved]) -> Sequence[CostPart]:
    return tuple(parts_of(charged, moved, END))


def a_stretch(family: Family, machine: str, number: int) -> Usage:
    return Usage(
        provider="aws",
        region="us-east-1",
        machine_id=MachineId(machine),
        order_id=family.order.id,
        job_id=family.job.id,
        lease_id=family.leases[0].id,
        rate=RATE,
        from_at=END - timedelta(hours=24, seconds=number),
    )


# --- a year ---------------------------------------------------------------------------------------------------------


def year(seed: int = 7) -> dict[str, Rows]:
    """The sums of the days of a million stretches: four of each job, on one day. The hours are not read here."""
    random, keys = Random(seed), list(_keys())
    days: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0] * 6)
    jobs: dict[tuple[int, str, int], list[int]] = defaultdict(lambda: [0] * 6)
    totals: dict[tuple[str, int, str], list[int]] = defaultdict(lambda: [0] * 6)
    start = int(BEGIN.timestamp()) * 1_000_000
    for number in range(STRETCHES):
        day = start + (number * 365 // STRETCHES) * DAY_US
        key = keys[random.randrange(len(keys))]
        named = (("team", day, key[1]), ("user", day, key[3]))
        cells = [days[key[0], day], jobs[day, f"job-{number * JOBS // STRETCHES}", key[0]]]
        for sums in (*cells, *(totals[one] for one in named)):
            sums[0] += 3_277_260
            sums[1] += 3_000_000
            sums[4] += 28_800
    found: dict[str, Rows] = {"cost_keys": keys}
    for name, table in (("cost_days", days), ("cost_job_days", jobs), ("cost_day_totals", totals)):
        found[name] = [(*at, *sums) for at, sums in sorted(table.items())]
    return found


def _keys() -> Iterator[tuple[Any, ...]]:
    """Thirty people of ten teams, each on eight kinds of machines, with their disks and addresses."""
    number = 10  # after those of what was written before
    for person in range(30):
        for machine in range(8):
            for kind in ("compute", "storage", "address"):
                number += 1
                where = ("aws", f"us-east-{machine % 3}", f"p{machine}.24xlarge", "A100", "spot")
                yield (number, f"team-{person % 10}", f"project-{person % 15}", f"user-{person}", *where, kind)


def _into_sqlite(path: Path, tables: dict[str, Rows]) -> None:
    connection = sqlite3.connect(path)
    for name, rows in tables.items():
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.execute(STARTED)
    connection.execute("ANALYZE")
    connection.commit()
    connection.close()


def _into_postgres(url: str, tables: dict[str, Rows]) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for name, rows in tables.items():
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        connection.execute(STARTED)
        connection.execute("VACUUM ANALYZE")


def _own_cpu() -> float:
    return time.process_time()


def family_cpu(pid: int) -> float:
    """Of a process, its children, and those of them that have ended."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            total += int(fields[11]) + int(fields[12])
        elif stat.parent.name == str(pid):
            total += sum(map(int, fields[11:15]))
    return total / timing._TICKS_PER_S
