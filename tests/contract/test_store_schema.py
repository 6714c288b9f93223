"""Schemas: an upgraded database is the same as a new one, keeps its rows, and is never half-way."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory

from crucible.model.errors import StorageFailed
from crucible.model.ids import JobId
from crucible.store import open_store, schema
from crucible.store.entities import JOBS, TASKS
from crucible.store.migrate import MIGRATIONS, upgrade_postgres, upgrade_sqlite
from crucible.store.runner import no_failpoint
from crucible.testing.specimens import a_job, a_task, running

SINCE_BUDGETS = ("when_spent", "desired_by", "desired_at")  # columns of jobs
KILL_PROGRAM = Path(__file__).parent.parent / "crash" / "store_program.py"


class Database:
    """One database, seen from outside."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")
        creator = None if self.is_sqlite else lambda: psycopg.connect(url)
        address = url if self.is_sqlite else "postgresql+psycopg://"
        self.engine = sa.create_engine(address, poolclass=sa.NullPool, **({"creator": creator} if creator else {}))

    def upgrade(self, revision: str) -> None:
        if self.is_sqlite:
            upgrade_sqlite(Path(self.url.removeprefix("sqlite:///")), no_failpoint, revision)
        else:
            upgrade_postgres(lambda: psycopg.connect(self.url), no_failpoint, revision)

    def open(self) -> None:
        async def scenario() -> None:
            await (await open_store(self.url)).close()

        asyncio.run(scenario())

    def run(self, statement: str, **values: Any) -> list[Any]:
        with self.engine.begin() as connection:
            result = connection.execute(sa.text(statement), values)
            return list(result.fetchall()) if result.returns_rows else []

    def insert(self, table: str, row: dict[str, Any]) -> None:
        columns = ", ".join(f'"{name}"' for name in row)
        self.run(f"INSERT INTO {table} ({columns}) VALUES ({', '.join(f':{name}' for name in row)})", **row)

    def revision(self) -> str:
        return str(self.run("SELECT version_num FROM alembic_version")[0][0])

    def shape(self) -> str:
        """Everything that makes a schema, in an order of its own."""
        with self.engine.connect() as connection:
            look = sa.inspect(connection)
            tables = {
                name: {
                    "columns": sorted(map(described, look.get_columns(name))),
                    "primary key": described(look.get_pk_constraint(name)),
                    "foreign keys": sorted(map(described, look.get_foreign_keys(name))),
                    "indexes": sorted(map(described, look.get_indexes(name))),
                    "unique": sorted(map(described, look.get_unique_constraints(name))),
                    "checks": sorted(map(described, look.get_check_constraints(name))),
                }
                for name in sorted(look.get_table_names())
            }
        return json.dumps({"tables": tables, "triggers": [list(row) for row in self.run(self._triggers())]}, indent=1)

    def _triggers(self) -> str:
        if self.is_sqlite:
            return "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
        return (
            "SELECT pg_get_triggerdef(t.oid), p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid"
            " WHERE NOT t.tgisinternal ORDER BY 1"
        )


def described(thing: Any) -> str:
    if isinstance(thing, dict):
        return json.dumps({key: described(value) for key, value in thing.items() if key != "comment"}, sort_keys=True)
    return str(thing)


@pytest.fixture(params=["sqlite", "postgres"])
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Database, Database]]:
    """Two empty databases of one kind."""
    if request.param == "sqlite":
        yield Database(f"sqlite:///{tmp_path}/one.db"), Database(f"sqlite:///{tmp_path}/two.db")
    else:
        server = request.getfixturevalue("postgres")
        yield Database(server.fresh_database()), Database(server.fresh_database())


@pytest.fixture
def database(databases: tuple[Database, Database]) -> Database:
    return databases[0]


def populate_first_schema(database: Database) -> None:
    database.upgrade("0001")
    job = JOBS.pack(a_job())
    for newer in ("priority", "parent", "step", "drained", "inputs", *SINCE_BUDGETS):
        job.pop(newer)
    database.insert("jobs", job)
    task = TASKS.pack(a_task(a_job()))
    for newer in ("boots_failed", "kind", "params", "verdict", "value", "metrics", "outputs"):
        task.pop(newer)
    database.insert("tasks", task)


def test_an_upgraded_schema_is_the_same_as_a_new_one(databases: tuple[Database, Database]) -> None:
    new, old = databases
    new.open()
    old.upgrade("0001")
    assert old.shape() != new.shape()
    old.open()
    assert old.shape() == new.shape()


