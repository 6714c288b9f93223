"""What everything comes to, by the seller's own rules, worked out from meters with exact fractions. It shares no line
with the ledger that it is compared with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

HOUR_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Seconds at one rate: `microusd_per` of it every `per_s`."""

    from_at: int
    to_at: int
    microusd_per: int
    per_s: int = HOUR_S

    @property
    def microusd(self) -> int:
        """Rounded half to even, as `round` does with a fraction."""
        return round(Fraction(self.microusd_per * (self.to_at - self.from_at), self.per_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    resource: str
    kind: str  # "machine", "disk", "address", "reservation"
    from_at: int
    to_at: int  # of what is charged: the minimum counts
    microusd: int
    note: str = ""
    stretches: tuple[Stretch, ...] = ()  # what it is the sum of


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    account: str
    until: int
    lines: tuple[Line, ...]

    @property
    def microusd(self) -> int:
        return sum(line.microusd for line in self.lines)

    @property
    def by_resource(self) -> dict[str, int]:
        """Micro-dollars of each thing; a machine's address counts with it, its disk is a thing of its own."""
        totals: dict[str, int] = {}
        for line in self.lines:
            totals[line.resource] = totals.get(line.resource, 0) + line.microusd
        return totals

    @property
    def by_kind(self) -> dict[str, int]:
        """Micro-dollars of each kind of thing."""
        totals: dict[str, int] = {}
        for line in self.lines:
            totals[line.kind] = totals.get(line.kind, 0) + line.microusd
        return totals


def charged(resource: str, kind: str, stretches: Sequence[Stretch], note: str = "") -> Line:
    """One line for stretches that follow each other; there is at least one."""
    total = sum(stretch.microusd for stretch in stretches)
    first, last = stretches[0], stretches[-1]
    return Line(
        resource=resource,
        kind=kind,
        from_at=first.from_at,
        to_at=last.to_at,
        microusd=total,
        note=note,
        stretches=tuple(stretches),
    )


def free(resource: str, kind: str, from_at: int, to_at: int, note: str) -> Line:
    return Line(resource=resource, kind=kind, from_at=from_at, to_at=to_at, microusd=0, note=note)


def at_least(stretches: Iterable[Stretch], to_at: int) -> tuple[Stretch, ...]:
    """The last stretch is lengthened, at its own rate, if all of it ends before `to_at`."""
    *before, last = stretches
    return (*before, replace(last, to_at=max(last.to_at, to_at)))
