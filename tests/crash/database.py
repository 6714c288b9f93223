"""The database of a world, read from outside: by its own tables, not by our code."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg

Rows = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def rows_of(data: Path, database: str | None) -> Iterator[Rows]:
    """A server may be writing meanwhile."""
    if database is None:
        with closing(sqlite3.connect(data / "crucible.db")) as connection:
            yield lambda sql: connection.execute(sql).fetchall()
    else:
        with psycopg.connect(database) as connection:
            yield lambda sql: connection.execute(sql).fetchall()  # type: ignore[arg-type]