def test_the_program_knows_its_revisions() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    newest, *older = [script.revision for script in scripts.walk_revisions()]
    assert (newest, sorted(older)) == (schema.REVISION, sorted(schema.OLDER))


def test_rows_of_the_previous_schema_live_on(database: Database) -> None:
    populate_first_schema(database)

    async def scenario() -> None:
        store = await open_store(database.url)
        assert await store.job(JobId("j1")) == a_job()
        assert await store.job_tasks(JobId("j1")) == (a_task(a_job()),)
        await running(store, "new", priority=3)
        await store.close()

    asyncio.run(scenario())
    assert database.revision() == schema.REVISION


def test_teams_that_jobs_named_before_are_there_with_whoever_ran_them(database: Database) -> None:
    database.upgrade("0007")
    database.run("INSERT INTO users (id, name, role, created_at) VALUES ('ann', 'ann', 'member', 1)")
    for number, more in enumerate(({"team": "vision", "project": "cats"}, {"team": "vision"}, {"project": "lone"}, {})):
        job = JOBS.pack(a_job(f"j{number}", user_id="ann" if number == 0 else "gone", **more))
        database.insert("jobs", {name: value for name, value in job.items() if name not in SINCE_BUDGETS})

    async def scenario() -> None:
        store = await open_store(database.url)
        assert [team.name for team in await store.teams()] == ["vision"]
        assert [(one.name, one.team) for one in await store.projects()] == [("cats", "vision")]
        assert [(one.user_id, one.role) for one in await store.memberships()] == [("ann", "member")]
        await store.close()

    asyncio.run(scenario())


def test_a_kill_in_the_middle_of_an_upgrade_leaves_the_old_schema(database: Database) -> None:
    populate_first_schema(database)
    before = database.shape()
    program = [sys.executable, str(KILL_PROGRAM), "die", database.url, "migrate.0002"]
    done = subprocess.run(program, capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done
    assert (database.shape(), database.revision()) == (before, "0001")
    database.open()
    assert database.revision() == schema.REVISION
    assert database.run("SELECT id, priority FROM jobs") == [("j1", 0)]


def test_an_upgrade_that_fails_leaves_the_old_schema(database: Database) -> None:
    populate_first_schema(database)
    database.run("CREATE TABLE idempotency_keys (in_the_way INTEGER)")
    before = database.shape()
    with pytest.raises(StorageFailed, match=r"upgrade.*failed and was taken back.*idempotency_keys"):
        database.open()
    assert (database.shape(), database.revision()) == (before, "0001")


def test_a_newer_database_is_left_alone(database: Database) -> None:
    database.open()
    database.run("UPDATE alembic_version SET version_num = '9999'")
    before = database.shape()
    with pytest.raises(StorageFailed, match=r"newer Crucible.*9999.*upgrade this program"):
        database.open()
    assert database.shape() == before


def test_a_database_of_something_else_is_left_alone(database: Database) -> None:
    database.run("CREATE TABLE jobs (id INTEGER)")
    with pytest.raises(StorageFailed, match="something else"):
        database.open()


WHAT_IS_IMPORTED = """
import asyncio, sys
from crucible.store import open_store
async def scenario():
    await (await open_store(sys.argv[1])).close()
asyncio.run(scenario())
print("alembic" in sys.modules, "psycopg" in sys.modules)
"""


def test_a_start_does_not_pay_for_migrations_or_other_drivers(tmp_path: Path) -> None:
    for _ in range(2):  # new, then current
        program = [sys.executable, "-c", WHAT_IS_IMPORTED, f"sqlite:///{tmp_path}/crucible.db"]
        assert subprocess.run(program, capture_output=True, text=True).stdout == "False False\n"


def test_a_failed_start_gives_the_file_back(tmp_path: Path) -> None:
    path = tmp_path / "crucible.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE jobs (id INTEGER)")
    connection.close()
    for _ in range(2):
        with pytest.raises(StorageFailed, match="something else"):
            Database(f"sqlite:///{path}").open()


# --- money, whatever a program with a bug may try ----------------------------------------------------------------

