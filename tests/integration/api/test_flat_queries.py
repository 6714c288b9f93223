"""A server with many jobs behind it: whatever it asks its database, by itself and for whoever comes, is found by an
index on SQLite and on PostgreSQL, and never takes a look at every job there ever was."""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from crucible.api.app import ApiSettings
from crucible.model.account import Membership, Role, Team
from crucible.model.ids import UserId
from crucible.store import open_store, sql
from crucible.store.columns import metadata
from crucible.store.sql import POSTGRES, SQLITE, Sql
from crucible.testing import years
from postgres_engine import Postgres

from .conftest import NO_LIMITS, Server

JOBS, LIVE = 20_000, 10
DAYS = timedelta(days=60)  # nothing is old yet
# Loops of the engine look about once a second, some every few.
LOOK_S = 4.0
# Tables that grow with every job.
LARGE = frozenset(
    {
        "jobs",
        "tasks",
        "attempts",
        "orders",
        "leases",
        "events",
        "job_events",
        "usage",
        "postings",
        "ledger",
        "allocations",
    }
)
# A look at one row takes SQLite's machine three instructions and more: so many are no look at every job.
MOST_STEPS = 2 * JOBS
STEPS_AT_ONCE = 100
# How long spot machines lived in the last 30 days is added up every five minutes: it grows with what is bought in a
# month, not with the past.
OF_A_MONTH = "orders.is_spot AND orders.created_at >"

Asked = dict[Sql, dict[str, Any]]


def opened(url: str) -> None:
    async def scenario() -> None:
        await (await open_store(url)).close()

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Asked]]:
    """The server, and every statement that it has asked since."""
    folder = tmp_path_factory.mktemp("many")
    opened(f"sqlite:///{folder}/db")
    now = datetime.now(UTC)
    years.fill(f"sqlite:///{folder}/db", years.Years(JOBS, now - DAYS, now, LIVE))
    asked: Asked = {}
    patch = pytest.MonkeyPatch()
    patch.setattr(sql.Transaction, "rows", noting(asked, sql.Transaction.rows))
    settings = ApiSettings(version="9.9.9", providers=("fake",), rate_limits=NO_LIMITS)
    server = Server(folder=folder, settings=settings)
    server.start()
    asked.clear()  # of the start
    yield server, asked
    server.stop()
    patch.undo()


def noting(asked: Asked, rows: Any) -> Any:
    def noted(self: Any, statement: Sql, **values: Any) -> Any:
        asked.setdefault(statement, values)
        return rows(self, statement, **values)

    return noted


@pytest.fixture(scope="module")
def asked(many: tuple[Server, Asked]) -> Asked:
    """By people of every kind, and by the server itself."""
    server, found = many
    now = server.deps.clock.now()
    store = server.deps.store
    for team in ("t1", "t2"):
        server.run(store.add_team(Team(name=team, created_at=now, created_by=UserId("admin"))))
        membership = Membership(team=team, user_id=UserId("alice"), role=Role.MEMBER, created_at=now)
        server.run(store.save_member(membership))
    time.sleep(5.1)  # until nobody remembers alice without a team
    job, waiting = years.job_id(JOBS - 1000), years.job_id(JOBS - 1)
    for who in ("admin", "alice", "bob"):
        page = server.call("GET", "/v1/jobs?limit=50", who)
        assert page.status == 200
        cursor = page.json["next_cursor"]
        for query in (
            "limit=50",
            f"cursor={cursor}" if cursor else "limit=1",
            "status=running",
            "status=failed,completed",
            "status=pending,scheduled,running",
            "team=t1",
            "team=t1&status=failed",
            "project=p3",
            "user=u7",
            "name=train-17",
            "steps=true",
            f"parent={job}",
        ):
            assert server.call("GET", f"/v1/jobs?{query}", who).status == 200, query
    for path in (
        "",
        "/events?all=true",
        "/costs",
        "/tasks",
        "/attempts",
        "/artifacts",
        "/checkpoints",
        "/why",
        "/plan",
    ):
        for one in (job, waiting):
            assert server.call("GET", f"/v1/jobs/{one}{path}", "admin").status in (200, 404, 409), path
    for path in ("/v1/nodes", "/v1/me", "/v1/tokens", "/v1/prices", "/v1/audit", "/v1/kept", "/v1/costs?by=team"):
        assert server.call("GET", path, "admin").status < 500, path
    server.submit("alice")
    server.run(asks_of_retention(server))
    time.sleep(LOOK_S)
    return dict(found)


async def asks_of_retention(server: Server) -> None:
    store = server.deps.store
    await server.deps.retention.pass_once()
    await server.deps.retention.due()
    await store.is_lineage_needed(years.job_id(5))
    await store.is_source_needed(years.job_id(5))
    await store.about(UserId("u1"), None)


def test_a_server_asks_a_great_deal(asked: Asked) -> None:
    assert len(asked) > 100


def test_no_statement_looks_at_every_row_on_sqlite(many: tuple[Server, Asked], asked: Asked) -> None:
    wrong = []
    with closing(sqlite3.connect(many[0].folder / "db")) as connection:
        for statement, values in asked.items():
            text, brought = statement.on(SQLITE)
            steps = steps_of(connection, text, {**brought, **values})
            if steps > MOST_STEPS and OF_A_MONTH not in text:
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", {**brought, **values})]
                wrong.append(f"{steps} steps: {text}\n    {plan}")
    assert not wrong, "\n".join(wrong)


def steps_of(connection: sqlite3.Connection, text: str, values: dict[str, Any]) -> int:
    count = 0

    def step() -> int:
        nonlocal count
        count += STEPS_AT_ONCE
        return 0

    connection.set_progress_handler(step, STEPS_AT_ONCE)
    try:
        connection.execute(text, values).fetchall()
    finally:
        connection.set_progress_handler(None, 0)
    return count


def test_no_statement_scans_a_large_table_on_postgresql(postgres: Postgres, asked: Asked) -> None:
    url = postgres.fresh_database()
    opened(url)
    now = datetime.now(UTC)
    years.fill(url, years.Years(JOBS, now - DAYS, now, LIVE))
    wrong = []
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        # However few the rows still are: what is scanned now has no index at all.
        connection.execute("SET enable_seqscan = off")
        for statement, values in asked.items():
            text, brought = statement.on(POSTGRES)
            plan = connection.execute(f"EXPLAIN (FORMAT JSON) {text}", {**brought, **values}).fetchone()
            assert plan is not None
            scanned = scans(plan[0][0]["Plan"]) & LARGE
            if scanned:
                wrong.append(f"{sorted(scanned)}: {text}")
    assert not wrong, "\n".join(wrong)


def scans(node: dict[str, Any]) -> set[str]:
    mine = {node["Relation Name"]} if node["Node Type"] == "Seq Scan" else set()
    return mine.union(*(scans(one) for one in node.get("Plans", ())))


def test_a_look_at_an_old_job_does_not_read_its_spec_again(
    many: tuple[Server, Asked], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(text: str) -> None:
        raise AssertionError(f"read again: {text}")

    monkeypatch.setattr("crucible.engine.context.specs.load", load)
    assert many[0].call("GET", f"/v1/jobs/{years.job_id(7)}", "admin").status == 200


def test_the_large_tables_are_tables() -> None:
    assert {table.name for table in metadata.sorted_tables} >= LARGE
