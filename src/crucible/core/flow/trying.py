"""Choices without proof: the soonest done, and what becomes of a choice when one step after the other takes what is
best for all. Quick, and good enough to measure others by."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from crucible.core.flow.problem import SLIGHT, Choice, Problem, Worth, over, worth
from crucible.core.offers import Floats

# Rounds over all steps; nearly always the second changes nothing.
ROUNDS = 4


def soonest(problem: Problem) -> Choice:
    """Each step takes the way that ends first, the cheaper of two; then all are looked at again."""
    choice = tuple(int(np.lexsort((labels.value, labels.hours))[0]) for labels in problem.labels)
    least = sum(float(labels.value.min()) for labels in problem.labels)
    # An hour is worth more than anything, and of equals the cheaper counts.
    hurried = replace(problem, hour=1e3 * max(abs(least), 1.0), deadline_h=inf, latest_h=(), budget=inf)
    return improved(hurried, choice)


def improved(problem: Problem, choice: Choice) -> Choice:
    """One step after the other; never worse, and never breaking a limit that was kept."""
    current, found = list(choice), worth(problem, choice)
    for _ in range(ROUNDS):
        is_changed = False
        for step in problem.order:
            if len(problem.labels[step]) < 2:
                continue
            way = best_way(problem, current, found, step)
            if way == current[step]:
                continue
            other = worth(problem, [*current[:step], way, *current[step + 1 :]])
            if is_better(problem, other, found):
                current[step], found, is_changed = way, other, True
        if not is_changed:
            break
    return tuple(current)


def is_better(problem: Problem, other: Worth, found: Worth) -> bool:
    return (over(problem, other), other.objective) < (over(problem, found), found.objective)


def best_way(problem: Problem, choice: Sequence[int], found: Worth, step: int) -> int:
    """If all others stay as they are."""
    money, hours = around(problem, choice, step)
    labels = problem.labels[step]
    ends = through(problem, choice, found, step, labels.hours + hours)
    value = labels.value + problem.weight * money + problem.hour * ends
    spent = found.money + (labels.money + money) - (labels.money + money)[choice[step]]
    late = np.maximum(0.0, ends / max(problem.deadline_h, SLIGHT) - 1 - SLIGHT)
    dear = np.maximum(0.0, spent / max(problem.budget, 1.0) - 1 - SLIGHT)
    return int(np.lexsort((value, late + dear))[0])


def around(problem: Problem, choice: Sequence[int], step: int) -> tuple[Floats, Floats]:
    """What each way of a step costs in lanes and fetching, and how long it fetches."""
    labels = problem.labels[step]
    money, hours = np.zeros(len(labels)), np.zeros(len(labels))
    for tree in problem.trees:
        if step in tree.readers:
            home = int(problem.labels[tree.source].place[choice[tree.source]])
            at = np.array([home])
            taken = tree.hours(at, labels.place)[0]
            others = [int(problem.labels[one].place[choice[one]]) for one in tree.readers if one != step]
            lane = np.where(np.isin(labels.place, others), 0.0, tree.usd(at, labels.place)[0])
            money += lane + np.rint(taken * labels.price)
            hours += taken
        elif step == tree.source:
            targets = np.array([problem.labels[one].place[choice[one]] for one in tree.readers])
            prices = np.array([problem.labels[one].price[choice[one]] for one in tree.readers])
            money += tree.usd(labels.place, np.unique(targets)).sum(axis=1)
            money += np.rint(tree.hours(labels.place, targets) * prices).sum(axis=1)
    return money, hours


def through(problem: Problem, choice: Sequence[int], found: Worth, step: int, took: Floats) -> Floats:
    """When the last step ends if this one takes so long, as far as its own paths tell."""
    after = tails(problem, found)
    ends = found.begins_h[step] + took
    last = ends.copy()
    place = problem.labels[step].place
    for follower in problem.followers[step]:
        lasts = found.ends_h[follower] - found.begins_h[follower]
        more = np.zeros(len(took))
        for tree in problem.trees:
            if tree.source == step and follower in tree.readers:
                target = problem.labels[follower].place[choice[follower]]
                more = tree.hours(place, np.array([target]))[:, 0]
                more = more - more[choice[step]]
        last = np.maximum(last, ends + lasts + more + after[follower])
    return last


def tails(problem: Problem, found: Worth) -> list[float]:
    """Hours from the end of each step to the end of all that wait for it."""
    after = [0.0] * len(problem.labels)
    for step in reversed(problem.order):
        for need in problem.needs[step]:
            after[need] = max(after[need], found.ends_h[step] - found.begins_h[step] + after[step])
    return after
