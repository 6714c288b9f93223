"""The choice as an integer program, for what is left when the rest was proven useless: exact where it ends, and with an
honest bound where it does not."""

from collections.abc import Iterable
from math import inf

import numpy as np

from crucible.core.flow.problem import Choice, Problem, Tree, fetch_cost
from crucible.core.integer import Model, Solved
from crucible.core.offers import Floats, Ints


class Program:
    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._model = Model()
        self._cost: list[Floats] = []
        self._money: list[Floats] = []
        self._ways = [self._add(labels.value, labels.money, is_whole=True) for labels in problem.labels]
        for ways in self._ways:
            self._model.limit(1.0, 1.0, ways, np.ones(len(ways)))
        self._hours: list[list[tuple[Ints, Floats]]] = [
            [(ways, labels.hours)] for ways, labels in zip(self._ways, problem.labels, strict=True)
        ]
        for tree in problem.trees:
            self._carry(tree)
        if problem.is_timed:
            self._keep_time()
        if 0 < problem.budget < inf:
            money = np.concatenate(self._money)
            used = np.flatnonzero(money)
            self._model.limit(-inf, 1.0, used, money[used] / problem.budget)

    def solve(self) -> tuple[Choice, Solved] | None:
        """None if nothing keeps the limits, or nothing was found that does."""
        found = self._model.minimise(np.concatenate(self._cost), few=self._model.size)
        if found is None:
            return None
        return tuple(int(np.argmax(found.values[ways])) for ways in self._ways), found

    def _add(self, cost: Floats, money: Floats, is_whole: bool = False, most: float = 1.0) -> Ints:
        self._cost.append(cost)
        self._money.append(money)
        return self._model.add(np.zeros(len(cost)), np.full(len(cost), most), is_whole=is_whole)

    # --- trees ------------------------------------------------------------------------------------------

    def _carry(self, tree: Tree) -> None:
        """For each reader how often the tree comes from where to which of its ways; lanes are paid once per region."""
        problem, source = self._problem, self._problem.labels[tree.source]
        homes, of_way = np.unique(source.place, return_inverse=True)
        lanes: dict[tuple[int, int], int] = {}
        is_shared = len(tree.readers) > 1
        for reader in tree.readers:
            labels = problem.labels[reader]
            first = np.array([int(np.flatnonzero(of_way == home)[0]) for home in range(len(homes))])
            money = fetch_cost(tree, source.take(first), labels)
            usd, hours = tree.usd(homes, labels.place), tree.hours(homes, labels.place)
            paid = money if is_shared else money + usd
            pairs = self._add(problem.weight * paid.ravel(), paid.ravel()).reshape(len(homes), len(labels))
            self._tie(pairs, self._ways[tree.source], of_way.reshape(-1), self._ways[reader])
            self._hours[reader].append((pairs.ravel(), hours.ravel()))
            if is_shared:
                self._share(lanes, tree, homes, labels.place, pairs)

    def _tie(self, pairs: Ints, source: Ints, of_way: Ints, reader: Ints) -> None:
        for way in range(pairs.shape[1]):
            columns = np.append(pairs[:, way], reader[way])
            self._model.limit(0.0, 0.0, columns, np.append(np.ones(len(pairs)), -1.0))
        for home in range(pairs.shape[0]):
            ways = source[of_way == home]
            factors = np.concatenate([np.ones(pairs.shape[1]), -np.ones(len(ways))])
            self._model.limit(0.0, 0.0, np.concatenate([pairs[home], ways]), factors)

    def _share(self, lanes: dict[tuple[int, int], int], tree: Tree, homes: Ints, places: Ints, pairs: Ints) -> None:
        """Whoever reads there needs the lane; one is enough for all."""
        for number, home in enumerate(homes.tolist()):
            for target in np.unique(places).tolist():
                usd = tree.usd_of(home, target)
                if not usd:
                    continue
                if (home, target) not in lanes:
                    paid = np.array([usd])
                    lanes[home, target] = int(self._add(self._problem.weight * paid, paid)[0])
                used = pairs[number, places == target]
                columns = np.append(used, lanes[home, target])
                self._model.limit(-inf, 0.0, columns, np.append(np.ones(len(used)), -1.0))

    # --- time -------------------------------------------------------------------------------------------

    def _keep_time(self) -> None:
        problem, count = self._problem, len(self._problem.labels)
        latest = np.minimum(problem.latest_h or inf, np.full(count, problem.deadline_h))
        ends = np.concatenate([self._add(np.zeros(1), np.zeros(1), most=float(one)) for one in latest])
        last = self._add(np.array([problem.hour]), np.zeros(1), most=problem.deadline_h)
        for step in range(count):
            columns, hours = (np.concatenate(parts) for parts in zip(*self._hours[step], strict=True))
            self._end_after(ends[step], columns, hours, [ends[need] for need in problem.needs[step]])
            self._model.limit(0.0, inf, np.array([last[0], ends[step]]), np.array([1.0, -1.0]))

    def _end_after(self, end: np.int64, columns: Ints, hours: Floats, needs: Iterable[np.int64]) -> None:
        """A step ends when it has taken its hours, after what it needs has ended."""
        for before in [[need] for need in needs] or [[]]:
            where = np.concatenate([np.array([end, *before]), columns])
            self._model.limit(0.0, inf, where, np.concatenate([[1.0], -np.ones(len(before)), -hours]))


def size_of(problem: Problem) -> int:
    """Columns that a program would have, about."""
    pairs = 0
    for tree in problem.trees:
        homes = len(np.unique(problem.labels[tree.source].place))
        pairs += sum(homes * len(problem.labels[reader]) for reader in tree.readers)
    return pairs + sum(len(labels) for labels in problem.labels)
