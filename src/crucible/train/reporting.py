"""Metrics and progress. A value that cannot be sent is dropped with one warning; training never stops over it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from .events import emit
from .numbers import number
from .stderr import warn_once

# An agent takes no more values in one event.
MAX_VALUES = 1000


def log(step: Optional[int] = None, **metrics: Any) -> None:
    """Report numbers: `log(step, loss=loss, accuracy=accuracy)`. NaN and infinities are sent as null."""
    send_metrics(step, metrics)


def progress(step: Optional[int] = None, total: Optional[int] = None, fraction: Optional[float] = None) -> None:
    """How far the work is, as steps, as a fraction, or both."""
    at, of = _whole("step", step), _whole("total", total)
    share = _number("fraction", fraction)
    if share is None and at is not None and of:
        share = at / of
    emit("progress", step=at, total=of, fraction=None if share is None else min(max(share, 0.0), 1.0))


def send_metrics(step: Optional[int], metrics: Mapping[str, Any]) -> None:
    at, values = _whole("step", step), _numbers(metrics)
    names = list(values)
    for start in range(0, len(names), MAX_VALUES):
        emit("metrics", step=at, values={name: values[name] for name in names[start : start + MAX_VALUES]})


def _numbers(metrics: Mapping[str, Any]) -> Dict[str, Any]:
    values = {}
    for name, value in metrics.items():
        try:
            values[str(name)] = number(value)
        except TypeError as error:
            warn_once("metric " + str(name), "metric {!r} is left out: {}".format(name, error))
    return values


def _whole(name: str, value: Any) -> Optional[int]:
    found = _number(name, value)
    return None if found is None else int(found)


def _number(name: str, value: Any) -> Optional[float]:
    try:
        return None if value is None else number(value)
    except TypeError as error:
        warn_once("argument " + name, "{} is left out: {}".format(name, error))
        return None
