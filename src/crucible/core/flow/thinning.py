"""Fewer ways than there are: the best of each step, and those in regions that suit all steps together. What is left out
is not forgotten: it bounds what a choice with one of it could be worth."""

from collections.abc import Sequence
from math import inf

import numpy as np

from crucible.core.cost import GB
from crucible.core.flow.links import Prices
from crucible.core.flow.problem import Problem
from crucible.core.offers import Bools, Ints
from crucible.model.units import MICRO


def floor(problem: Problem, kept: Sequence[Ints], prices: Prices, earned: float) -> float:
    """What no choice with a way that is not kept is worth less than, whatever it carries."""
    costs = [
        labels.value + prices.hours[step] * labels.hours + prices.money * labels.money
        for step, labels in enumerate(problem.labels)
    ]
    least = [float(cost.min()) for cost in costs]
    without = [np.delete(cost, some) for cost, some in zip(costs, kept, strict=True)]
    more = min((float(out.min()) - low for out, low in zip(without, least, strict=True) if len(out)), default=inf)
    return sum(least) + more - earned


def kept_of(problem: Problem, ways: int, places: int) -> list[Ints]:
    """Numbers of the ways of each step: its best, and those in regions that suit it and its neighbours, or one of
    them and its neighbours."""
    if all(len(labels) <= ways for labels in problem.labels):
        return [np.arange(len(labels)) for labels in problem.labels]
    near = neighbours(problem)
    suits = suiting(problem, near, places)
    kept = []
    for number, labels in enumerate(problem.labels):
        is_kept = np.ones(len(labels), dtype=bool)
        if len(labels) > ways:
            good = np.zeros(suits.shape[1], dtype=bool)
            for other in (number, *near[number]):
                good |= suits[other]
            is_kept = good[labels.place]
            is_kept[np.argsort(labels.value, kind="stable")[:ways]] = True
            if problem.is_timed:
                is_kept[np.argsort(labels.hours, kind="stable")[:ways]] = True
        kept.append(np.flatnonzero(is_kept))
    return kept


def neighbours(problem: Problem) -> list[dict[int, float]]:
    """For each step those that it shares a tree with, and what carrying that can cost."""
    near: list[dict[int, float]] = [{} for _ in problem.labels]
    for tree in problem.trees:
        dear = problem.weight * float(tree.lanes.usd.max()) * tree.size_bytes * (MICRO / GB)
        for reader in tree.readers:
            near[reader][tree.source] = near[tree.source][reader] = dear
    return near


def suiting(problem: Problem, near: list[dict[int, float]], places: int) -> Bools:
    """[step, region]: where a step and its neighbours cost least together; who has no way there, or a much cheaper one
    elsewhere, is elsewhere."""
    count = 1 + max(int(labels.place.max()) for labels in problem.labels)
    at = np.full((len(problem.labels), count), inf)
    for number, labels in enumerate(problem.labels):
        np.minimum.at(at[number], labels.place, labels.value)
    least = at.min(axis=1)
    suits = np.zeros(at.shape, dtype=bool)
    for number, others in enumerate(near):
        total = at[number].copy()
        for other, dear in others.items():
            total += np.minimum(at[other], least[other] + dear)
        suits[number, np.argsort(total, kind="stable")[:places]] = True
    return suits
