"""What limits of a workflow are worth: prices of hours along its paths and of dollars beyond its budget, such that no
choice that keeps the limits is worth less than the bound they give. Found by cutting planes: each choice that was best
at some prices says what others would have made of it."""

from math import inf

import numpy as np

from crucible.core.flow.links import Prices
from crucible.core.flow.problem import Problem, Worth
from crucible.core.integer import Model
from crucible.core.offers import Floats, Ints

# Prices are looked for up to so many times what everything costs in the hours that there are.
STEEPEST = 1e3
# Further rounds that promise less than this, as a share, are not worth it.
WORTHWHILE = 1e-5


class Pricing:
    """Hours are priced by a flow from the first steps to the last: a step's hour is worth what flows through it."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        count = len(problem.labels)
        self._into = [[(need, step) for need in needs] or [(count, step)] for step, needs in enumerate(problem.needs)]
        is_last = set(range(count)) - {need for needs in problem.needs for need in needs}
        self._arcs = [arc for arcs in self._into for arc in arcs] + [(step, count + 1) for step in sorted(is_last)]
        self._scale = max(sum(float(labels.value.max()) for labels in problem.labels), 1.0)
        self._cuts: list[Worth] = []
        self._hours = np.zeros(count)
        self._flow = 0.0
        self._money = 0.0
        if problem.hour > 0:
            self._flow = problem.hour
            self._hours = self._spread()

    def prices(self) -> Prices:
        return Prices(self._hours, self._money)

    @property
    def state(self) -> tuple[Floats, float, float]:
        """What prices there are now; they can be had back."""
        return self._hours, self._flow, self._money

    @state.setter
    def state(self, known: tuple[Floats, float, float]) -> None:
        self._hours, self._flow, self._money = known

    @property
    def earned(self) -> float:
        """What the limits themselves are worth at these prices."""
        problem = self._problem
        late = 0.0 if problem.deadline_h == inf else problem.deadline_h * (self._flow - problem.hour)
        return late + (0.0 if problem.budget == inf else problem.budget * self._money)

    def learn(self, found: Worth, bound: float) -> bool:
        """From what was best at these prices; False if no others promise more."""
        self._cuts.append(found)
        problem, model = self._problem, Model()
        is_timed = problem.is_timed
        most = STEEPEST * self._scale / min(problem.deadline_h, max(found.makespan_h, 1e-6))
        flow = model.add(np.zeros(len(self._arcs)), np.full(len(self._arcs), most if is_timed else 0.0), is_whole=False)
        paid = model.add(np.zeros(1), np.full(1, STEEPEST if problem.budget < inf else 0.0), is_whole=False)
        value = model.add(np.full(1, -STEEPEST * self._scale), np.full(1, STEEPEST * self._scale), is_whole=False)
        self._conserve(model, flow)
        for one in self._cuts:
            self._cut(model, one, flow, paid, value)
        best = model.relaxed(self._gains(model.size, flow, paid, value))
        if best is None:
            return False
        self._hours = self._through(best.values[flow])
        self._flow = float(sum(best.values[flow[i]] for i, arc in enumerate(self._arcs) if arc[0] == len(self._hours)))
        self._money = float(best.values[paid[0]])
        promised = float(best.values[value[0]]) - self.earned
        return promised - bound > WORTHWHILE * max(abs(bound), 1.0)

    def _conserve(self, model: Model, flow: Ints) -> None:
        problem, count = self._problem, len(self._hours)
        for step in range(count):
            ins = [i for i, (_, to) in enumerate(self._arcs) if to == step]
            outs = [i for i, (start, _) in enumerate(self._arcs) if start == step]
            model.limit(0.0, 0.0, flow[[*ins, *outs]], np.array([1.0] * len(ins) + [-1.0] * len(outs)))
        source = [i for i, (start, _) in enumerate(self._arcs) if start == count]
        most = problem.hour if problem.deadline_h == inf else inf
        model.limit(problem.hour, most, flow[source], np.ones(len(source)))

    def _cut(self, model: Model, found: Worth, flow: Ints, paid: Ints, value: Ints) -> None:
        """value ≤ what this choice is worth, with its hours and its money at their prices."""
        took = [end - begin for begin, end in zip(found.begins_h, found.ends_h, strict=True)]
        into = [(flow[i], took[to]) for i, (_, to) in enumerate(self._arcs) if to < len(took)]
        columns = np.array([value[0], paid[0], *(column for column, _ in into)])
        factors = np.array([1.0, -found.money, *(-hours for _, hours in into)])
        model.limit(-inf, found.objective - self._problem.hour * found.makespan_h, columns, factors)

    def _gains(self, size: int, flow: Ints, paid: Ints, value: Ints) -> Floats:
        """To be made least."""
        problem, costs = self._problem, np.zeros(size)
        costs[value] = -1.0
        if problem.deadline_h < inf:
            costs[[flow[i] for i, arc in enumerate(self._arcs) if arc[0] == len(self._hours)]] = problem.deadline_h
        if problem.budget < inf:
            costs[paid] = problem.budget
        return costs

    def _through(self, flow: Floats) -> Floats:
        through = np.zeros(len(self._hours))
        for amount, (_, to) in zip(flow.tolist(), self._arcs, strict=True):
            if to < len(through):
                through[to] += amount
        return through

    def _spread(self) -> Floats:
        """To begin with: all that flows takes the path that is longest at the least hours of each step."""
        problem = self._problem
        ends = [0.0] * len(problem.labels)
        before: dict[int, int | None] = {}
        for step in problem.order:
            last = max(problem.needs[step], key=lambda need: ends[need], default=None)
            before[step] = last
            ends[step] = float(problem.labels[step].hours.min()) + (0.0 if last is None else ends[last])
        hours = np.zeros(len(ends))
        at: int | None = int(np.argmax(ends))
        while at is not None:
            hours[at] = self._flow
            at = before[at]
        return hours
