"""The best choice for a workflow, and how far from the optimum it can be. Limits are given prices until the bound grows
no more; what cannot be part of anything better is left out; what is left is searched to the end if it is small. Rounds,
branches and sizes are counted, never time: the same question has the same answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from crucible.core.flow.links import Prices
from crucible.core.flow.pricing import Pricing
from crucible.core.flow.problem import Choice, Problem, Worth, keeps, worth
from crucible.core.flow.program import Program, size_of
from crucible.core.flow.relaxation import Relaxation
from crucible.core.flow.trying import improved, soonest
from crucible.core.offers import Ints

# Sweeps of a bound while prices are looked for, and once they are found.
FEW_SWEEPS = 2
MANY_SWEEPS = 12
# Rounds of looking for prices. Most problems need a dozen.
ROUNDS = 24
# Columns of a program that is searched to the end.
MOST_COLUMNS = 2500
# A bound as near as this, as a share, is the optimum.
TINY = 1e-7


@dataclass(frozen=True, slots=True)
class Found:
    choice: Choice
    worth: Worth
    bound: float  # no choice is worth less

    @property
    def distance(self) -> float:
        """At most so far from the optimum, as a share."""
        far = (self.worth.objective - self.bound) / max(abs(self.worth.objective), 1.0)
        return far if far > TINY else 0.0


@dataclass(slots=True)
class Best:
    """What was found so far."""

    problem: Problem
    choice: Choice | None = None
    worth: Worth | None = None
    bound: float = -inf

    @property
    def limit(self) -> float:
        return inf if self.worth is None else self.worth.objective

    @property
    def is_closed(self) -> bool:
        return self.limit < inf and self.limit - self.bound <= TINY * max(abs(self.limit), 1.0)

    def look_at(self, choice: Choice) -> None:
        found = worth(self.problem, choice)
        if keeps(self.problem, found) and found.objective < self.limit:
            self.choice, self.worth = choice, found

    def improve(self) -> None:
        if self.choice is not None:
            self.look_at(improved(self.problem, self.choice))


def solve(problem: Problem) -> Found | None:
    """None if nothing was found that keeps the limits."""
    best = Best(problem)
    is_limited = problem.is_timed or problem.budget < inf
    if is_limited:
        best.look_at(soonest(problem))
        best.improve()
    prices, earned = priced(problem, best) if is_limited else (Prices(np.zeros(len(problem.labels))), 0.0)
    kept = left_over(problem, best, prices, earned)
    if not best.is_closed:
        search(problem, best, kept)
    if best.choice is None or best.worth is None:
        return None
    return Found(best.choice, best.worth, min(best.bound, best.limit))


def priced(problem: Problem, best: Best) -> tuple[Prices, float]:
    """The prices of limits with the best bound, and what is paid back for them."""
    pricing = Pricing(problem)
    found, found_earned = pricing.prices(), pricing.earned
    for _ in range(ROUNDS):
        prices, earned = pricing.prices(), pricing.earned
        relaxed = Relaxation(problem, prices)
        for _ in range(FEW_SWEEPS):
            relaxed.sweep(best.limit + earned)
        if relaxed.bound - earned > best.bound:
            best.bound, found, found_earned = relaxed.bound - earned, prices, earned
        choice = relaxed.choice()
        best.look_at(choice)
        best.look_at(improved(problem, choice))
        if best.is_closed or not pricing.learn(worth(problem, choice), best.bound):
            break
    best.improve()
    return found, found_earned


def left_over(problem: Problem, best: Best, prices: Prices, earned: float) -> list[Ints]:
    """The ways that may be part of something better than what is known."""
    relaxed = Relaxation(problem, prices)
    size = 0
    for _ in range(MANY_SWEEPS):
        bound = relaxed.bound
        relaxed.sweep(best.limit + earned)
        best.bound = max(best.bound, min(relaxed.bound - earned, best.limit))
        choice = relaxed.choice()
        best.look_at(choice)
        if relaxed.size != size:
            best.look_at(improved(problem, choice))
        if best.is_closed or (relaxed.size == size and relaxed.bound - bound <= TINY * abs(bound)):
            break
        size = relaxed.size
    return relaxed.kept


def search(problem: Problem, best: Best, kept: Sequence[Ints]) -> None:
    """By an integer program, unless it would be too large. What was left out is no better than what is known."""
    small = problem.only(kept)
    if size_of(small) > MOST_COLUMNS:
        return
    found = Program(small).solve()
    if found is None:
        return
    choice, solved = found
    best.look_at(tuple(int(some[way]) for some, way in zip(kept, choice, strict=True)))
    best.bound = max(best.bound, min(solved.bound, best.limit))
