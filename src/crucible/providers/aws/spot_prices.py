"""What our spot machines cost since their start. Amazon is asked for what is new; what it told before is kept as long
as a machine needs it. A machine's end is never told with prices that may be older than it."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from crucible.model.errors import ProviderError
from crucible.model.ledger import PriceSince
from crucible.model.units import MicroUsd, micro_usd
from crucible.providers.aws.listing import Instance, Pair, ended_at, is_spot, pair, started_at, whole_second

PRODUCT = "Linux/UNIX"
# A price change may be told late; this much is asked for again.
OVERLAP = timedelta(minutes=10)
# How late a change may be noticed while the machine lives: it is charged from its own second on all the same.
ASK_EVERY = timedelta(minutes=1)
# If Amazon does not tell prices, those of living machines may grow so old before nothing is told of them at all.
MAX_AGE = timedelta(minutes=10)
# Between their clock and ours.
SKEW = timedelta(minutes=1)

Entry = Mapping[str, Any]  # of DescribeSpotPriceHistory
Ask = Callable[[Sequence[str], Sequence[str], datetime], Iterable[Entry]]  # types, zones, since


class SpotPrices:
    """`ask` gives every change since a moment, and the price in force at it."""

    def __init__(self, ask: Ask, now: Callable[[], datetime]) -> None:
        self._ask = ask
        self._now = now
        self._lock = threading.Lock()
        self._known: dict[Pair, Known] = {}

    def told(self, instances: Sequence[Instance]) -> Mapping[str, tuple[PriceSince, ...]]:
        """By instance id, for spot machines. Raises what `ask` raises, unless what is known is good enough."""
        spot = [instance for instance in instances if is_spot(instance)]
        with self._lock:
            self._learn(spot)
            return {one["InstanceId"]: self._known[pair(one)].since(started_at(one), ended_at(one)) for one in spot}

    def _learn(self, spot: Sequence[Instance]) -> None:
        now, needed = self._now(), {pair(one) for one in spot}
        self._known = {key: known for key, known in self._known.items() if key in needed}
        if not any(self._is_due(one, now) for one in spot):
            return
        began = min(self._missing_since(one) for one in spot)
        try:
            entries = list(self._ask(sorted({key[1] for key in needed}), sorted({key[0] for key in needed}), began))
        except ProviderError:
            if all(self._is_good_enough(one, now) for one in spot):
                return
            raise
        for key in needed:
            self._known.setdefault(key, Known(began)).extend(began, now)
        for entry in entries:
            known = self._known.get((entry["AvailabilityZone"], entry["InstanceType"]))
            if known is not None:
                known.add(entry)
        for key in needed:
            self._known[key].forget_before(min(started_at(one) for one in spot if pair(one) == key))

    def _is_due(self, instance: Instance, now: datetime) -> bool:
        """Its first price must be known before it is told, and every price before its end is."""
        known, ended = self._known.get(pair(instance)), ended_at(instance)
        if known is None or known.began > started_at(instance) or known.until < started_at(instance) + SKEW:
            return True
        return known.until < (now - ASK_EVERY if ended is None else ended + SKEW)

    def _missing_since(self, instance: Instance) -> datetime:
        known = self._known.get(pair(instance))
        if known is None or known.began > started_at(instance):
            return started_at(instance)
        return known.until - OVERLAP

    def _is_good_enough(self, instance: Instance, now: datetime) -> bool:
        known = self._known.get(pair(instance))
        if known is None or known.began > started_at(instance) or known.until < started_at(instance) + SKEW:
            return False
        return known.until >= now - MAX_AGE if ended_at(instance) is None else not self._is_due(instance, now)


class Known:
    """One zone and type: every price from `began` to `until`, both by our clock."""

    def __init__(self, began: datetime) -> None:
        self.began = began
        self.until = began
        self._points: dict[datetime, MicroUsd] = {}

    def extend(self, began: datetime, until: datetime) -> None:
        self.began, self.until = min(self.began, began), until

    def add(self, entry: Entry) -> None:
        self._points[whole_second(entry["Timestamp"])] = micro_usd(entry["SpotPrice"])

    def forget_before(self, start: datetime) -> None:
        """All but the price in force then."""
        old = sorted(at for at in self._points if at <= start)
        for at in old[:-1]:
            del self._points[at]
        self.began = max(self.began, start)

    def since(self, start: datetime, end: datetime | None) -> tuple[PriceSince, ...]:
        """In order, the first from the start on; a price told again is no change. Empty where nobody knows one."""
        points = sorted(self._points.items())
        before = [point for point in points if point[0] <= start] or points[:1]
        later = [point for point in points if point[0] > start and (end is None or point[0] < end)]
        found: list[PriceSince] = []
        for at, price in [*before[-1:], *later]:
            if not found or price != found[-1].price_per_hour:
                found.append(PriceSince(max(at, start) if found else start, price))
        return tuple(found)
