"""How often who may ask. People, agents and strangers have buckets of their own, so that none starves another; all of
them together take a bounded amount of memory."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from crucible.core.buckets import Level, Rate, filled, taken
from crucible.model.errors import Busy

# Of each kind. Who was not seen for the longest is forgotten first: their bucket is full again by then, or nearly.
MOST_KNOWN = 20_000
BURST_S = 10.0


def sustained(per_s: float) -> Rate:
    """So many requests a second, and those of ten seconds at once."""
    return Rate(per_s, per_s * BURST_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """Requests a second; 0: no limit."""

    person: float = 300.0  # with one token: a page that looks again, a program that submits in a loop
    agent: float = 1000.0  # with one node's key or attempt's token; with signed addresses, from one address
    stranger: float = 20.0  # from one address: what needs no token, and tokens that open nothing


class Limits:
    def __init__(self, rates: RateLimits, now: Callable[[], float]) -> None:
        self.people = Buckets(sustained(rates.person), now)
        self.agents = Buckets(sustained(rates.agent), now)
        self.signed = Buckets(sustained(rates.agent), now)
        self.anonymous = Buckets(sustained(rates.stranger), now)
        self.failures = Buckets(sustained(rates.stranger), now)


class Buckets:
    def __init__(self, rate: Rate, now: Callable[[], float]) -> None:
        self._rate = rate
        self._now = now
        self._levels: OrderedDict[str, Level] = OrderedDict()

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, name: str) -> None:
        """Raises Busy, which says when to come back."""
        if self._rate.is_unlimited:
            return
        level, wait_s = taken(self._levels.get(name), self._rate, self._now())
        self._levels[name] = level
        self._levels.move_to_end(name)
        if len(self._levels) > MOST_KNOWN:
            self._levels.popitem(last=False)
        if wait_s > 0:
            raise too_often(wait_s)

    def check(self, name: str) -> None:
        """The same without taking anything."""
        if self._rate.is_unlimited:
            return
        left = filled(self._levels.get(name), self._rate, self._now())
        if left < 1:
            raise too_often((1 - left) / self._rate.per_s)


def too_often(wait_s: float) -> Busy:
    return Busy("too many requests: ask again a little later", retry_after_s=wait_s)
