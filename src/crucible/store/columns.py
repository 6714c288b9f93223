"""The few kinds of columns there are. Every value is a plain number or text, so that a row needs no type processor:
times are microseconds since 1970 (UTC), money is micro-dollars, nested values are JSON text."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Double,
    Index,
    Integer,
    MetaData,
    Numeric,
    Text,
    text,
)

metadata = MetaData(
    naming_convention={
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite counts only a column that is declared INTEGER PRIMARY KEY.
Serial = BigInteger().with_variant(Integer, "sqlite")


def key(name: str = "id", *more: Any) -> Column[str]:
    return Column(name, Text, *more, primary_key=True)


def word(name: str, *more: Any, null: bool = False) -> Column[str]:
    return Column(name, Text, *more, nullable=null)


def whole(name: str, *, null: bool = False) -> Column[int]:
    """For what people count; `big` is for what they choose, such as training steps."""
    return Column(name, Integer, nullable=null)


def big(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def number(name: str, *, null: bool = False) -> Column[float]:
    return Column(name, Double, nullable=null)


def flag(name: str, *, null: bool = False) -> Column[bool]:
    return Column(name, Boolean, nullable=null)


def moment(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def money(name: str, *, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=null)


def dollars(name: str, micro: str) -> Column[Any]:
    """A column in dollars, for people who read the tables; the program never does."""
    return Column(name, Numeric(20, 6), Computed(f"{micro} / 1000000.0", persisted=True))


def known(column: str, kind: type[StrEnum]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({words(kind)})", name=column)


def words(values: Iterable[StrEnum]) -> str:
    return ", ".join(f"'{value.value}'" for value in values)


def partial_index(name: str, *columns: Column[Any], where: str, unique: bool = False) -> Index:
    return Index(name, *columns, unique=unique, sqlite_where=text(where), postgresql_where=text(where))
