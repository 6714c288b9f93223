"""How this process is, as plain numbers that only grow (counters) or only hold now (gauges). Whoever does something
says so here in one line; `GET /v1/health` and the exporter of metrics read it. It is memory of this process only: what
other servers must know is in the database. Nothing here decides, waits or fails.

    vitals.beat("placing", within_s=5)              a loop went round; the next time is expected within so long
    vitals.restarted("placing", error)              it failed and starts again
    vitals.listed("aws/us-east-1", 0.31, 4)         a seller answered, in so many seconds, with so many machines
    vitals.unlisted("aws/us-east-1", error)         … or did not
    vitals.refused("aws/us-east-1", "no_capacity")  it sold nothing, by the code of the error
    vitals.removed("aws/us-east-1")                 a machine that nobody owned was given back
    vitals.count("reports"), vitals.gauge("streams_bytes", 17, channel="log")

    vitals.loops      name  -> Loop(name, within_s, beat_at, turns, restarts, error)     times are clock.monotonic()
    vitals.places     place -> Place(name, listings, failures, latency_s, machines, removed, refusals, …)
    vitals.samples()  all of it as Sample(name, kind, labels, value), in order, with names such as `loop_turns`,
                      `loop_age_s`, `listings`, `listing_failures`, `listing_latency_s`, `refusals`, `machines_removed`
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from crucible.ports.clock import Clock

# A label may come from outside (codes of errors); more than so many kinds of one thing are not told apart.
MOST_SERIES = 10_000
MOST_WORDS = 500

Key = tuple[str, tuple[tuple[str, str], ...]]


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    kind: Kind
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Loop:
    name: str
    within_s: float | None = None  # until the next turn at the latest; None: it waits for news
    beat_at: float | None = None
    turns: int = 0
    restarts: int = 0
    error: str | None = None  # the last one

    def late_s(self, now: float) -> float:
        """How long the next turn is overdue."""
        if self.beat_at is None or self.within_s is None:
            return 0.0
        return max(0.0, now - self.beat_at - self.within_s)


@dataclass(slots=True)
class Place:
    """A provider in a region, as this process has seen it."""

    name: str
    listings: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    latency_s: float | None = None
    machines: int = 0
    removed: int = 0
    last_good_at: datetime | None = None
    failing_since: datetime | None = None
    error: str | None = None
    refusals: Counter[str] = field(default_factory=Counter)  # by the code of the error


class Vitals:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.loops: dict[str, Loop] = {}
        self.places: dict[str, Place] = {}
        self._counters: dict[Key, float] = {}
        self._gauges: dict[Key, float] = {}

    # --- loops ----------------------------------------------------------------------------------------

    def beat(self, name: str, within_s: float | None = None) -> None:
        loop = self._loop(name)
        loop.beat_at, loop.within_s = self._clock.monotonic(), within_s
        loop.turns += 1

    def restarted(self, name: str, error: BaseException) -> None:
        loop = self._loop(name)
        loop.restarts += 1
        loop.error = f"{type(error).__name__}: {error}"[:MOST_WORDS]

    def _loop(self, name: str) -> Loop:
        return self.loops.setdefault(name, Loop(name))

    # --- sellers --------------------------------------------------------------------------------------

    def listed(self, place: str, took_s: float, machines: int) -> None:
        seen = self.place(place)
        seen.listings += 1
        seen.latency_s, seen.machines, seen.last_good_at = took_s, machines, self._clock.now()
        seen.failures_in_a_row, seen.failing_since, seen.error = 0, None, None

    def unlisted(self, place: str, error: BaseException) -> None:
        seen = self.place(place)
        seen.failures += 1
        seen.failures_in_a_row += 1
        seen.failing_since = seen.failing_since or self._clock.now()
        seen.error = (str(error) or type(error).__name__)[:MOST_WORDS]

    def refused(self, place: str, code: str) -> None:
        self.place(place).refusals[code] += 1

    def removed(self, place: str) -> None:
        self.place(place).removed += 1

    def place(self, name: str) -> Place:
        return self.places.setdefault(name, Place(name))

    # --- whatever else is counted -----------------------------------------------------------------------

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        key = _key(name, labels)
        if key in self._counters or len(self._counters) < MOST_SERIES:
            self._counters[key] = self._counters.get(key, 0) + amount

    def gauge(self, name: str, value: float, **labels: str) -> None:
        key = _key(name, labels)
        if key in self._gauges or len(self._gauges) < MOST_SERIES:
            self._gauges[key] = value

    # --- reading ----------------------------------------------------------------------------------------

    def samples(self) -> Iterator[Sample]:
        for loop in self.loops.values():
            yield from _loop_samples(loop, self._clock.monotonic())
        for place in self.places.values():
            yield from _place_samples(place, self._clock.now())
        for (name, labels), value in self._counters.items():
            yield Sample(name, Kind.COUNTER, value, dict(labels))
        for (name, labels), value in self._gauges.items():
            yield Sample(name, Kind.GAUGE, value, dict(labels))


def _key(name: str, labels: Mapping[str, str]) -> Key:
    return name, tuple(sorted(labels.items()))


def _loop_samples(loop: Loop, now: float) -> Iterator[Sample]:
    labels = {"loop": loop.name}
    yield Sample("loop_turns", Kind.COUNTER, loop.turns, labels)
    yield Sample("loop_restarts", Kind.COUNTER, loop.restarts, labels)
    if loop.beat_at is not None:
        yield Sample("loop_age_s", Kind.GAUGE, now - loop.beat_at, labels)


def _place_samples(place: Place, now: datetime) -> Iterator[Sample]:
    labels = {"place": place.name}
    yield Sample("listings", Kind.COUNTER, place.listings, labels)
    yield Sample("listing_failures", Kind.COUNTER, place.failures, labels)
    yield Sample("machines_removed", Kind.COUNTER, place.removed, labels)
    yield Sample("machines_listed", Kind.GAUGE, place.machines, labels)
    if place.latency_s is not None:
        yield Sample("listing_latency_s", Kind.GAUGE, place.latency_s, labels)
    if place.last_good_at is not None:
        yield Sample("listing_age_s", Kind.GAUGE, (now - place.last_good_at).total_seconds(), labels)
    for code, times in place.refusals.items():
        yield Sample("refusals", Kind.COUNTER, times, {**labels, "code": code})
