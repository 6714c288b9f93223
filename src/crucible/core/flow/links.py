"""Costs between the ways of two steps that hand each other something, and lanes that several readers share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crucible.core.flow.problem import Problem, fetch_cost, fetch_h
from crucible.core.offers import Floats, Ints


@dataclass(frozen=True, slots=True)
class Prices:
    """What limits are worth: an hour of each step, and a micro-dollar more."""

    hours: Floats
    money: float = 0.0


@dataclass(slots=True)
class Link:
    """Costs between the ways of two steps."""

    source: int
    target: int
    cost: Floats  # [way of the source, way of the target]
    least: float = 0.0

    def marginal(self, step: int) -> Floats:
        """The least of each way of `step`."""
        least: Floats = self.cost.min(axis=1 if step == self.source else 0)
        return least

    def add(self, step: int, amount: Floats) -> None:
        self.cost += amount[:, None] if step == self.source else amount[None, :]

    def keep(self, step: int, kept: Ints) -> None:
        self.cost = self.cost[kept] if step == self.source else self.cost[:, kept]


def other(link: Link, step: int) -> int:
    return link.source if link.target == step else link.target


def links(problem: Problem, prices: Prices) -> list[Link]:
    """A lane into a region is shared by all that read there: of it each pays no more than its part."""
    found = []
    weight = problem.weight + prices.money
    for tree in problem.trees:
        source = problem.labels[tree.source]
        for reader in tree.readers:
            labels = problem.labels[reader]
            lane = tree.usd(source.place, labels.place) / len(tree.readers)
            cost = weight * (lane + fetch_cost(tree, source, labels))
            cost += prices.hours[reader] * fetch_h(tree, source, labels)
            found.append(Link(tree.source, reader, cost))
    return found


# --- lanes --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SharedLanes:
    """A tree that several steps read. Into a region it is carried once: who pays how much of the lane is free, and it
    is paid best by those to whom it makes a difference."""

    links: list[Link]
    at: dict[int, Ints]  # for the ways of each step the row or column of its place, rising
    usd: Floats  # [from, to]
    paid: Floats  # [link, from, to]

    def keep(self, step: int, kept: Ints) -> None:
        if step in self.at:
            self.at[step] = self.at[step][kept]

    def level(self, gap: float) -> None:
        """Whoever is nearest to being the least pays; the bound never falls. Only where somebody is less than `gap`
        from it: the rest makes no difference."""
        slack = np.full(self.paid.shape, np.inf)
        for number, link in enumerate(self.links):
            homes, targets, least = self._least(link)
            slack[number][np.ix_(homes, targets)] = least - link.least
        nearest = slack.min(axis=0)
        near = np.flatnonzero(np.isfinite(nearest) & (nearest < gap) & (self.usd > 0))
        if not len(near):
            return
        slack, paid = slack.reshape(len(self.links), -1)[:, near], self.paid.reshape(len(self.links), -1)[:, near]
        now = filled(slack - paid, self.usd.ravel()[near])
        for number, link in enumerate(self.links):
            more = np.zeros(self.usd.size)
            more[near] = now[number] - paid[number]
            self.paid[number].flat[near] = now[number]
            link.cost += more.reshape(self.usd.shape)[np.ix_(self.at[link.source], self.at[link.target])]
            link.least = float(link.cost.min())

    def _least(self, link: Link) -> tuple[Ints, Ints, Floats]:
        """Of all ways in two places."""
        source, target = self.at[link.source], self.at[link.target]
        rows, columns = (np.flatnonzero(np.diff(at, prepend=-1)) for at in (source, target))
        least = link.cost if len(rows) == len(source) else np.minimum.reduceat(link.cost, rows, axis=0)
        least = least if len(columns) == len(target) else np.minimum.reduceat(least, columns, axis=1)
        return source[rows], target[columns], least


def filled(slack: Floats, amount: Floats) -> Floats:
    """`amount` shared out along the first axis so that the least of slack and share is as large as can be: as water
    fills a vessel with steps. Those at inf get nothing."""
    order = np.sort(slack, axis=0)
    level, below = order[0] + amount, order[0].copy()
    for count in range(2, len(order) + 1):
        below += np.where(np.isfinite(order[count - 1]), order[count - 1], 0.0)
        level = np.where(level > order[count - 1], (amount + below) / count, level)
    return np.where(np.isfinite(slack), np.maximum(level - np.where(np.isfinite(slack), slack, 0.0), 0.0), 0.0)


def shared(problem: Problem, links: Sequence[Link], weight: float) -> list[SharedLanes]:
    made = []
    for tree in problem.trees:
        if len(tree.readers) < 2:
            continue
        mine = [link for link in links if link.source == tree.source]
        source = problem.labels[tree.source].place
        homes = np.unique(source)
        targets = np.unique(np.concatenate([problem.labels[reader].place for reader in tree.readers]))
        usd = weight * tree.usd(homes, targets)
        paid = np.repeat(usd[None] / len(mine), len(mine), axis=0)
        at = {reader: np.searchsorted(targets, problem.labels[reader].place) for reader in tree.readers}
        made.append(SharedLanes(mine, {tree.source: np.searchsorted(homes, source), **at}, usd, paid))
    return made
