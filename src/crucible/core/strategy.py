"""What makes one way better than another. A strategy is an ordered list of keys over columns; the least wins, and the
order of the rows breaks ties."""

from dataclasses import dataclass

import numpy as np

from crucible.core.offers import Bools, Floats, Ints
from crucible.model.spec import Strategy

# What a certain failure weighs against cost and time, where both stand at one for the best.
RISK_WEIGHT = 0.2
# A preferred region wins if it costs no more than this above the best: it is a preference, not a rule.
PREFERENCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Merits:
    """One entry per way. Cost and time are shares of the cheapest and the fastest: one is the best."""

    cost: Floats
    time: Floats
    reliability: Floats
    is_own: Bools
    is_near: Bools  # where the data is
    is_preferred: Bools
    is_steady: Bools  # cannot be taken away


def keys(strategy: Strategy, merits: Merits, performance_weight: float) -> tuple[Floats, ...]:
    """Most important first. Every key grows with cost, time and risk, so that a bound of them bounds the key. Cost and
    time come last: of two that are as good, the one that nothing beats wins, say the faster of two own machines."""
    balanced = (balance(merits, performance_weight), merits.cost, merits.time)
    match strategy:
        case Strategy.CHEAPEST | Strategy.SPREAD:
            return merits.cost, *balanced
        case Strategy.FASTEST:
            return merits.time, *balanced
        case Strategy.RELIABLE:
            return 1 - merits.reliability + ~merits.is_steady, (~merits.is_own).astype(float), *balanced
        case Strategy.NEAR_DATA:
            return (~merits.is_near).astype(float), *balanced
        case Strategy.OWN_FIRST:
            return (~merits.is_own).astype(float), *balanced
        case Strategy.BALANCED:
            return balanced


def balance(merits: Merits, performance_weight: float) -> Floats:
    weighed = (1 - performance_weight) * merits.cost + performance_weight * merits.time
    return weighed + RISK_WEIGHT * (1 - merits.reliability) - PREFERENCE * merits.is_preferred


def ranked(found: tuple[Floats | Ints, ...]) -> Ints:
    """Indices, best first; equal ones stay in the order of their rows."""
    return np.lexsort(found[::-1])


def best(found: tuple[Floats, ...], count: int) -> Ints:
    """The first `count` of `ranked`, without ranking the others."""
    first, *rest = found
    if len(first) <= count:
        return ranked(found)
    limit = np.partition(first, count)[count]
    below, level = np.flatnonzero(first < limit), np.flatnonzero(first == limit)
    left = count - len(below)
    if rest:
        level = level[best(tuple(key[level] for key in rest), left)]
    return np.concatenate([below[ranked(tuple(key[below] for key in found))], level[:left]])
