"""Upgrades of an older database by Alembic, which is imported only when there is one. A whole upgrade is one
transaction on either database."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from crucible.model.errors import StorageFailed
from crucible.store.runner import Failpoint
from crucible.store.schema import SCHEMA_LOCK

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade_sqlite(path: Path, failpoint: Failpoint, revision: str = "head") -> None:
    engine = create_engine(URL.create("sqlite", database=str(path)), poolclass=NullPool)
    _whole_transactions(engine)
    with engine.begin() as connection:
        upgrade(connection, failpoint, revision)


def upgrade_postgres(connect: Callable[[], Any], failpoint: Failpoint, revision: str = "head") -> None:
    """`connect` makes a connection of psycopg that does not commit by itself."""
    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(SCHEMA_LOCK)
        upgrade(connection, failpoint, revision)


def upgrade(connection: Connection, failpoint: Failpoint, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    config.attributes["failpoint"] = failpoint
    try:
        command.upgrade(config, revision)
    except SQLAlchemyError as error:
        raise StorageFailed(
            f"the upgrade of the database failed and was taken back: {error}; nothing was changed, report this"
        ) from error


def _whole_transactions(engine: Engine) -> None:
    """Left alone, Python's sqlite3 would commit before each CREATE TABLE."""

    @event.listens_for(engine, "connect")
    def manual(connection: Any, _: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
