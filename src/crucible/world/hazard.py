"""When the seller takes a spot machine away, if nobody ends it before. It is settled at the launch, so that it does not
depend on how often anybody looks."""

import math
from dataclasses import dataclass

from crucible.world.facts import Facts, Sale
from crucible.world.prices import PriceLine


@dataclass(frozen=True, slots=True)
class Fate:
    """The owner is warned, told, and then the machine is taken. None: not warned, not told."""

    taken_at: float
    notice_at: float | None
    rebalance_at: float | None
    why: str


def fate(sale: Sale, line: PriceLine, max_price: int, facts: Facts, now: float, luck: float) -> Fate | None:
    """The first thing that comes: the end of its luck, a moment of the trace, a price above its limit.
    `luck` is even between 0 and 1."""
    comes = [(_runs_out(sale.hazard_per_hour, now, luck), "the seller needs it back")]
    comes += [(at, "the trace takes it") for at in sale.taken_at if at > now][:1]
    if (passed := line.first_above(max_price, now)) is not None:
        comes.append((passed + facts.notice_s, "the price passed its limit"))
    taken_at, why = min(comes)
    if math.isinf(taken_at):
        return None
    notice_at = max(taken_at - facts.notice_s, now) if facts.notice_s > 0 else None
    rebalance_at = max(taken_at - facts.notice_s - facts.rebalance_s, now) if facts.rebalance_s > 0 else None
    return Fate(taken_at, notice_at, rebalance_at, why)


def demanded(now: float, notice_s: float) -> Fate:
    """Somebody takes it by hand."""
    if notice_s <= 0:
        return Fate(now, None, None, "the seller needs it back at once")
    return Fate(math.ceil(now + notice_s), now, now, "the seller needs it back")


def _runs_out(hazard_per_hour: float, now: float, luck: float) -> float:
    """Exponential: a machine does not age."""
    if hazard_per_hour <= 0:
        return math.inf
    return math.ceil(now - math.log1p(-luck) / hazard_per_hour * 3600)
