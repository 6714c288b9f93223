"""The schema of a database: none yet, this program's, an older one or a newer one. A new database is made at once
from the tables; an older one is upgraded by its revisions. Both lead to the same schema, which a test proves, and each
is one transaction: a crash leaves the old schema or the new one."""

from collections.abc import Iterator
from functools import cache

from sqlalchemy import column, func, insert, or_, select, table
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from crucible.model.errors import StorageFailed
from crucible.store import account_tables as account_tables  # their tables join the metadata
from crucible.store import alert_tables as alert_tables
from crucible.store import budget_tables as budget_tables
from crucible.store import cost_tables as cost_tables
from crucible.store import health_tables as health_tables
from crucible.store import money_tables as money_tables
from crucible.store import price_tables as price_tables
from crucible.store import record_tables as record_tables
from crucible.store import retention_tables as retention_tables
from crucible.store import secret_tables as secret_tables
from crucible.store import triggers
from crucible.store.columns import metadata
from crucible.store.sql import SQLITE, Sql, Transaction

REVISION = "0015"
OLDER = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012", "0013", "0014")

# Servers that start together on one PostgreSQL take turns; the number is "crucible" in ASCII.
SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(7165919026930150501)"

_VERSIONS = table("alembic_version", column("version_num"))
_READ = Sql(select(_VERSIONS.c.version_num))
_STAMP = Sql(insert(_VERSIONS).values(version_num=REVISION))
_MASTER = table("sqlite_master", column("name"))
_SQLITE_TABLES = Sql(select(_MASTER.c.name).where(or_(_MASTER.c.name == "alembic_version", _MASTER.c.name == "jobs")))
_POSTGRES_TABLES = Sql(select(func.to_regclass("alembic_version"), func.to_regclass("jobs")))


def found_revision(tx: Transaction, name: str) -> str | None:
    """The revision of the database `name`; None for an empty one. Raises StorageFailed if it is not for us."""
    there = _tables_there(tx)
    if not there:
        return None
    rows = tx.rows(_READ) if "alembic_version" in there else []
    if len(rows) != 1:
        raise StorageFailed(f"{name} holds something else than Crucible's tables: use an empty database")
    revision = str(rows[0][0])
    if revision not in (REVISION, *OLDER):
        raise StorageFailed(
            f"{name} was made by a newer Crucible (its schema is {revision}, this one knows {REVISION}):"
            " upgrade this program, or use another database"
        )
    return revision


def _tables_there(tx: Transaction) -> set[str]:
    if tx.dialect is SQLITE:
        return {row[0] for row in tx.rows(_SQLITE_TABLES)}
    return {str(cell) for row in tx.rows(_POSTGRES_TABLES) for cell in row if cell is not None}


def create(tx: Transaction) -> None:
    """The whole present schema in an empty database."""
    tx.script(ddl(tx.dialect))
    tx.run(_STAMP, {})


@cache
def ddl(dialect: Dialect) -> tuple[str, ...]:
    return tuple(_ddl(dialect))


def _ddl(dialect: Dialect) -> Iterator[str]:
    for one in metadata.sorted_tables:
        yield str(CreateTable(one).compile(dialect=dialect))
        for index in sorted(one.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect))
    yield from triggers.statements(dialect.name)
    yield "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
