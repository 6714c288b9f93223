"""What one type costs in one zone as spot, second by second. It never looks outside its own line."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from crucible.world.facts import PricePoint


class PriceLine:
    """Prices in order of time, each in force until the next."""

    def __init__(self, points: Iterable[PricePoint]) -> None:
        self._points = _changes(sorted(points, key=lambda point: point.at))
        self._times = [point.at for point in self._points]

    def at(self, now: float) -> int | None:
        """The price in force: the last one not later than `now`. None before the first."""
        place = bisect_right(self._times, now)
        return self._points[place - 1].microusd_per_hour if place else None

    def after(self, now: float) -> PricePoint | None:
        """The next change."""
        place = bisect_right(self._times, now)
        return self._points[place] if place < len(self._points) else None

    def within(self, start: float, end: float) -> Sequence[PricePoint]:
        """The price in force at `start`, with its own earlier time, and every change after it up to `end`."""
        first = max(bisect_right(self._times, start) - 1, 0)
        return self._points[first : bisect_right(self._times, end)]

    def first_above(self, limit: int, now: float) -> int | None:
        """When the price passes `limit`, after `now`."""
        place = bisect_right(self._times, now)
        return next((point.at for point in self._points[place:] if point.microusd_per_hour > limit), None)


def _changes(points: Sequence[PricePoint]) -> tuple[PricePoint, ...]:
    """Without repetitions, so that "one stretch of one price" means the same to everybody. Of several points of one
    second the last counts."""
    by_second = list({point.at: point for point in points}.values())
    rest = [new for old, new in pairwise(by_second) if new.microusd_per_hour != old.microusd_per_hour]
    return (*by_second[:1], *rest)
