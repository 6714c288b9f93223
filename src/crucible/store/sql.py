"""Statements are written once as SQLAlchemy Core, compiled once per dialect, and run through the driver's own cursor:
SQLAlchemy's execution layer would cost more than most of our queries. A query is a plain function of a Transaction and
does not know where it runs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from sqlalchemy import ClauseElement, ColumnElement, bindparam, literal_column
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.types import Boolean, Text

SQLITE: Dialect = SQLiteDialect(paramstyle="named")
POSTGRES: Dialect = PGDialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]

Row = Sequence[Any]


class UniqueViolated(Exception):
    """A row with this key exists already. Whoever inserts says what that means."""


class TryAgain(Exception):
    """The database gave up this transaction for another one's sake; nothing was written."""


class Sql:
    """A Core statement; its parameters are the names of its bindparams."""

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, dict[str, Any]]] = {}

    def on(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        """The text, and the values of parameters that the statement brings along."""
        found = self._compiled.get(dialect.name)
        if found is None:
            found = self._compiled[dialect.name] = self._compile(dialect)
        return found

    def _compile(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        compiled = self._statement.compile(dialect=dialect)
        brought = {name: value for name, value in (compiled.params or {}).items() if value is not None}
        return str(compiled), brought


class Cursor(Protocol):
    """What sqlite3 and psycopg cursors have in common."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, text: Any, values: Any = ..., /) -> Any: ...
    def executemany(self, text: Any, many: Any, /) -> Any: ...
    def fetchall(self) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Driver:
    dialect: Dialect
    errors: tuple[type[Exception], ...]
    translate: Callable[[Exception], Exception]  # their errors to ours
    is_shared: bool  # several processes may write at the same time


class Transaction:
    def __init__(self, cursor: Cursor, driver: Driver) -> None:
        self._cursor = cursor
        self._driver = driver

    @property
    def dialect(self) -> Dialect:
        return self._driver.dialect

    @property
    def is_shared(self) -> bool:
        return self._driver.is_shared

    def rows(self, sql: Sql, **values: Any) -> list[Row]:
        text, brought = sql.on(self._driver.dialect)
        try:
            self._cursor.execute(text, brought | values if brought else values)
            return self._cursor.fetchall()
        except self._driver.errors as error:
            raise self._driver.translate(error) from error

    def row(self, sql: Sql, **values: Any) -> Row | None:
        found = self.rows(sql, **values)
        return found[0] if found else None

    def run(self, sql: Sql, values: Mapping[str, Any]) -> int:
        """How many rows it touched."""
        text, brought = sql.on(self._driver.dialect)
        try:
            self._cursor.execute(text, {**brought, **values})
            return self._cursor.rowcount
        except self._driver.errors as error:
            raise self._driver.translate(error) from error

    def run_many(self, sql: Sql, many: Sequence[Mapping[str, Any]]) -> None:
        if len(many) == 1:
            self.run(sql, many[0])
        elif many:
            text, brought = sql.on(self._driver.dialect)
            try:
                self._cursor.executemany(text, [{**brought, **values} for values in many])
            except self._driver.errors as error:
                raise self._driver.translate(error) from error

    def give_back(self, limit_bytes: int) -> int:
        """Free pages of the database go back to the disk; how many bytes. Only SQLite is asked: PostgreSQL's autovacuum
        does so by itself, and uses what is left again."""
        if self._driver.is_shared:
            return 0
        free, size = self._number("PRAGMA freelist_count"), self._number("PRAGMA page_size")
        for _ in range(min(free, limit_bytes // size)):
            self._number("PRAGMA incremental_vacuum")  # Python makes one step of it, which frees one page
        return (free - self._number("PRAGMA freelist_count")) * size

    def _number(self, pragma: str) -> int:
        try:
            self._cursor.execute(pragma)
            rows = self._cursor.fetchall()
        except self._driver.errors as error:
            raise self._driver.translate(error) from error
        return int(rows[0][0]) if rows else 0

    def script(self, statements: Iterable[str]) -> None:
        """DDL: text as it is, without parameters."""
        try:
            for statement in statements:
                self._cursor.execute(statement)
        except self._driver.errors as error:
            raise self._driver.translate(error) from error


# --- pieces of statements -------------------------------------------------------------------------------


def fixed(value: StrEnum) -> ColumnElement[str]:
    """A word of our own, written into the text: only so can a partial index be used."""
    return literal_column(f"'{value.value}'", Text)


def fixed_set(values: Iterable[StrEnum]) -> list[ColumnElement[str]]:
    return [fixed(value) for value in values]


class Among(ColumnElement[bool]):
    """`column` is one of the ids in the parameter, which is a JSON list: one statement for any number of ids."""

    inherit_cache = True
    type = Boolean()

    def __init__(self, column: ColumnElement[str], name: str) -> None:
        self.column = column
        self.parameter: ColumnElement[str] = bindparam(name, type_=Text)

    def self_group(self, against: Any = None) -> "Among":
        """As it is. Otherwise SQLAlchemy would write `… = 1`, and SQLite could use no index."""
        return self


@compiles(Among, "sqlite")
def _among_sqlite(element: Among, compiler: SQLCompiler, **kw: Any) -> str:
    column, ids = compiler.process(element.column, **kw), compiler.process(element.parameter, **kw)
    return f"{column} IN (SELECT value FROM json_each({ids}))"  # noqa: S608 - both are compiled SQL, not values


@compiles(Among, "postgresql")
def _among_postgres(element: Among, compiler: SQLCompiler, **kw: Any) -> str:
    column, ids = compiler.process(element.column, **kw), compiler.process(element.parameter, **kw)
    return f"{column} IN (SELECT jsonb_array_elements_text(CAST({ids} AS JSONB)))"


def as_list(values: Iterable[str]) -> str:
    return json.dumps(list(values))
