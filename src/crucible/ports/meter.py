"""Figures about the running system: counters, histograms, gauges. Whoever counts binds an instrument once and calls it;
who reads the figures, and how, is the adapter's business. Labels are few and known: never ids, never people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Kind(StrEnum):
    COUNTER = "counter"  # only grows, and begins at nothing with its process
    HISTOGRAM = "histogram"
    GAUGE = "gauge"


class Source(StrEnum):
    """How the same figure of several servers is put together."""

    PROCESS = "process"  # each server has its own: add them up
    DATABASE = "database"  # every server reads the same: take the largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str  # with its unit; a counter's ends in _total
    kind: Kind
    help: str
    source: Source = Source.PROCESS
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()  # of a histogram: upper ends, in its unit


Instrument = Callable[[float], None]
Values = Mapping[tuple[str, ...], float]  # by the values of the labels


class Meter(Protocol):
    def counter(self, metric: Metric, *labels: str) -> Instrument:
        """What adds to it. Binding it shows it, at nothing."""
        ...

    def histogram(self, metric: Metric, *labels: str) -> Instrument:
        """What observes one value."""
        ...

    def show(self, metric: Metric, values: Values) -> None:
        """A gauge, or a counter that is counted elsewhere; all of it: what is not among `values` is shown no more."""
        ...

    def text(self) -> tuple[bytes, str]:
        """Everything, as whoever collects it reads it, and the type of that text. May take milliseconds: for a
        thread."""
        ...


class Unread:
    """Nobody reads it: for tests and simulations."""

    def counter(self, metric: Metric, *labels: str) -> Instrument:
        return _nothing

    def histogram(self, metric: Metric, *labels: str) -> Instrument:
        return _nothing

    def show(self, metric: Metric, values: Values) -> None:
        pass

    def text(self) -> tuple[bytes, str]:
        return b"", "text/plain; charset=utf-8"


def _nothing(value: float) -> None:
    pass


UNREAD = Unread()
