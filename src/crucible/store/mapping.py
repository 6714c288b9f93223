"""Frozen values to rows and back, by their type hints. A field is the column of its name; money is `<name>_microusd`; a
nested value whose own fields are columns (a Target) is spread over them; any other nested value is JSON text.

No text is ever refused: a NUL, which PostgreSQL cannot hold, becomes U+2400, and half a surrogate pair `?`, in rows and
events alike. A program's last words may be binary, and its end must still be recorded."""

import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Generic, TypeVar, Union, get_args, get_origin

from sqlalchemy import BindParameter, Column, Table, bindparam

from crucible.model.encoding import decode, encode
from crucible.model.units import MicroUsd

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
NUL_SIGN = "\u2400"


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def moment(value: int) -> datetime:
    # In two parts: timedelta reckons with such large microseconds half as fast.
    seconds, rest = divmod(value, 1_000_000)
    return EPOCH + timedelta(0, seconds, rest)


def moment_or_none(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


def clean(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", NUL_SIGN).encode("utf-8", "replace").decode()


def to_json(value: Any) -> str:
    plain = encode(value)
    text = _dump(plain)
    if "\\u0000" in text:
        text = _dump(_without_nul(plain))
    return text if text.isascii() else clean(text)


def _dump(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def _without_nul(plain: Any) -> Any:
    if isinstance(plain, str):
        return clean(plain)
    if isinstance(plain, dict):
        return {clean(key): _without_nul(value) for key, value in plain.items()}
    return [_without_nul(value) for value in plain] if isinstance(plain, list) else plain


class Rows(Generic[T]):
    """How values of `kind` lie in `table`. `apart` names fields that live in a table of their own; `kept` names columns
    that the store keeps by itself, with what they hold at first."""

    def __init__(
        self,
        kind: type[T],
        table: Table,
        *,
        columns: Mapping[str, str] | None = None,
        apart: Sequence[str] = (),
        kept: Mapping[str, Any] | None = None,
    ) -> None:
        self.kind = kind
        self.table = table
        self._kept = dict(kept or {})
        self.columns: list[Column[Any]] = []
        self._names: list[str] = []
        self._packers: list[tuple[str, str, Callable[[Any], Any]]] = []
        self._unpackers: list[tuple[str, Callable[[Any], Any]]] = []
        self._spread: list[tuple[str, type, tuple[str, ...]]] = []
        hints = typing.get_type_hints(kind)
        for field in fields(kind):  # type: ignore[arg-type]
            if field.name not in apart:
                self._add(field.name, hints[field.name], (columns or {}).get(field.name))

    def _add(self, name: str, hint: Any, column: str | None) -> None:
        hint = _bare(hint)
        column = column or (f"{name}_microusd" if hint is MicroUsd and not name.endswith("_microusd") else name)
        if column in self.table.c:
            self._names.append(name)
            self.columns.append(self.table.c[column])
            pack, unpack = _converters(hint)
            self._packers.append((name, column, pack))
            if unpack is not None:
                self._unpackers.append((name, unpack))
        else:
            parts = tuple(f.name for f in fields(hint))
            self._names += parts
            self.columns += [self.table.c[part] for part in parts]
            self._spread.append((name, hint, parts))

    def __len__(self) -> int:
        return len(self.columns)

    def parameters(self) -> dict[str, BindParameter[Any]]:
        """For an INSERT of what `pack` returns."""
        return {name: bindparam(name) for name in (*(column.name for column in self.columns), *self._kept)}

    def unpack(self, row: Sequence[Any], **apart: Any) -> T:
        """The value in a row that was selected as `columns`."""
        values = dict(zip(self._names, row, strict=True))
        for name, unpack in self._unpackers:
            if values[name] is not None:
                values[name] = unpack(values[name])
        for name, kind, parts in self._spread:
            values[name] = kind(*(values.pop(part) for part in parts))
        return self.kind(**values, **apart)

    def unpack_all(self, rows: Iterable[Sequence[Any]]) -> tuple[T, ...]:
        return tuple(self.unpack(row) for row in rows)

    def pack(self, value: T) -> dict[str, Any]:
        """Every column with its value."""
        packed = {column: _packed(pack, getattr(value, name)) for name, column, pack in self._packers} | self._kept
        for name, _, parts in self._spread:
            packed |= {part: getattr(getattr(value, name), part) for part in parts}
        return packed

    def difference(self, before: T, after: T) -> dict[str, Any]:
        """Only the columns that changed: a long text that did not is not written again."""
        changed: dict[str, Any] = {}
        for name, column, pack in self._packers:
            new = getattr(after, name)
            if new != getattr(before, name):
                changed[column] = _packed(pack, new)
        for name, _, parts in self._spread:
            old, new = getattr(before, name), getattr(after, name)
            changed |= {p: getattr(new, p) for p in parts if getattr(new, p) != getattr(old, p)}
        return changed


def _packed(pack: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else pack(value)


def _bare(hint: Any) -> Any:
    """Without `| None`, and without the name of a new type except money's."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = [arg for arg in get_args(hint) if arg is not type(None)]
    while hint is not MicroUsd and hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    return hint


def _converters(hint: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any] | None]:
    if hint is str:
        return clean, None
    if hint is int or hint is MicroUsd:
        return int, None
    if hint is float:
        return float, None
    if hint is bool:
        return bool, bool
    if hint is datetime:
        return micros, moment
    if isinstance(hint, type) and issubclass(hint, Enum):
        # A look-up is eight times as fast as the enum's own call.
        return _enum_value, {member.value: member for member in hint}.__getitem__
    return to_json, _from_json(hint)


def _from_json(hint: Any) -> Callable[[str], Any]:
    """A list or mapping of plain values needs no look at its items."""
    items = get_args(hint)
    if get_origin(hint) is tuple and _bare(items[0]) is str:
        return lambda text: tuple(json.loads(text))
    if len(items) == 2 and items[1] in (Any, float, int, str):
        return json.loads
    return lambda text: decode(hint, json.loads(text))


def _enum_value(value: Enum) -> Any:
    return value.value
