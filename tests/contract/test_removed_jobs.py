"""Every table that leads to a job is given a row, the job is removed, and what is left must be here with its reason.
Tables are found in the schema: whoever adds one says here what becomes of its rows, or removes them."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from crucible.model.ids import JobId, TaskId
from crucible.model.retention import Kept
from crucible.store import open_store, schema
from crucible.store.columns import metadata
from crucible.testing.specimens import NOW
from crucible.testing.store_retention_contract import CUTOFF, OLD, claimed, ended

from .test_store_schema import Database, database, databases

pytestmark = pytest.mark.anyio
assert schema.REVISION and database and databases  # all tables have joined the metadata; fixtures are used by name

# Columns that lead to a job, whether or not the database holds them against it.
LEADS = {
    "job_id": "old",
    "lineage": "old",
    "task_id": "old-t0",
    "attempt_id": "old-a0",
    "node_id": "old-n0",
    "lease_id": "old-l0",
    "order_id": "old-o0",
}
# Where only a text says so.
BY_TEXT = {
    "budgets": {"scope": "job", "name": "old"},
    "stream_segments": {"stream": "old-t0/log"},
}
NUMBER = 1000  # no serial number is so high, no time so early
# What outlives a job, and why.
STAYS = {
    "jobs": "a report of costs says for whom, where and when",
    "usage": "what was charged is kept for ever",
    "postings": "so are the books of it",
    "ledger": "so are the books of it",
    "unsummed_usage": "not yet in the sums of costs",
    "unsummed_postings": "not yet in the sums of costs",
    "cost_job_days": "a sum of costs",
    "allocations": "what was charged, by attempt",
    "orders": "what was bought",
    "leases": "what was held",
    "tasks": "named by orders and leases; emptied",
    "attempts": "named by allocations; emptied",
    "predictions": "the speeds that plans are made with",
    "notices": "go by their own age",
    "channels": "end by themselves within minutes",
}


def leading() -> Iterator[sa.Table]:
    """Parents first."""
    found = {"jobs"}
    for table in metadata.sorted_tables:
        parents = {key.column.table.name for key in table.foreign_keys}
        if table.name in found or parents & found or set(LEADS) & set(table.c.keys()) or table.name in BY_TEXT:
            found.add(table.name)
            yield table


def row_of(table: sa.Table, parents: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Every column has something: a row without holes leads everywhere it can lead."""
    checks = "\n".join(str(one.sqltext) for one in table.constraints if isinstance(one, sa.CheckConstraint))
    row: dict[str, Any] = {}
    for column in table.c:
        if column.computed is None:
            row[column.name] = value_of(column, checks, parents)
    return row | BY_TEXT.get(table.name, {})


def value_of(column: sa.Column[Any], checks: str, parents: dict[str, dict[str, Any]]) -> Any:
    for key in column.foreign_keys:
        if key.column.table.name in parents:
            return parents[key.column.table.name][key.column.name]
    allowed = re.search(rf"\b{column.name} IN \(([^)]*)\)", checks)
    if allowed:
        return allowed[1].split(",")[-1].strip().strip("'")  # the last of its states
    if column.name in LEADS or isinstance(column.type, sa.Text):
        own_id = LEADS.get(f"{str(column.table.name).rstrip('s')}_id", "x") if column.name == "id" else "x"
        return LEADS.get(column.name, own_id)
    return False if isinstance(column.type, sa.Boolean) else NUMBER


def fill(database: Database) -> list[str]:
    """A row in every table that has none yet."""
    parents: dict[str, dict[str, Any]] = {}
    tables = list(leading())
    others = {key.column.table for table in tables for key in table.foreign_keys} - set(tables)
    for table in (*others, *tables):
        if not left(database, [table.name]):
            database.insert(table.name, row_of(table, parents))
        parents[table.name] = dict(database.run(f"SELECT * FROM {table.name}")[0]._mapping)
    return [table.name for table in tables]


def left(database: Database, tables: list[str]) -> set[str]:
    return {name for name in tables if database.run(f"SELECT count(*) FROM {name}")[0][0]}


async def test_nothing_of_a_job_that_was_removed_is_left_but_what_is_kept_on_purpose(database: Database) -> None:
    store = await open_store(database.url)
    try:
        job = await ended(store, "old")
        claim = await claimed(store)
        await store.open_horizon({Kept.EVENTS: CUTOFF}, claim=claim)
        assert await store.mark_old(Kept.JOBS, CUTOFF - timedelta(days=1), NOW, 10, claim=claim) == 1
        tables = fill(database)
        assert left(database, tables) == set(tables) and len(tables) > 30
        await store.forget_streams([TaskId(f"{job.id}-t0")], claim=claim)
        assert await store.forget_checkpoints([JobId("old")], 10, claim=claim)
        while not await store.remove_rows(Kept.JOBS, [job.id], NOW, 1, claim=claim):
            pass
    finally:
        await store.close()
    assert left(database, tables) == set(STAYS)


@pytest.mark.parametrize(("state", "is_left"), [("sent", False), ("dead", False), ("waiting", True)])
async def test_old_messages_go_with_what_they_told_unless_they_still_wait(
    database: Database, state: str, is_left: bool
) -> None:
    store = await open_store(database.url)
    try:
        fill_messages(database, state)
        claim = await claimed(store)
        while await store.prune(Kept.NOTICES, CUTOFF, NOW, 1, claim=claim):
            pass
    finally:
        await store.close()
    expected = {"deliveries", "delivery_notices"} if is_left else set()
    assert left(database, ["notices", "deliveries", "delivery_notices"]) == expected


def fill_messages(database: Database, state: str) -> None:
    at = int(OLD.timestamp() * 1e6)
    for name in ("notices", "deliveries", "delivery_notices"):
        row = row_of(metadata.tables[name], {"deliveries": {"id": "x"}})
        moments = {column: at for column in ("at", "created_at", "not_before", "ended_at") if column in row}
        database.insert(name, row | moments | ({"state": state} if "state" in row else {}))
