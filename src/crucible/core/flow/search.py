"""The best choice for a workflow, and how far from the optimum it can be. Limits are given prices until the bound grows
no more; what cannot be part of anything better is left out; what is left is searched to the end if it is small. Rounds,
branches and sizes are counted, never time: the same question has the same answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from crucible.core.flow.links import Prices
from crucible.core.flow.pricing import Pricing
from crucible.core.flow.problem import Choice, Problem, Worth, keeps, worth
from crucible.core.flow.program import Program, size_of
from crucible.core.flow.relaxation import Relaxation
from crucible.core.flow.thinning import kept_of
from crucible.core.flow.trying import improved, soonest
from crucible.core.offers import Ints

# Sweeps of a bound while prices are looked for, and once they are found.
FEW_SWEEPS = 2
MANY_SWEEPS = 6
# Rounds of looking for prices. Most problems need fewer.
ROUNDS = 6
# Rounds whose choice is improved step by step.
FEW_IMPROVED = 2
# Ways of each step, and regions, among which a first choice is looked for.
FEW_WAYS = 8
FEW_PLACES = 8
# Ways in all for which prices are looked for once more.
MOST_PRICED = 500
# A sweep that raises the bound by no more than this, as a share, is the last.
SLOW = 1e-5
# Columns of a program that is searched to the end.
MOST_COLUMNS = 2500
# A bound as near as this, as a share, is the optimum.
TINY = 1e-7


@dataclass(frozen=True, slots=True)
class Found:
    choice: Choice
    worth: Worth
    bound: float  # no choice is worth less
    prices: Prices  # of the limits
    earned: float  # what is paid back for them

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

    def look_at(self, choice: Choice, kept: Sequence[Ints] | None = None) -> None:
        """`kept`: the numbers of the ways that the choice is among."""
        whole = choice if kept is None else tuple(int(some[way]) for some, way in zip(kept, choice, strict=True))
        found = worth(self.problem, whole)
        if keeps(self.problem, found) and found.objective < self.limit:
            self.choice, self.worth = whole, found

    def improve(self) -> None:
        if self.choice is not None:
            self.look_at(improved(self.problem, self.choice))

    def raise_to(self, bound: float) -> None:
        self.bound = max(self.bound, min(bound, self.limit))


def solve(problem: Problem) -> Found | None:
    """None if nothing was found that keeps the limits."""
    best = Best(problem)
    is_limited = problem.is_timed or problem.budget < inf
    if is_limited:
        best.look_at(soonest(problem))
        best.improve()
    pricing = Pricing(problem)
    tried(problem, best, pricing)
    kept = left_over(problem, best, pricing)
    if not best.is_closed and is_limited and sum(map(len, kept)) <= MOST_PRICED:
        kept = closer(problem, best, pricing, kept)
    if not best.is_closed:
        search(problem, best, kept)
    if best.choice is None or best.worth is None:
        return None
    return Found(best.choice, best.worth, min(best.bound, best.limit), pricing.prices(), pricing.earned)


def tried(problem: Problem, best: Best, pricing: Pricing) -> None:
    """Among a few ways: a good choice, and prices of limits. What it says of the bound holds only for those."""
    kept = kept_of(problem, FEW_WAYS, FEW_PLACES)
    some = problem.only(kept)
    lower = priced(some, best, pricing, kept)
    if all(len(one) == len(labels) for one, labels in zip(kept, problem.labels, strict=True)):
        best.raise_to(lower)


def closer(problem: Problem, best: Best, pricing: Pricing, kept: Sequence[Ints]) -> list[Ints]:
    """Once more with prices for all that is left. What was left out is no better than what is known."""
    some = problem.only(kept)
    best.raise_to(priced(some, best, pricing, kept))
    if best.is_closed:
        return list(kept)
    left = left_over(some, best, pricing, kept)
    return [one[two] for one, two in zip(kept, left, strict=True)]


def priced(problem: Problem, best: Best, pricing: Pricing, kept: Sequence[Ints]) -> float:
    """Looks for the prices with the best bound, keeps them, and says what the bound is."""
    is_limited = problem.is_timed or problem.budget < inf
    lower, found = -inf, pricing.state
    for number in range(ROUNDS if is_limited else 1):
        relaxed = Relaxation(problem, pricing.prices())
        for _ in range(FEW_SWEEPS):
            relaxed.sweep(best.limit + pricing.earned)
        if relaxed.bound - pricing.earned > lower:
            lower, found = relaxed.bound - pricing.earned, pricing.state
        choice = relaxed.choice()
        best.look_at(choice, kept)
        if number < FEW_IMPROVED:
            best.look_at(improved(problem, choice), kept)
        is_done = best.limit - lower <= TINY * max(abs(lower), 1.0)
        if is_done or not is_limited or not pricing.learn(worth(problem, choice), lower):
            break
    pricing.state = found
    best.improve()
    return lower


def left_over(problem: Problem, best: Best, pricing: Pricing, kept: Sequence[Ints] | None = None) -> list[Ints]:
    """The ways that may be part of something better than what is known."""
    earned = pricing.earned
    relaxed = Relaxation(problem, pricing.prices())
    size = 0
    for _ in range(MANY_SWEEPS):
        bound = relaxed.bound
        relaxed.sweep(best.limit + earned)
        best.raise_to(relaxed.bound - earned)
        choice = relaxed.choice()
        best.look_at(choice, kept)
        if relaxed.size != size:
            best.look_at(improved(problem, choice), kept)
        if best.is_closed or (relaxed.size == size and relaxed.bound - bound <= SLOW * abs(bound)):
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
    best.look_at(choice, kept)
    best.raise_to(solved.bound)
