"""What the cloud in memory asks for its machines, and its bill. It is worked out from the terms alone: nothing here
knows how Crucible keeps its books."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from crucible.model.ledger import ChargeKind, PriceSince, Rate, Terms
from crucible.model.units import MicroUsd

_ORIGIN = datetime(2020, 1, 1, tzinfo=UTC)
# Odd figures: every rounding shows.
PER_GPU = 2_345_678
WITHOUT_GPU = 100_003
SPOT = 777_777
SURGE = 2  # and still below what is asked on demand
# The price of a spot machine is another one after so long, and comes back to itself in the end.
MOVES_EVERY = timedelta(minutes=7)
STEPS = (0, 31_337, -12_345, 99_991, 0, 0, -77_777)
MINIMUM_S = 60
FREE_IF_TAKEN_WITHIN_S = 3600
TERMS = Terms(unit_s=1, minimum_s=MINIMUM_S, free_if_taken_within_s=FREE_IF_TAKEN_WITHIN_S)
DISK = Rate(ChargeKind.STORAGE, MicroUsd(8_000_001), 30 * 86400)
ADDRESS = Rate(ChargeKind.ADDRESS, MicroUsd(5_003), 3600)
EXTRAS = (DISK, ADDRESS)
BESIDE_PER_HOUR = MicroUsd(sum(-(-rate.amount * 3600 // rate.per_s) for rate in EXTRAS))


@dataclass(frozen=True)
class Kind:
    """What is sold: so many GPUs, at a price that moves or does not."""

    gpus: int
    is_spot: bool
    surges_at: datetime | None = None  # spot prices go up then, for good

    def price(self, at: datetime) -> MicroUsd:
        if self.is_spot:
            is_dear = self.surges_at is not None and _period(at) >= _period(self.surges_at)
            return MicroUsd((SURGE if is_dear else 1) * SPOT * max(self.gpus, 1) + STEPS[_period(at) % len(STEPS)])
        return MicroUsd(PER_GPU * self.gpus or WITHOUT_GPU)

    def prices(self, start: datetime, end: datetime) -> tuple[PriceSince, ...]:
        """Of a machine that lives so long; none where they do not move."""
        return tuple(PriceSince(at, price) for at, price in self._changes(start, end)) if self.is_spot else ()

    def bill(self, start: datetime, end: datetime, *, was_taken: bool) -> int:
        """Of a machine that is over."""
        seconds = _seconds(start, end)
        until = max(seconds, MINIMUM_S)
        extras = sum(_share(rate.amount, until, rate.per_s) for rate in EXTRAS)
        is_free = self.is_spot and was_taken and seconds < FREE_IF_TAKEN_WITHIN_S
        return extras + (0 if is_free else self._compute(start, end, until))

    def _compute(self, start: datetime, end: datetime, until: int) -> int:
        begins = [(_seconds(start, at), price) for at, price in self._changes(start, end)]
        ends = [second for second, _ in begins[1:]] + [until]
        return sum(_share(price, end - second, 3600) for (second, price), end in zip(begins, ends, strict=True))

    def _changes(self, start: datetime, end: datetime) -> Iterator[tuple[datetime, MicroUsd]]:
        """Every price from `start` on, up to the second before `end`."""
        before, at = None, start
        while at < end or at == start:
            if (price := self.price(at)) != before:
                yield at, price
            before, at = price, _ORIGIN + (_period(at) + 1) * MOVES_EVERY


def _period(at: datetime) -> int:
    return (at - _ORIGIN) // MOVES_EVERY


def _seconds(start: datetime, end: datetime) -> int:
    return (end - start) // timedelta(seconds=1)


def _share(amount: int, seconds: int, per_s: int) -> int:
    return round(Fraction(amount * seconds, per_s))  # half to even
