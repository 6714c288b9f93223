"""How well a backend suits a workload: seed 003's rules as figures from 0 to 1, weighed by what the user wants. Pure,
and every weight is here."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from crucible.core.router.backends import Backend, Kind
from crucible.core.router.characteristics import WorkloadCharacteristics
from crucible.core.router.preferences import OptimizeFor, Preferences
from crucible.model.offer import Market

# Seed 003's borders, in hours: below the first external services, above the second EC2, above the third reserved.
SHORT_H, LONG_H, RESERVED_H = 2.0, 8.0, 24.0
# A start that takes so long halves the figure of waiting.
PATIENCE_S = 300.0
UNKNOWN = 0.5  # where nobody knows, neither for nor against
UNPRICED = 0.0  # a price that nobody states cannot be counted on


class Merit(StrEnum):
    COST = "cost"  # the cheapest has 1, twice the cost 0.5
    SPEED = "speed"  # the same with hours
    LENGTH = "length"  # does the length of the job suit it?
    INTERRUPTION = "interruption"  # can the job stand what may happen?
    WAIT = "wait"  # until it starts
    PRIVACY = "privacy"  # counts only where the data is private
    DATA = "data"  # is the data there?


WEIGHTS: Mapping[OptimizeFor | None, Mapping[Merit, float]] = {
    None: {
        Merit.COST: 0.30,
        Merit.SPEED: 0.10,
        Merit.LENGTH: 0.25,
        Merit.INTERRUPTION: 0.20,
        Merit.WAIT: 0.10,
        Merit.DATA: 0.05,
    },
    OptimizeFor.COST: {
        Merit.COST: 0.55,
        Merit.SPEED: 0.0,
        Merit.LENGTH: 0.15,
        Merit.INTERRUPTION: 0.20,
        Merit.WAIT: 0.05,
        Merit.DATA: 0.05,
    },
    OptimizeFor.SPEED: {
        Merit.COST: 0.10,
        Merit.SPEED: 0.45,
        Merit.LENGTH: 0.10,
        Merit.INTERRUPTION: 0.15,
        Merit.WAIT: 0.15,
        Merit.DATA: 0.05,
    },
}
PRIVACY_WEIGHT = 0.5
# Shared machines of a service, virtual machines of one's own, one's own machines.
PRIVACY = {Kind.EXTERNAL: 0.1, Kind.CLOUD: 0.8, Kind.OWN: 1.0}
# A spot machine for a job that can be interrupted, for one that nobody knows of, for one that cannot.
ON_SPOT = {True: 1.0, None: 0.4, False: 0.0}
# Of the whole score: a job that would lose everything on spot belongs there only if nothing else suits.
RECKLESS = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What a backend offers this workload; None: unknown."""

    backend: Backend
    hourly_usd: float | None
    total_usd: float | None
    hours: float | None  # of work
    start_s: float | None
    is_free_now: bool  # false: somebody else holds what it would take
    has_data: bool | None  # None: nobody knows where the data is


@dataclass(frozen=True, slots=True)
class Best:
    """Of all prospects; None: nobody knows."""

    cost: float | None
    hours: float | None


def score(
    prospect: Prospect, told: WorkloadCharacteristics, wishes: Preferences, best: Best
) -> tuple[float, Mapping[Merit, float]]:
    """From 0 to 1, and what it is made of."""
    merits = {
        Merit.COST: _share(best.cost, _cost(prospect), UNPRICED),
        Merit.SPEED: _share(best.hours, prospect.hours, UNKNOWN),
        Merit.LENGTH: length(prospect.backend, told.duration_hours if prospect.hours is None else prospect.hours),
        Merit.INTERRUPTION: ON_SPOT[told.interruptible] if prospect.backend.is_spot else 1.0,
        Merit.WAIT: _wait(prospect),
        Merit.PRIVACY: PRIVACY[prospect.backend.kind],
        Merit.DATA: UNKNOWN if prospect.has_data is None else float(prospect.has_data),
    }
    weights = dict(WEIGHTS[wishes.optimize_for])
    if wishes.data_privacy:
        weights[Merit.PRIVACY] = PRIVACY_WEIGHT
    value = sum(weight * merits[merit] for merit, weight in weights.items()) / sum(weights.values())
    is_reckless = prospect.backend.is_spot and told.interruptible is False
    return value * (RECKLESS if is_reckless else 1.0), merits


def length(backend: Backend, hours: float | None) -> float:
    """Seed 003: short jobs to services, long ones to EC2, very long to reserved machines. Own machines suit all."""
    if backend.kind is Kind.OWN:
        return 1.0
    if hours is None:
        return UNKNOWN
    if backend.market is Market.RESERVED:
        return 1.0 if hours > RESERVED_H else 0.1
    longness = min(1.0, max(0.0, (hours - SHORT_H) / (LONG_H - SHORT_H)))
    if backend.kind is Kind.EXTERNAL:
        return 1.0 - 0.7 * longness
    if backend.market is Market.ON_DEMAND and hours > RESERVED_H:
        return 0.8  # reserved would be cheaper
    return 0.4 + 0.6 * longness


def _cost(prospect: Prospect) -> float | None:
    return prospect.hourly_usd if prospect.total_usd is None else prospect.total_usd


def _share(best: float | None, own: float | None, unknown: float) -> float:
    if own is None:
        return unknown
    return 1.0 if best is None or own <= 0 else min(1.0, best / own)


def _wait(prospect: Prospect) -> float:
    if not prospect.is_free_now:
        return 0.0
    return UNKNOWN if prospect.start_s is None else 1.0 / (1.0 + prospect.start_s / PATIENCE_S)
