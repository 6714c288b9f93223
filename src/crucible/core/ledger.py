"""What a machine costs, worked out from what its seller says: stretches of one price, and the postings that follow.
Pure: whoever calls it writes what it returns, in the same transaction as the news that it was worked out from. It never
takes anything back; what turns out to be wrong is set right by one more posting."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import lcm

from crucible.model.ids import LeaseId
from crucible.model.lease import Machine, MachineState, Order
from crucible.model.ledger import ChargeKind, Entry, Posting, Rate, Terms, Usage
from crucible.model.units import MICRO, NOTHING, MicroUsd

HOUR_S = 3600
_SECOND = timedelta(seconds=1)
# What may have to go on cannot be empty: two stretches of one meter never begin in the same second.
_LEAST_GUESS = _SECOND
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLY = "taken by the seller so early that it is free"
_LATE = "the seller told its price or its end later"


def account(
    known: Sequence[Usage], machine: Machine, order: Order, lease_id: LeaseId | None, terms: Terms, now: datetime
) -> tuple[Usage | Posting, ...]:
    """Everything that has become true of the machine's money and is not in `known`, its stretches of all kinds so far.
    Asked again with what it returned, it returns nothing. A posting comes before the stretch that it is for: whatever
    part of the result was written, in this order, the rest is returned again."""
    if machine.started_at is None:
        return ()
    found: list[Usage | Posting] = []
    for kind, rate in _rates(known, machine, order):
        mine = tuple(sorted((usage for usage in known if usage.rate.kind is kind), key=lambda usage: usage.from_at))
        found += _Meter(mine, machine, order, lease_id, terms, rate, _whole(now)).read()
    return tuple(found)


def gone(known: Sequence[Usage], last_seen: datetime, terms: Terms) -> tuple[Usage | Posting, ...]:
    """A machine has vanished and nobody says when: what was open ends when it was last seen. Should its seller tell of
    it again, `account` goes on from there."""
    found: list[Usage | Posting] = []
    for usage in known:
        if usage.to_at is None:
            start = min(other.from_at for other in known if other.rate.kind is usage.rate.kind)
            end = max(_charged_until(start, max(_whole(last_seen), start), terms), usage.from_at + _LEAST_GUESS)
            closed = replace(usage, to_at=end, is_estimate=True)
            found += _records(replace(closed, amount=_price(closed)), _price(closed), _LATE)
    return tuple(found)


def accrued(usage: Usage, now: datetime) -> MicroUsd:
    """What a stretch has come to: its amount once it is closed, what its seconds cost so far while it runs."""
    if usage.amount is not None:
        return usage.amount
    return amount(usage.rate, max(_seconds(usage.from_at, _whole(now)), 0))


def amount(rate: Rate, seconds: int) -> MicroUsd:
    """To the nearest micro-dollar, half to even, in whole numbers only."""
    quotient, rest = divmod(rate.amount * seconds, rate.per_s)
    is_more = 2 * rest > rate.per_s or (2 * rest == rate.per_s and quotient % 2 == 1)
    return MicroUsd(quotient + is_more)


def split(total: MicroUsd, shares: Sequence[int]) -> tuple[MicroUsd, ...]:
    """In proportion to `shares` and without a rest: what rounding leaves over goes to the largest remainders, the first
    of equals first."""
    whole = sum(shares)
    if whole <= 0 or min(shares) < 0:
        raise ValueError(f"cannot split by {shares}: at least one share must be above zero, and none below")
    size, sign = abs(total), -1 if total < 0 else 1
    parts = [size * share // whole for share in shares]
    left = size - sum(parts)
    if left:
        remainders = [size * share % whole for share in shares]
        for place in sorted(range(len(shares)), key=remainders.__getitem__, reverse=True)[:left]:
            parts[place] += 1
    return tuple([MicroUsd(-part) for part in parts] if sign < 0 else parts)  # type: ignore[arg-type]


def job_account(job_id: str) -> str:
    return f"job:{job_id}"


# --- what is charged for ------------------------------------------------------------------------------------------


def _rates(known: Sequence[Usage], machine: Machine, order: Order) -> Iterator[tuple[ChargeKind, Rate]]:
    """Each kind once, with its rate as it is told now. A kind that is no longer told of is charged for all the same:
    sellers forget the disks of a machine before they forget the machine."""
    rates = {usage.rate.kind: usage.rate for usage in sorted(known, key=lambda usage: usage.from_at)}
    extras: dict[ChargeKind, Rate] = {}
    for extra in machine.extras:
        extras[extra.kind] = _together(extras[extra.kind], extra) if extra.kind in extras else extra
    rates |= extras
    if machine.prices or order.price_per_hour > 0:
        rates[ChargeKind.COMPUTE] = Rate(ChargeKind.COMPUTE, order.price_per_hour, HOUR_S)
    for kind in ChargeKind:
        if kind in rates:
            yield kind, rates[kind]


def _together(one: Rate, other: Rate) -> Rate:
    """Two disks are one rate: a machine has one meter of each kind."""
    per_s = lcm(one.per_s, other.per_s)
    total = one.amount * (per_s // one.per_s) + other.amount * (per_s // other.per_s)
    return Rate(one.kind, MicroUsd(total), per_s)


@dataclass(frozen=True, slots=True)
class _Point:
    """From this second on."""

    at: datetime
    rate: Rate


class _Meter:
    """One kind of charge of one machine."""

    def __init__(
        self,
        known: tuple[Usage, ...],
        machine: Machine,
        order: Order,
        lease_id: LeaseId | None,
        terms: Terms,
        rate: Rate,
        now: datetime,
    ) -> None:
        self.known, self.machine, self.order, self.lease_id = known, machine, order, lease_id
        self.terms, self.rate, self.now = terms, rate, now
        self.start = known[0].from_at if known else _whole(machine.started_at or now)
        self.is_end_guessed = machine.state is MachineState.GONE and machine.ended_at is None
        # When its seller says that it ended; now, if it says only that it has; None while it lives.
        told_end = now if self.is_end_guessed else machine.ended_at
        self.end = None if told_end is None else max(_whole(told_end), self.start)
        self.charged_until = None if self.end is None else _charged_until(self.start, self.end, terms)
        self.points = self._points()

    def read(self) -> Sequence[Usage | Posting]:
        if self._is_settled():
            return ()
        found: list[Usage | Posting] = []
        opened = self._opened()
        while (cut := self._next_cut(opened)) is not None:
            found += self._close(opened, cut, self._owed(cut, cut), found)
            opened = self._open_at(cut)
        if self.end is None or self.charged_until is None:
            return found if opened in self.known[-1:] else [*found, opened]
        least = opened.from_at + (_LEAST_GUESS if self.is_end_guessed else timedelta(0))
        owed = self._owed(self.end, self.charged_until)
        return [*found, *self._close(opened, max(self.charged_until, least), owed, found)]

    def _is_settled(self) -> bool:
        """Nothing is open and nothing can follow. A listing may be older than what we know: a machine whose end was
        told does not come back to life, one whose end was a guess may."""
        last = self.known[-1] if self.known else None
        if last is None or last.to_at is None:
            return False
        if last.to_at == last.from_at:
            return True  # only a told end leaves an empty stretch
        if self.charged_until is None:
            return not last.is_estimate and self._in_force(last.to_at) == last.rate
        return self.is_end_guessed or (not last.is_estimate and last.to_at >= self.charged_until)

    @property
    def _is_free(self) -> bool:
        is_taken = self.machine.was_taken and self.order.is_spot and self.rate.kind is ChargeKind.COMPUTE
        lived = None if self.end is None else _seconds(self.start, self.end)
        return is_taken and lived is not None and lived < self.terms.free_if_taken_within_s

    # --- its prices -----------------------------------------------------------------------------------------------

    def _points(self) -> Sequence[_Point]:
        """The price of every second: as told, before that as we have it already, and else as it was ordered."""
        told = self._told()
        held = [_Point(usage.from_at, usage.rate) for usage in self.known] or [_Point(self.start, self.rate)]
        before = [point for point in held if not told or point.at < told[0].at]
        return _changes([*before, *told])

    def _told(self) -> Sequence[_Point]:
        if self.rate.kind is ChargeKind.COMPUTE:
            by_second = {
                max(_whole(price.at), self.start): Rate(ChargeKind.COMPUTE, price.price_per_hour, HOUR_S)
                for price in sorted(self.machine.prices, key=lambda price: price.at)
            }
            return [_Point(at, rate) for at, rate in by_second.items()]
        if self.known and self.known[-1].rate != self.rate and self.end is None:
            return [_Point(self.known[-1].to_at or max(self.now, self.start), self.rate)]  # a disk has grown
        return ()

    def _in_force(self, at: datetime) -> Rate:
        place = bisect_right(self.points, at, key=lambda point: point.at)
        return self.points[max(place - 1, 0)].rate

    def _next_cut(self, opened: Usage) -> datetime | None:
        """When the price of an open stretch changes; now, if it turns out to have been another one all along."""
        place = bisect_right(self.points, opened.from_at, key=lambda point: point.at)
        for point in self.points[place : place + 2]:  # of two that follow, one is another price
            if point.rate != opened.rate and self._has_passed(point.at):
                return point.at
        is_wrong = self.end is None and opened.from_at < self.now and self._in_force(opened.from_at) != opened.rate
        return self.now if is_wrong and self._in_force(self.now) != opened.rate else None

    def _has_passed(self, at: datetime) -> bool:
        return at <= self.now if self.end is None else at < self.end

    # --- stretches ------------------------------------------------------------------------------------------------

    def _opened(self) -> Usage:
        """The stretch that runs, or the one to begin with."""
        last = self.known[-1] if self.known else None
        if last is None:
            return self._open_at(self.start)
        return last if last.to_at is None else self._open_at(last.to_at)

    def _open_at(self, at: datetime) -> Usage:
        return Usage(
            provider=self.order.target.provider,
            region=self.order.target.region,
            machine_id=self.machine.id,
            order_id=self.order.id,
            job_id=self.order.job_id,
            lease_id=self.lease_id,
            rate=self._in_force(at),
            from_at=at,
        )

    def _close(
        self, opened: Usage, to_at: datetime, owed: int, fresh: Sequence[Usage | Posting]
    ) -> Sequence[Usage | Posting]:
        """A stretch comes to what is owed for the life so far, by all that is known now, less what was charged before:
        the stretches of a machine always add up to what it costs."""
        booked = sum(one.amount or 0 for one in (*self.known, *fresh) if isinstance(one, Usage))
        closed = replace(opened, to_at=to_at, amount=MicroUsd(owed - booked), is_estimate=self.is_end_guessed)
        return _records(closed, NOTHING if self._is_free else _price(closed), _EARLY if self._is_free else _LATE)

    def _owed(self, before: datetime, until: datetime) -> int:
        """For the time from the start until then, by the prices of the time before."""
        if self._is_free:
            return 0
        points = [point for point in self.points if point.at <= self.start or point.at < before]
        bounds = [point.at for point in points] + [until]
        lengths = (_seconds(begins, ends) for begins, ends in pairwise(bounds))
        return sum(amount(point.rate, length) for point, length in zip(points, lengths, strict=True))


def _changes(points: Iterable[_Point]) -> Sequence[_Point]:
    """Without repetitions: one stretch of one price is rounded once."""
    found: list[_Point] = []
    for point in points:
        if not found or point.rate != found[-1].rate:
            found.append(point)
    return found


# --- records ------------------------------------------------------------------------------------------------------


def _price(closed: Usage) -> MicroUsd:
    """What its own seconds cost at its own rate."""
    return amount(closed.rate, _seconds(closed.from_at, closed.to_at or closed.from_at))


def _records(closed: Usage, cost: MicroUsd, why: str) -> Sequence[Usage | Posting]:
    """A closed stretch after its postings: what it costs by itself, and what was set right beside that."""
    at, off = closed.to_at or closed.from_at, MicroUsd((closed.amount or 0) - cost)
    memo = f"{_seconds(closed.from_at, at)} s at {closed.rate.amount / MICRO:.6f} $ per {closed.rate.per_s} s"
    postings = [("usage", cost, memo), ("correction", off, why)]
    return *(_posting(word, closed, sum_, at, text) for word, sum_, text in postings if sum_), closed


def _posting(word: str, usage: Usage, cost: MicroUsd, at: datetime, memo: str) -> Posting:
    return Posting(
        id=f"{word}/{usage.provider}/{usage.machine_id}/{usage.rate.kind}/{_seconds(_EPOCH, usage.from_at)}",
        at=at,
        memo=f"{usage.rate.kind} of {usage.machine_id}: {memo}",
        job_id=usage.job_id,
        kind=usage.rate.kind,
        entries=(
            Entry(job_account(usage.job_id), cost),
            Entry(f"provider:{usage.provider}", MicroUsd(-cost)),
        ),
    )


def _charged_until(start: datetime, end: datetime, terms: Terms) -> datetime:
    """The last unit counts as a whole, and the minimum is charged in any case."""
    units = -(-_seconds(start, end) // terms.unit_s)
    return start + max(units * terms.unit_s, terms.minimum_s) * _SECOND


def _whole(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _seconds(start: datetime, end: datetime) -> int:
    return (end - start) // _SECOND