CHARGED = (
    "INSERT INTO usage (provider, region, machine_id, order_id, job_id, kind, rate_microusd, per_s, from_at, to_at,"
    " amount_microusd, is_estimate) VALUES ('fake', 'r', 'm', :order_id, 'j1', 'compute', 5, 3600, 0, 7200, 10, false)"
)
OPEN = CHARGED.replace("7200, 10", "NULL, NULL").replace("'m'", "'other'")
POSTED = "INSERT INTO postings (id, at, memo, job_id, kind) VALUES ('p', 0, 'why', 'j1', 'compute')"
ENTERED = "INSERT INTO ledger (posting_id, number, account, amount_microusd) VALUES ('p', 0, 'job:j1', 10)"
FORGERIES = (
    "UPDATE usage SET amount_microusd = 1 WHERE machine_id = 'm'",
    "UPDATE usage SET to_at = NULL, amount_microusd = NULL WHERE machine_id = 'm'",
    "UPDATE usage SET rate_microusd = 1 WHERE machine_id = 'other'",
    "UPDATE usage SET from_at = 1 WHERE machine_id = 'other'",
    "DELETE FROM usage WHERE machine_id = 'm'",
    "UPDATE postings SET memo = 'another'",
    "DELETE FROM postings",
    "UPDATE ledger SET amount_microusd = 1",
    "DELETE FROM ledger",
)


def test_what_was_charged_or_posted_cannot_be_changed(database: Database) -> None:
    async def scenario() -> str:
        store = await open_store(database.url)
        family = await running(store)
        await store.close()
        return family.order.id

    order_id = asyncio.run(scenario())
    for statement in (CHARGED, OPEN):
        database.run(statement, order_id=order_id)
    for statement in (POSTED, ENTERED):
        database.run(statement)
    for forgery in FORGERIES:
        with pytest.raises(sa.exc.IntegrityError, match=r"for ever|append-only"):
            database.run(forgery)
    with pytest.raises(sa.exc.IntegrityError, match=r"(?i)unique"):
        database.run(OPEN.replace("3600, 0", "3600, 9"), order_id=order_id)  # a second open stretch of one meter
    database.run("UPDATE usage SET to_at = 3600, amount_microusd = 5 WHERE machine_id = 'other'")


# --- the log, whatever a program with a bug may try ---------------------------------------------------------------

AUDITED = (
    "INSERT INTO audit (at, user_id, token_id, action, subject, details, digest)"
    " VALUES (:at, 'u', 't', 'a', 's', '{}', 'd')"
)
HORIZON = "INSERT INTO retention (what, horizon) VALUES ('{kind}', {horizon})"
KINDS = {"events": "events", "job_events": "events", "audit": "audit"}


def test_the_log_gives_up_nothing_but_what_is_older_than_the_horizon(database: Database) -> None:
    async def scenario() -> None:
        store = await open_store(database.url)
        await running(store)
        await store.close()

    asyncio.run(scenario())
    for at in (1, 2):
        database.run(AUDITED, at=at)
    for table, kind in KINDS.items():
        database.run("DELETE FROM retention")
        newest = database.run(f"SELECT max(at) FROM {table}")[0][0]
        count = database.run(f"SELECT count(*) FROM {table}")[0][0]
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET at = 0"):
            with pytest.raises(sa.exc.IntegrityError, match="append-only"):
                database.run(statement)
        database.run(HORIZON.format(kind=kind, horizon=newest))  # the newest is not older than itself
        with pytest.raises(sa.exc.IntegrityError, match="append-only"):
            database.run(f"DELETE FROM {table}")
        assert database.run(f"SELECT count(*) FROM {table}")[0][0] == count
        database.run("UPDATE retention SET horizon = horizon + 1")
        database.run(f"DELETE FROM {table}")
        assert database.run(f"SELECT count(*) FROM {table}")[0][0] == 0


def test_no_horizon_reaches_money(database: Database) -> None:
    async def scenario() -> str:
        store = await open_store(database.url)
        family = await running(store)
        await store.close()
        return family.order.id

    order_id = asyncio.run(scenario())
    database.run(CHARGED, order_id=order_id)
    for statement in (POSTED, ENTERED):
        database.run(statement)
    for kind in ("events", "audit", "jobs"):
        database.run(HORIZON.format(kind=kind, horizon=1 << 62))
    database.run("INSERT INTO erasures (user_id, pseudonym, at, keeps_jobs) VALUES ('x', 'ann', 0, false)")
    for table in ("usage", "postings", "ledger"):
        with pytest.raises(sa.exc.IntegrityError, match=r"for ever|append-only"):
            database.run(f"DELETE FROM {table}")
