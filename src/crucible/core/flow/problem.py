"""What a workflow is to whoever chooses: for each step the ways it can be run, and between them trees that must be
carried. Columns only; what a choice is worth is said here, and nowhere else."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from math import inf

import numpy as np

from crucible.core.cost import GB, Lanes
from crucible.core.offers import Bools, Floats, Ints
from crucible.model.units import MICRO

Choice = tuple[int, ...]  # for each step the number of one of its ways
# What limits may be passed by, as a share: sums that were added up in another order, and the solver's arithmetic.
SLIGHT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Ways of one step, one entry for each."""

    row: Ints  # the offer; UNKNOWN where there is nothing to choose
    place: Ints  # into the matrices of trees
    value: Floats  # what the strategy makes least, in micro-dollars
    money: Floats  # expected micro-dollars
    hours: Floats  # expected
    price: Floats  # of all machines for an hour

    def __len__(self) -> int:
        return len(self.row)

    def take(self, kept: Ints | Bools) -> "Labels":
        return Labels(**{name: getattr(self, name)[kept] for name in COLUMNS})


COLUMNS = tuple(field.name for field in fields(Labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What a step hands on. Machines that read it fetch it while they are paid for; into a region it is carried once,
    however many read it there."""

    source: int
    readers: tuple[int, ...]
    size_bytes: int
    lanes: Lanes  # between the places of the problem

    def usd(self, homes: Ints, targets: Ints) -> Floats:
        """Micro-dollars [from, to]."""
        return np.rint(self.lanes.usd[np.ix_(homes, targets)] * self.size_bytes * (MICRO / GB))

    def hours(self, homes: Ints, targets: Ints) -> Floats:
        return self.lanes.hours[np.ix_(homes, targets)] * (self.size_bytes / GB)

    def usd_of(self, home: int, target: int) -> float:
        return float(np.rint(self.lanes.usd[home, target] * self.size_bytes * (MICRO / GB)))

    def hours_of(self, home: int, target: int) -> float:
        return float(self.lanes.hours[home, target] * (self.size_bytes / GB))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    labels: tuple[Labels, ...]
    needs: tuple[tuple[int, ...], ...]
    trees: tuple[Tree, ...]
    weight: float = 1.0  # of a micro-dollar of moved data
    hour: float = 0.0  # what an hour until the last step ends is worth, in micro-dollars
    deadline_h: float = inf
    latest_h: tuple[float, ...] = ()  # for each step, if some have a deadline of their own
    budget: float = inf

    @property
    def is_timed(self) -> bool:
        """Whether it matters when steps end."""
        return self.hour > 0 or self.deadline_h < inf or min(self.latest_h, default=inf) < inf

    @property
    def order(self) -> tuple[int, ...]:
        """Each step after those that it needs."""
        return order_of(self.needs)

    @property
    def followers(self) -> tuple[tuple[int, ...], ...]:
        return followers_of(self.needs)

    def only(self, kept: Sequence[Ints]) -> "Problem":
        """With these ways of each step."""
        return replace(self, labels=tuple(labels.take(some) for labels, some in zip(self.labels, kept, strict=True)))


@lru_cache(maxsize=16)
def order_of(needs: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    left, order = list(range(len(needs))), list[int]()
    done: set[int] = set()
    while left:
        ready = [step for step in left if done.issuperset(needs[step])]
        order += ready
        done.update(ready)
        left = [step for step in left if step not in done]
    return tuple(order)


@lru_cache(maxsize=16)
def followers_of(needs: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(other for other, wants in enumerate(needs) if step in wants) for step in range(len(needs)))


def fetch_h(tree: Tree, source: Labels, reader: Labels) -> Floats:
    """[way of the source, way of the reader]"""
    return tree.hours(source.place, reader.place)


def fetch_cost(tree: Tree, source: Labels, reader: Labels) -> Floats:
    """What the reader's machines cost meanwhile, in micro-dollars."""
    return np.rint(fetch_h(tree, source, reader) * reader.price)


@dataclass(frozen=True, slots=True)
class Worth:
    """What a choice comes to."""

    objective: float
    money: float  # all of it, in micro-dollars
    moved: float  # of it: lanes
    fetched: tuple[float, ...]  # of it: for each step what its machines cost while they fetch
    fetch_h: tuple[float, ...]
    begins_h: tuple[float, ...]
    ends_h: tuple[float, ...]
    carried: tuple[tuple[int, int], ...]  # tree, and the first of those who read it in a region that is not its own

    @property
    def makespan_h(self) -> float:
        return max(self.ends_h, default=0.0)


def worth(problem: Problem, choice: Sequence[int]) -> Worth:
    labels = problem.labels
    place = [int(labels[step].place[way]) for step, way in enumerate(choice)]
    price = [float(labels[step].price[way]) for step, way in enumerate(choice)]
    fetched, hours = [0.0] * len(labels), [0.0] * len(labels)
    carried: list[tuple[int, int]] = []
    moved = 0.0
    for number, tree in enumerate(problem.trees):
        home = place[tree.source]
        firsts = {place[reader]: reader for reader in reversed(tree.readers)}
        for target, first in sorted(firsts.items()):
            if target != home:
                carried.append((number, first))
                moved += tree.usd_of(home, target)
        for reader in tree.readers:
            taken = tree.hours_of(home, place[reader])
            hours[reader] += taken
            fetched[reader] += float(np.rint(taken * price[reader]))
    begins, ends = times(problem, [float(labels[s].hours[w]) + hours[s] for s, w in enumerate(choice)])
    money = sum(float(labels[s].money[w]) for s, w in enumerate(choice)) + moved + sum(fetched)
    value = sum(float(labels[s].value[w]) for s, w in enumerate(choice))
    value += problem.weight * (moved + sum(fetched)) + problem.hour * max(ends, default=0.0)
    return Worth(value, money, moved, tuple(fetched), tuple(hours), tuple(begins), tuple(ends), tuple(carried))


def times(problem: Problem, took: Sequence[float]) -> tuple[list[float], list[float]]:
    """When steps begin and end, each as soon as it may."""
    begins, ends = [0.0] * len(took), [0.0] * len(took)
    for step in problem.order:
        begins[step] = max((ends[need] for need in problem.needs[step]), default=0.0)
        ends[step] = begins[step] + took[step]
    return begins, ends


def keeps(problem: Problem, found: Worth) -> bool:
    """The limits of all steps together."""
    return over(problem, found) <= 0


def over(problem: Problem, found: Worth) -> float:
    """By how much limits are passed, as shares of them."""
    late = passed(found.makespan_h, problem.deadline_h)
    late += sum(map(passed, found.ends_h, problem.latest_h)) if problem.latest_h else 0.0
    return late + passed(found.money, problem.budget)


def passed(amount: float, limit: float) -> float:
    return max(0.0, amount / limit - 1 - SLIGHT) if limit > 0 else float(amount > 0)
