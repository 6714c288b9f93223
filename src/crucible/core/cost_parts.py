"""Stretches cut at whole hours: what each hour cost, how much of it was useful, what it would have cost on demand. A
stretch is divided by its seconds and without a rest, so that the hours of anything add up to what was charged for it;
days are sums of hours. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from crucible.core.ledger import HOUR_S, accrued, amount, split
from crucible.core.uses import Life, Span, Use, epoch_s, stints
from crucible.model.costs import Charged, CostPart, Moved, Ran, Sums
from crucible.model.ledger import ChargeKind, Rate
from crucible.model.units import NOTHING, MicroUsd

T = TypeVar("T")
# Puts an hour, counted since 1970, where it belongs; None: nowhere.
Put = Callable[[int], T | None]


def parts_of(charged: Iterable[Charged], moved: Iterable[Moved], now: datetime) -> Iterator[CostPart]:
    """Every hour by itself."""
    for one in charged:
        for hour, sums in cells(one, now, _itself):
            yield CostPart(hour=hour_at(hour), job_id=one.usage.job_id, key=one.key, sums=sums)
    for transfer in moved:
        at = hour_at(hour_of(transfer.at))
        yield CostPart(hour=at, job_id=transfer.job_id, key=transfer.key, sums=transferred(transfer))


def cells(one: Charged, now: datetime, put: Put[T]) -> Iterable[tuple[T, Sums]]:
    """The hours of a stretch, added up where `put` puts them; one that is open is charged until now."""
    usage, start = one.usage, epoch_s(one.usage.from_at)
    end = epoch_s(usage.to_at or max(now, usage.from_at))
    hours = range(start // HOUR_S, max(-(-end // HOUR_S), start // HOUR_S + 1))
    lengths = _lengths(start, end, hours)
    shares = lengths if end > start else [1]
    costs, useful = split(accrued(usage, now), shares), _useful(one, start, end, hours)
    firm = _on_demand(one, end - start, shares)
    found: dict[T, list[int]] = {}
    for hour, length, cost, used, other in zip(hours, lengths, costs, useful, firm or costs, strict=True):
        cell = put(hour)
        if cell is not None:
            sums = found.get(cell) or found.setdefault(cell, [0, 0, 0, 0])
            sums[0] += cost
            sums[1] += cost * used // (max(one.gpus, 1) * length) if used else 0
            sums[2] += other
            sums[3] += length
    first = put(hours[0]) if one.is_first else None
    return [(cell, _sums(one, sums, firm is not None, cell == first)) for cell, sums in found.items()]


def _sums(one: Charged, figures: Sequence[int], is_compared: bool, is_first: bool) -> Sums:
    """What an hour would have cost on demand is what it cost, where nobody knows another price."""
    cost, useful, firm, seconds = figures
    is_compute = one.usage.rate.kind is ChargeKind.COMPUTE
    return Sums(
        cost=MicroUsd(cost),
        useful=MicroUsd(useful),
        saved=MicroUsd(firm - cost),
        unpriced=MicroUsd(cost) if is_compute and not is_compared else NOTHING,
        gpu_s=one.gpus * seconds if is_compute else 0,
        jobs=int(is_first),
    )


def transferred(moved: Moved) -> Sums:
    """Moving data is what it was paid for."""
    return Sums(cost=moved.cost, useful=moved.cost)


def hour_of(at: datetime) -> int:
    return epoch_s(at) // HOUR_S


def hour_at(hour: int) -> datetime:
    return datetime.fromtimestamp(hour * HOUR_S, UTC)


def _itself(hour: int) -> int:
    return hour


def _useful(one: Charged, start: int, end: int, hours: range) -> Sequence[int]:
    """Seconds of devices in which ranks ran, of each hour."""
    found = [0] * len(hours)
    if one.ran:
        life = Life(gpus=one.gpus, spans=tuple(_span(ran) for ran in one.ran))
        for stint in stints(life, start, end):
            if stint.use is Use.USEFUL:
                within = range(stint.start_s // HOUR_S, -(-stint.end_s // HOUR_S))
                for place, length in enumerate(_lengths(stint.start_s, stint.end_s, within), within[0] - hours[0]):
                    found[place] += length * stint.devices
    return found


def _lengths(start: int, end: int, hours: range) -> list[int]:
    """How many of its seconds are in each of the hours that it touches."""
    found = [HOUR_S] * len(hours)
    found[0] -= start - hours[0] * HOUR_S
    found[-1] -= (hours[-1] + 1) * HOUR_S - end
    return found


def _span(ran: Ran) -> Span:
    return Span(epoch_s(ran.start), None if ran.end is None else epoch_s(ran.end), Use.USEFUL, ran.devices)


def _on_demand(one: Charged, seconds: int, shares: Sequence[int]) -> Sequence[MicroUsd] | None:
    """What the same seconds would have cost on demand, of each hour; None: nobody knows, or it has no such price."""
    if one.on_demand_per_hour is None or one.usage.rate.kind is not ChargeKind.COMPUTE:
        return None
    return split(amount(Rate(ChargeKind.COMPUTE, one.on_demand_per_hour, HOUR_S), seconds), shares)
