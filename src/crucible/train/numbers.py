"""Python, numpy and torch values as plain JSON ones. Knows neither library: a scalar is what has `item()`."""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional, Union

# Beyond this an integer is not exact as a double, and a reader may treat every number as a double.
EXACT = 1 << 53


def number(value: Any) -> Optional[Union[int, float]]:
    """A finite number, or None for NaN and the infinities, which JSON has no words for. Raises TypeError."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) <= EXACT else _finite(value)
    if isinstance(value, float):
        return _finite(value)
    if callable(getattr(value, "item", None)):
        return number(_scalar(value))
    if hasattr(value, "__float__"):
        return _finite(value)
    raise TypeError("{!r} is not a number".format(type(value).__name__))


def plain(value: Any) -> Any:
    """`value` as JSON can carry it: mappings, sequences, strings, booleans, numbers. Raises TypeError."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, Mapping):
        return _plain_mapping(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return number(value)


def _plain_mapping(value: Mapping[Any, Any]) -> Dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise TypeError("the key {!r} is not a string".format(key))
    return {key: plain(item) for key, item in value.items()}


def _finite(value: Any) -> Optional[float]:
    try:
        exact = float(value)
    except (OverflowError, ValueError):  # too large for a double; a signalling NaN
        return None
    return exact if math.isfinite(exact) else None


def _scalar(value: Any) -> Any:
    try:
        scalar = value.item()
    except (ValueError, RuntimeError) as error:  # numpy and torch, for more than one element
        raise TypeError("{!r} holds more than one number".format(type(value).__name__)) from error
    if callable(getattr(scalar, "item", None)):
        raise TypeError("{!r} is not a number".format(type(value).__name__))
    return scalar
