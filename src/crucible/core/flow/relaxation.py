"""A bound of what any choice is worth, by passing costs between steps until they agree, and which ways can be part of
nothing better than what is known. Costs are only moved, never made: every choice costs what it did, and the sum of all
least entries is below each of them. Where the trees between steps form no circle it is exact."""

from collections.abc import Sequence

import numpy as np

from crucible.core.flow.links import Link, Prices, links, other, shared
from crucible.core.flow.problem import Choice, Problem
from crucible.core.offers import Ints

# What sums may be off by after many moves: micro-dollars, and a share.
HALF = 0.5
SHARE = 1e-10


class Relaxation:
    def __init__(self, problem: Problem, prices: Prices | None = None) -> None:
        prices = prices or Prices(np.zeros(len(problem.labels)))
        self._order = problem.order
        self.kept: list[Ints] = [np.arange(len(labels)) for labels in problem.labels]
        self._costs = [
            labels.value + prices.hours[step] * labels.hours + prices.money * labels.money
            for step, labels in enumerate(problem.labels)
        ]
        self._links = links(problem, prices)
        self._of_step: list[list[Link]] = [[] for _ in problem.labels]
        for link in self._links:
            self._of_step[link.source].append(link)
            self._of_step[link.target].append(link)
        self._shared = shared(problem, self._links, problem.weight + prices.money)
        for link in self._links:
            link.least = float(link.cost.min())
        self._least = [float(cost.min()) for cost in self._costs]

    @property
    def bound(self) -> float:
        return sum(self._least) + sum(link.least for link in self._links)

    @property
    def size(self) -> int:
        return sum(len(kept) for kept in self.kept)

    def sweep(self, limit: float = np.inf) -> None:
        """There and back, and who pays for lanes in between. Ways that are part of nothing below `limit` are left
        out."""
        self._pass(self._order, limit)
        for lanes in self._shared if limit < np.inf else ():
            lanes.level(limit - self.bound)
        self._pass(self._order[::-1], limit)

    def _pass(self, order: Sequence[int], limit: float) -> None:
        seen: set[int] = set()
        for step in order:
            self._visit(step, seen, limit)
            seen.add(step)

    def _visit(self, step: int, seen: set[int], limit: float) -> None:
        """Take from those that were visited before, give to those that are visited after."""
        before = [link for link in self._of_step[step] if other(link, step) in seen]
        after = [link for link in self._of_step[step] if other(link, step) not in seen]
        cost = self._costs[step]
        for link in before:
            taken = link.marginal(step)
            cost = cost + taken
            link.add(step, -taken)
            link.least = 0.0
        self._costs[step], self._least[step] = cost, float(cost.min())
        if limit < np.inf and len(cost) > 1:
            self._leave_out(step, after, limit)
            cost = self._costs[step]
        for link in after:
            link.add(step, cost / len(after))
            link.least = float(link.cost.min())
        if after:
            self._costs[step], self._least[step] = np.zeros(len(cost)), 0.0

    def _leave_out(self, step: int, after: Sequence[Link], limit: float) -> None:
        with_it = self._costs[step] + sum((link.marginal(step) for link in after), np.zeros(1))
        without = self.bound - self._least[step] - sum(link.least for link in after)
        good = np.flatnonzero(without + with_it <= limit + HALF + SHARE * abs(limit))
        if len(good) == len(with_it) or not len(good):
            return
        self.kept[step], self._costs[step] = self.kept[step][good], self._costs[step][good]
        self._least[step] = float(self._costs[step].min())
        for link in self._of_step[step]:
            link.keep(step, good)
        for lanes in self._shared:
            lanes.keep(step, good)
        for link in self._of_step[step]:
            link.least = float(link.cost.min())

    def choice(self) -> Choice:
        """A good one: each step takes what is best after what was taken before it."""
        taken: dict[int, int] = {}
        for step in self._order:
            cost = self._costs[step]
            for link in self._of_step[step]:
                at = taken.get(other(link, step))
                if at is None:
                    cost = cost + link.marginal(step)
                else:
                    cost = cost + (link.cost[at] if link.target == step else link.cost[:, at])
            taken[step] = int(np.argmin(cost))
        return tuple(int(self.kept[step][taken[step]]) for step in range(len(self.kept)))
