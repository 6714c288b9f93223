"""From what was held, and when, to the lines of an invoice. The rule is in `docs/lab.md`; nothing here is shared with
the ledger that it is compared with."""

from itertools import pairwise

from crucible.world.facts import Market, Sale, Terms
from crucible.world.invoice import Line, Stretch, at_least, charged, free
from crucible.world.machine import Disk, End, Machine, Reservation
from crucible.world.prices import PriceLine


def machine_line(
    machine: Machine, sale: Sale, prices: PriceLine | None, held: Reservation | None, terms: Terms, until: int
) -> Line:
    """Of the machine itself. `held`: the reservation that it was launched into."""
    start, end = machine.launched_at, _end(machine.ended_at, until)
    if _was_taken_early(machine, terms):
        return free(machine.id, "machine", start, end, "taken by the seller within its first hour")
    if held is not None:
        if held.ended_at is None or held.ended_at >= end:
            return free(machine.id, "machine", start, end, f"paid for by {held.id}")
        start = max(start, held.ended_at)
    stretches = _spot(prices, start, end) if prices is not None else _fixed(sale.on_demand, start, end)
    return charged(machine.id, "machine", at_least(stretches, _owed(machine.launched_at, machine.ended_at, end, terms)))


def address_line(machine: Machine, terms: Terms, until: int) -> Line | None:
    if machine.public_address is None:
        return None
    end = _end(machine.ended_at, until)
    stretches = _fixed(terms.address_microusd_per_hour, machine.launched_at, end)
    owed = _owed(machine.launched_at, machine.ended_at, end, terms)
    return charged(machine.id, "address", at_least(stretches, owed))


def disk_line(disk: Disk, terms: Terms, until: int) -> Line:
    end = _end(disk.deleted_at, until)
    stretches = _fixed(disk.gib * terms.disk_microusd_per_gib_month, disk.created_at, end, terms.month_s)
    owed = _owed(disk.created_at, disk.deleted_at, end, terms)
    return charged(disk.id, "disk", at_least(stretches, owed), disk.machine or "belongs to no machine")


def reservation_line(held: Reservation, sale: Sale, until: int) -> Line:
    """Used or not, from its creation to its cancellation."""
    end = _end(held.ended_at, until)
    return charged(held.id, "reservation", _fixed(held.count * sale.on_demand, held.created_at, end))


def _was_taken_early(machine: Machine, terms: Terms) -> bool:
    is_taken_spot = machine.market is Market.SPOT and machine.end is End.SELLER and machine.ended_at is not None
    return is_taken_spot and _end(machine.ended_at, 0) - machine.launched_at < terms.free_if_taken_within_s


def _end(ended_at: int | None, until: int) -> int:
    return until if ended_at is None else ended_at


def _owed(start: int, ended_at: int | None, end: int, terms: Terms) -> int:
    """Until when at least is charged. The minimum is due at the end only: what still runs may yet reach it, and at
    other prices."""
    return end if ended_at is None else start + terms.minimum_s


def _fixed(microusd: int, start: int, end: int, per_s: int = 3600) -> tuple[Stretch, ...]:
    return (Stretch(from_at=start, to_at=end, microusd_per=microusd, per_s=per_s),)


def _spot(prices: PriceLine, start: int, end: int) -> tuple[Stretch, ...]:
    """One for each price that was in force for at least a second; the price at `start` if there was none."""
    points = prices.within(start, max(end - 1, start))
    bounds = [start, *(point.at for point in points[1:]), end]
    return tuple(
        Stretch(from_at=begins, to_at=ends, microusd_per=point.microusd_per_hour)
        for point, (begins, ends) in zip(points, pairwise(bounds), strict=True)
    )
