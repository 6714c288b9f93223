"""Small facts as CSV files: a row is a value of `model.catalog`, a column one of its fields, an empty cell is None.
Refuses a file whose columns are not the fields."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import date, datetime
from enum import IntEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from crucible.model.errors import InvariantBroken

T = TypeVar("T")

SHIPPED = Path(__file__).parent / "data"


def read(folder: Path, name: str, kind: type[T]) -> Iterator[T]:
    """Every row of `name` as a `kind`."""
    columns = _columns(kind)
    rows = csv.reader(io.StringIO((folder / name).read_text(encoding="utf-8")))
    header = next(rows, [])
    if header != list(columns):
        raise InvariantBroken(f"{name} has the columns {header}, not {list(columns)}: run crucible prices build")
    names, readers = tuple(columns), tuple(columns.values())
    for row in rows:
        yield kind(**{name: read(cell) for name, read, cell in zip(names, readers, row, strict=True)})


def write(kind: type[Any], values: Iterable[object]) -> str:
    """The text of a file; `read` gives back equal values."""
    names = tuple(_columns(kind))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(names)
    rows.writerows([_cell(getattr(value, name)) for name in names] for value in values)
    return text.getvalue()


def table(folder: Path, name: str) -> list[Mapping[str, str]]:
    """A file of ours that has no type of its own."""
    return list(csv.DictReader(io.StringIO((folder / name).read_text(encoding="utf-8"))))


def _columns(kind: type[Any]) -> dict[str, Callable[[str], Any]]:
    hints = get_type_hints(kind)
    return {field.name: _reader(hints[field.name]) for field in fields(kind)}


def _reader(hint: Any) -> Callable[[str], Any]:
    if isinstance(hint, UnionType):
        inner = _reader(next(part for part in get_args(hint) if part is not NoneType))
        return lambda cell: inner(cell) if cell else None
    kind = getattr(hint, "__supertype__", hint)
    if kind is bool:
        return "true".__eq__
    if kind is datetime or kind is date:
        return kind.fromisoformat
    if isinstance(kind, type) and issubclass(kind, IntEnum):
        return lambda cell: kind[cell.upper()]
    return kind  # type: ignore[no-any-return]


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case IntEnum():
            return value.name.lower()
        case float() if value.is_integer():
            return str(int(value))
        case date():
            return value.isoformat()
        case _:
            return str(value)
