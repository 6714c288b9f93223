"""Frozen values to plain JSON and back, by their type hints. Times become RFC 3339 text with microseconds, durations
seconds, enums their value; a union of events is told apart by the class name under `"type"`."""

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")

_PLAIN = frozenset({str, int, float, bool, type(None)})


def encode(value: Any) -> Any:
    """Plain JSON for `value`."""
    kind: type = type(value)
    if kind in _PLAIN:
        return value
    names = _names(kind)
    if names is not None:
        return {name: encode(getattr(value, name)) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {str(k): encode(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(v) for v in value]
    return value


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """Of the fields of a dataclass; looked up once for each: a busy server encodes ten thousand events a minute."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


def encode_event(event: Any) -> tuple[str, dict[str, Any]]:
    """The event's name and its body."""
    return type(event).__name__, encode(event)


def decode(kind: Any, data: Any) -> Any:
    """The value of type `kind` that `encode` turned into `data`."""
    read = reader(kind)
    return data if data is None or read is None else read(data)


@cache
def reader(kind: Any) -> Callable[[Any], Any] | None:
    """What makes a value of type `kind` from JSON that is not null; None: it is one. Looked at once for each type: a
    list of thousands must not ask each of its items what it is."""
    kind = _unwrap(kind)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        members = [a for a in get_args(kind) if a is not type(None)]
        if all(member in _PLAIN for member in members):
            return None  # JSON tells them apart
        (only,) = members
        return reader(only)
    if origin is tuple:
        return _items(reader(get_args(kind)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return _entries(reader(get_args(kind)[1]))
    if isinstance(kind, type) and is_dataclass(kind):
        return _fields(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if kind is datetime:
        return datetime.fromisoformat
    return (lambda data: timedelta(seconds=data)) if kind is timedelta else None


def _items(read: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    if read is None:
        return tuple
    return lambda data: tuple(None if one is None else read(one) for one in data)


def _entries(read: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    if read is None:
        return None
    return lambda data: {key: None if one is None else read(one) for key, one in data.items()}


def _fields(kind: type) -> Callable[[Any], Any]:
    """Its readers are looked for when it is first read: a kind may hold itself, as a job does by its steps."""

    def made(data: Any) -> Any:
        values = dict(data)
        for name, read in _readers(kind).items():
            if values.get(name) is not None:
                values[name] = read(values[name])
        return kind(**values)

    return made


@cache
def _readers(kind: type) -> dict[str, Callable[[Any], Any]]:
    return {name: read for name, hint in _hints(kind).items() if (read := reader(hint)) is not None}


def decode_event(union: Any, name: str, body: Mapping[str, Any]) -> Any:
    """The event called `name` of the union of event classes `union`."""
    return decode(_members(union)[name], body)


def _unwrap(kind: Any) -> Any:
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    return kind


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@cache
def _members(union: Any) -> dict[str, type]:
    return {member.__name__: member for member in get_args(union)}
