"""Least sums over whole numbers, by HiGHS: one thread and fixed seeds, so that the same program has the same answer. An
answer says how far from the least it can be."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from crucible.core.offers import Bools, Floats, Ints

# A search that is not over after so many branches ends with what it has, and says how good that is. The number, not the
# clock, decides: the same program ends in the same place on every machine.
BRANCHES = 300
# Costs are brought to about this size: the solver tells sums apart that differ by a millionth.
SIZE = 1e3
ROW_WISE = 2
LEAST = 1
# What a sum of whole numbers may be off by in the solver's arithmetic.
SLIGHT = 1e-6


# So many columns are searched at once; of more, those that are too dear are left out.
FEW = 400


@dataclass(frozen=True, slots=True)
class Solved:
    values: Floats
    least: float  # what the sum comes to
    bound: float  # what it cannot be below
    dearness: Floats = field(
        default_factory=lambda: np.zeros(0)
    )  # without whole numbers: what one more of each column adds at least


class Model:
    """Columns with a cost and bounds, rows that limit sums of them."""

    def __init__(self) -> None:
        self._low: list[Floats] = []
        self._high: list[Floats] = []
        self._whole: list[Bools] = []
        self._columns = 0
        self._row_low: list[float] = []
        self._row_high: list[float] = []
        self._index: list[npt.NDArray[np.int32]] = []
        self._factor: list[Floats] = []

    @property
    def size(self) -> int:
        return self._columns

    def add(self, low: Floats | Ints, high: Floats | Ints, is_whole: bool = True) -> Ints:
        """The numbers of the new columns."""
        count = len(low)
        self._low.append(low.astype(np.float64))
        self._high.append(high.astype(np.float64))
        self._whole.append(np.full(count, is_whole))
        self._columns += count
        return np.arange(self._columns - count, self._columns)

    def limit(self, low: float, high: float, columns: Ints, factors: Floats) -> None:
        """`low` ≤ the sum of columns × factors ≤ `high`."""
        self._row_low.append(low)
        self._row_high.append(high)
        self._index.append(columns.astype(np.int32))
        self._factor.append(factors.astype(np.float64))

    def limit_pairs(self, first: Ints, factor: Floats, second: Ints) -> None:
        """A row for each pair: first × factor + second ≤ 0."""
        for one, times, other in zip(first.tolist(), factor.tolist(), second.tolist(), strict=True):
            self.limit(-np.inf, 0.0, np.array([one, other]), np.array([times, 1.0]))

    def minimise(
        self, cost: Floats, start: Floats | None = None, gap: float = 0.0, few: int = FEW, relaxed: Solved | None = None
    ) -> Solved | None:
        """None if nothing keeps the limits. `start` is a solution to begin with; `gap` is how far from the least, as a
        share, is good enough. Of more than `few` columns most are too dear to be part of an optimum: what the program
        without whole numbers says of them proves it."""
        whole, low, high = np.concatenate(self._whole), np.concatenate(self._low), np.concatenate(self._high)
        if self._columns <= few:
            return self._solve(cost, whole, low, high, start, gap)
        relaxed = relaxed or self.relaxed(cost)
        if relaxed is None:
            return None
        is_unused = whole & (relaxed.values <= low + SLIGHT) & (True if start is None else start <= low)
        dear = np.where(is_unused, relaxed.dearness, -np.inf)
        last = min(few + int(np.count_nonzero(~is_unused)), len(dear) - 1)
        limit = max(float(np.partition(dear, last)[last]), 0.0)
        found = self._solve(cost, whole, low, np.where(dear > limit, low, high), start, gap)
        above = np.inf if found is None else found.least - relaxed.least
        if found is not None and (above <= limit or gap > 0):
            # Whoever uses one of the others pays as much as it is too dear.
            return Solved(found.values, found.least, min(found.bound, relaxed.least + limit))
        start = start if found is None else found.values
        return self._solve(cost, whole, low, np.where(dear > above, low, high), start, gap)

    def relaxed(self, cost: Floats) -> Solved | None:
        """The same without whole numbers: what no solution is below."""
        nothing = np.zeros(self._columns, dtype=bool)
        return self._solve(cost, nothing, np.concatenate(self._low), np.concatenate(self._high))

    def _solve(
        self, cost: Floats, whole: Bools, low: Floats, high: Floats, start: Floats | None = None, gap: float = 0.0
    ) -> Solved | None:
        import highspy  # large, and needed only here

        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        for option, value in OPTIONS:
            solver.setOptionValue(option, value)
        solver.setOptionValue("mip_rel_gap", gap)
        scale = SIZE / max(float(np.abs(cost).max(initial=0.0)), 1e-300) if cost.any() else 1.0
        solver.passModel(
            self._columns,
            len(self._row_low),
            sum(map(len, self._index)),
            ROW_WISE,
            LEAST,
            0.0,
            cost * scale,
            low,
            high,
            np.array(self._row_low),
            np.array(self._row_high),
            np.cumsum([0, *map(len, self._index)])[: len(self._row_low)].astype(np.int32),
            np.concatenate([*self._index, np.zeros(0, dtype=np.int32)]),
            np.concatenate([*self._factor, np.zeros(0)]),
            whole.astype(np.int32),
        )
        if start is not None:
            solver.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
        solver.run()
        info, solution = solver.getInfo(), solver.getSolution()
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return None
        least, values = float(info.objective_function_value), np.array(solution.col_value)
        if not whole.any():
            return Solved(values, least / scale, least / scale, np.array(solution.col_dual) / scale)
        values[whole] = np.rint(values[whole])
        return Solved(values, least / scale, min(float(info.mip_dual_bound), least) / scale)


OPTIONS: tuple[tuple[str, bool | int | float], ...] = (
    ("output_flag", False),
    ("threads", 1),
    ("random_seed", 0),
    ("mip_abs_gap", SLIGHT),
    ("mip_max_nodes", BRANCHES),
)
