"""What each strategy makes least of a plan for many tasks: sums over machines, over waves and over tasks, the most
important first. Each is linear, so that the least is found exactly."""

from dataclasses import dataclass

import numpy as np

from crucible.core import plan
from crucible.core.candidates import near_places, own_sellers, preferred_places
from crucible.core.lots import Lots
from crucible.core.offers import Floats
from crucible.core.plan import Study
from crucible.core.strategy import PREFERENCE, RISK_WEIGHT
from crucible.model.spec import Strategy


@dataclass(frozen=True, slots=True)
class Goal:
    """What each gang, each wave of it and each task on it counts for."""

    gang: Floats
    wave: Floats
    task: Floats


def dollars(lots: Lots) -> Goal:
    """Exact where there is one wave; for several, bills are rounded by less than the seller's unit more."""
    return Goal(lots.setup, lots.wave + np.where(lots.waves == 1, lots.rounding, 0.0), lots.task)


def goals_of(found: Study, lots: Lots, tasks: int) -> list[Goal]:
    """The last decides among what is equally good by the others. `fastest` is looked for by its hours first."""
    table, place = found.table, found.table.place[lots.ways.row]
    is_own = own_sellers(table)[table.seller[lots.ways.row]]
    match found.question.objective:
        case Strategy.CHEAPEST | Strategy.SPREAD:
            return [dollars(lots)]
        case Strategy.OWN_FIRST:
            firsts = [(~is_own).astype(np.float64)]
        case Strategy.NEAR_DATA:
            firsts = [(~near_places(found.question.spec, table)[place]).astype(np.float64)]
        case Strategy.RELIABLE:
            is_steady = table.is_steady[lots.ways.row]
            firsts = [1 - lots.reliability + ~is_steady, (~is_own).astype(np.float64)]
        case _:
            firsts = []
    return [*(per_task(lots, first) for first in firsts if first.any()), balanced(found, lots, tasks)]


def per_seat(money: Goal, lots: Lots) -> Floats:
    """Of one task, where all seats are taken once."""
    return (money.gang + money.wave) / np.maximum(lots.seats, 1) + money.task


def per_task(lots: Lots, weight: Floats) -> Goal:
    nothing = np.zeros(len(lots))
    return Goal(nothing, nothing, weight)


def balanced(found: Study, lots: Lots, tasks: int) -> Goal:
    """As for one task, in the mean over all of them: a task's hours are those from its machines' order to its end."""
    weight, money = found.question.spec.constraints.performance_weight, dollars(lots)
    least = plan.least(per_seat(money, lots)) * tasks
    hours = lots.setup_h + lots.wave_h
    is_preferred = preferred_places(found.question.spec, found.table)[found.table.place[lots.ways.row]]
    wishes = weight * hours / plan.least(hours) + RISK_WEIGHT * (1 - lots.reliability) - PREFERENCE * is_preferred
    share = (1 - weight) / least
    return Goal(money.gang * share, money.wave * share, money.task * share + wishes / tasks)
