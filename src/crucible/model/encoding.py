"""Frozen values to plain JSON and back, by their type hints. Times become RFC 3339 text with microseconds, durations
seconds, enums their value; a union of events is told apart by the class name under `"type"`."""

import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin

T = TypeVar("T")

_PLAIN = frozenset({str, int, float, bool, type(None)})


def encode(value: Any) -> Any:
    """Plain JSON for `value`."""
    if type(value) in _PLAIN:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
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


def encode_event(event: Any) -> tuple[str, dict[str, Any]]:
    """The event's name and its body."""
    return type(event).__name__, encode(event)


def decode(kind: Any, data: Any) -> Any:
    """The value of type `kind` that `encode` turned into `data`."""
    kind = _unwrap(kind)
    if data is None or kind is Any:
        return data
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        (only,) = [a for a in get_args(kind) if a is not type(None)]
        return decode(only, data)
    if origin is tuple:
        item = get_args(kind)[0]
        return tuple(decode(item, v) for v in data)
    if origin is not None and issubclass(origin, Mapping):
        return {k: decode(get_args(kind)[1], v) for k, v in data.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: decode(hints[name], v) for name, v in data.items()})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if kind is datetime:
        return datetime.fromisoformat(data)
    if kind is timedelta:
        return timedelta(seconds=data)
    return data


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
