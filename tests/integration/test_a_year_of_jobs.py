"""A database with three years of jobs: what is old goes, what was charged stays to the micro-dollar, the server keeps
working meanwhile, and a second run finds nothing to do."""

import asyncio
import io
import json
import sqlite3
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from crucible.model.account import Role, User
from crucible.model.ids import JobId, UserId
from crucible.model.retention import Kept
from crucible.ports.store import JobQuery, Store
from crucible.ports.streams import LogLine
from crucible.store import open_store
from crucible.testing import years
from crucible.testing.specimens import submitted
from postgres_engine import Postgres
from retention_world import ROOT, Memory, memory

JOBS, LIVE, DAYS = 6_000, 20, 3 * 365
# A submit must not wait for the pruner: it shares one writer with it on SQLite. None takes a larger share of the time
# for which the pruner works.
PATIENCE = 0.25
# Whatever is in it was charged for, or says for what.
MONEY = ("usage", "postings", "ledger", "allocations", "orders", "leases")


@dataclass
class Past:
    url: str
    folder: Path
    until: datetime
    logs: list[JobId] = field(default_factory=list)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        if self.url.startswith("sqlite"):
            connection: Any = sqlite3.connect(self.url.removeprefix("sqlite:///"))
        else:
            connection = psycopg.connect(self.url)
        try:
            return [tuple(row) for row in connection.execute(statement).fetchall()]
        finally:
            connection.close()

    def count(self, table: str, where: str = "1 = 1") -> int:
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE {where}")[0][0])

    def money(self) -> dict[str, Any]:
        """Every charged row, and what reports are made of: who, where, and how much."""
        sums = {table: self.rows(f"SELECT count(*) FROM {table}") for table in MONEY}
        by_whom = (
            "SELECT j.user_id, j.team, j.project, u.provider, o.instance_type, sum(u.amount_microusd)"
            " FROM usage u JOIN jobs j ON j.id = u.job_id JOIN orders o ON o.id = u.order_id GROUP BY 1, 2, 3, 4, 5"
        )
        ledger = "SELECT account, sum(amount_microusd) FROM ledger GROUP BY 1"
        running = "SELECT id, cost_running_microusd FROM jobs"
        return sums | {
            name: sorted(self.rows(text)) for name, text in (("who", by_whom), ("ledger", ledger), ("jobs", running))
        }


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    folder = tmp_path_factory.mktemp("years")
    if request.param == "sqlite":
        url = f"sqlite:///{folder}/crucible.db"
    else:
        server: Postgres = request.getfixturevalue("postgres")
        url = server.fresh_database()
    asyncio.run(_opened(url))
    until = datetime.now(UTC)
    years.fill(url, years.Years(JOBS, until - timedelta(days=DAYS), until, LIVE))
    made = Past(url, folder, until)
    asyncio.run(_with_logs(made))
    yield made


async def _opened(url: str) -> None:
    await (await open_store(url)).close()


async def _with_logs(past: Past) -> None:
    """One job in three hundred wrote something: the first of three years ago, the last of yesterday."""
    async with memory(past.url, past.folder) as made:
        for number in range(0, JOBS - LIVE, 300):
            line = LogLine(attempt=1, rank=0, n=0, at_ms=0, stream="out", text=f"hello {number}")
            task = (await made.store.job_tasks(years.job_id(number)))[0]
            await made.streams.append_log(task.id, [line])
            past.logs.append(years.job_id(number))


def test_three_years_are_pruned_while_the_server_works(past: Past) -> None:
    before, rows = past.money(), past.count("jobs")
    took = asyncio.run(_prune_while_submitting(past))
    assert len(took) > 1 / PATIENCE and max(took) < PATIENCE * sum(took), f"a submit took {max(took):.3f} s"
    day = timedelta(days=1)
    jobs_due = int((DAYS - 730) / DAYS * (JOBS - LIVE))
    events_due = int((DAYS - 365) / DAYS * (JOBS - LIVE))
    slack = 3 * JOBS // DAYS  # the day that histories settle, and the hour of a run
    assert abs(past.count("jobs", "removed_at IS NOT NULL") - jobs_due) <= slack
    assert abs(past.count("events") - (JOBS - events_due) * len(years.HISTORY)) <= 4 * slack + 2 * len(took) + 4 * LIVE
    assert past.count("plans") == 0 and past.count("removals") == 0
    assert past.count("jobs") == rows + len(took)
    after = past.money()
    known = {row[0] for row in before["jobs"]}
    after["jobs"] = [row for row in after["jobs"] if row[0] in known]
    assert after == before
    assert past.count("jobs", "removed_at IS NOT NULL AND spec_yaml <> ''") == 0
    assert past.count("orders", "body <> '{}'") == past.count(
        "orders", "job_id IN (SELECT id FROM jobs WHERE removed_at IS NULL)"
    )
    assert day


async def _prune_while_submitting(past: Past) -> list[float]:
    async with memory(past.url, past.folder) as made:
        due = await made.retention.due()
        assert due[Kept.JOBS] > JOBS * 0.3 and due[Kept.LOGS] > due[Kept.JOBS], due
        pruning = asyncio.create_task(made.retention.pass_once())
        took = await _submit_until(made.store, pruning)
        done = pruning.result()
        assert done.is_done and done.removed[Kept.JOBS] == due[Kept.JOBS]
        assert done.removed[Kept.LOGS] > done.removed[Kept.EVENTS] > done.removed[Kept.JOBS]
        return took


async def _submit_until(store: Store, pruning: "asyncio.Task[Any]") -> list[float]:
    took = []
    while not pruning.done():
        began = time.perf_counter()
        await submitted(store, f"new-{len(took)}")
        await asyncio.sleep(0.02)
        took.append(time.perf_counter() - began)
    return took


def test_a_second_run_does_nothing(past: Past) -> None:
    async def scenario() -> None:
        async with memory(past.url, past.folder) as made:
            assert not any((await made.retention.due()).values())
            done = await made.retention.pass_once()
            assert done.is_done and not any(done.removed.values())

    before = past.money()
    asyncio.run(scenario())
    assert past.money() == before


def test_logs_of_ninety_days_are_there_and_older_ones_are_not(past: Past) -> None:
    async def scenario() -> list[JobId]:
        async with memory(past.url, past.folder) as made:
            return [job_id for job_id in past.logs if await _has_log(made, job_id)]

    there = asyncio.run(scenario())
    since = past.until - timedelta(days=90)
    young = f"finished_at >= {int(since.timestamp() * 1_000_000)}"
    assert there == [id_ for id_ in past.logs if past.count("jobs", f"id = '{id_}' AND {young}")]
    assert there and len(list((past.folder / "streams").iterdir())) == len(there)


async def _has_log(made: Memory, job_id: JobId) -> bool:
    tasks = await made.store.job_tasks(job_id)
    return bool(tasks) and bool((await made.streams.read_log(tasks[0].id, 0)).lines)


def test_the_database_is_whole(past: Past) -> None:
    if past.url.startswith("sqlite"):
        assert past.rows("PRAGMA foreign_key_check") == []
        assert past.rows("PRAGMA integrity_check") == [("ok",)]
        assert past.rows("PRAGMA freelist_count")[0][0] == 0  # what was freed went back to the disk
    for child, column, parent in (
        ("tasks", "job_id", "jobs"),
        ("attempts", "task_id", "tasks"),
        ("leases", "order_id", "orders"),
        ("allocations", "attempt_id", "attempts"),
        ("usage", "lease_id", "leases"),
    ):
        assert past.count(child, f"{column} NOT IN (SELECT id FROM {parent})") == 0


def test_a_person_of_many_jobs_has_all_of_it_in_pieces(past: Past) -> None:
    async def scenario() -> tuple[bytes, int]:
        async with memory(past.url, past.folder) as made:
            await made.store.add_user(User(id=UserId("u0"), name="u0", role=Role.MEMBER, created_at=past.until))
            archive, largest = io.BytesIO(), 0
            async for piece in await made.privacy.export(ROOT, UserId("u0"), True):
                largest = max(largest, len(piece))
                archive.write(piece)
            return archive.getvalue(), largest

    data, largest = asyncio.run(scenario())
    assert largest < 1 << 20
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        names = archive.getnames()
        jobs = [
            json.loads(line)
            for name in names
            if name.startswith("jobs/")
            for line in (archive.extractfile(name) or io.BytesIO()).read().splitlines()
        ]
    mine = past.count("jobs", "user_id = 'u0' AND removed_at IS NULL")
    assert len(jobs) == mine > 50 and {job["user_id"] for job in jobs} == {"u0"}
    assert {"users", "tasks", "orders", "usage", "events", "log"} <= {name.split("/")[0] for name in names}


def test_a_person_of_many_jobs_is_forgotten_and_their_costs_are_not(past: Past) -> None:
    before = past.money()

    async def scenario() -> UserId:
        async with memory(past.url, past.folder) as made:
            waiting = (await made.store.jobs(JobQuery(user_id=UserId("u1"), limit=100))).items
            assert waiting
            await made.store.add_user(User(id=UserId("u1"), name="u1", role=Role.MEMBER, created_at=past.until))
            erasure, is_done = await made.privacy.forget(ROOT, UserId("u1"), keeps_jobs=False)
            while not is_done:
                await made.retention.pass_once()
                is_done = not await made.store.erasures()
            return erasure.pseudonym

    if past.count("jobs", "user_id = 'u1' AND finished_at IS NULL"):
        pytest.fail("u1 should have no job that waits")
    pseudonym = asyncio.run(scenario())
    after = past.money()
    assert past.count("jobs", "user_id = 'u1'") == 0
    assert {row for row in before["who"] if row[0] != "u1"} < set(after["who"])
    theirs = sum(row[-1] for row in before["who"] if row[0] == "u1")
    assert sum(row[-1] for row in after["who"] if row[0] == pseudonym) == theirs > 0
    assert after["ledger"] == before["ledger"]
    if past.url.startswith("sqlite"):
        assert past.rows("PRAGMA foreign_key_check") == []
