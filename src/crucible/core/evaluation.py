"""The table of an evaluation: models down, datasets and metrics across, each cell beside that of the baseline."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crucible.core.sweep import finite, is_better
from crucible.model.sweep import Evaluation, Goal
from crucible.model.task import TaskPhase


@dataclass(frozen=True, slots=True)
class Came:
    """What came of one model on one dataset."""

    index: int
    phase: TaskPhase
    metrics: Mapping[str, float]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    value: float
    delta: float | None = None  # to the baseline; None: it is the baseline, or has none there
    is_better: bool | None = None  # than the baseline; None: neither better nor worse


@dataclass(frozen=True, slots=True)
class Cell:
    phase: TaskPhase
    figures: Mapping[str, Figure]
    reason: str | None


@dataclass(frozen=True, slots=True)
class TableRow:
    model: str
    cells: tuple[Cell | None, ...]  # one for each dataset
    means: Mapping[str, Figure]  # over all datasets; a metric that is missing on one of them has none


@dataclass(frozen=True, slots=True)
class Table:
    datasets: tuple[str, ...]
    metrics: tuple[str, ...]
    rows: tuple[TableRow, ...]


def indexes(asked: Evaluation, model: int) -> range:
    """Of the tasks of one model, one for each dataset."""
    return range(model * len(asked.datasets), (model + 1) * len(asked.datasets))


def table(asked: Evaluation, models: Sequence[str], came: Iterable[Came]) -> Table:
    """Rows for `models`, from what came of them and of the baseline."""
    by_index = {one.index: one for one in came}
    metrics = asked.metrics or named(by_index.values())
    base = None if asked.baseline is None else _cells(asked, asked.baseline, by_index, metrics)
    base_means = None if base is None else _means(base, metrics)
    rows = []
    for model in models:
        mine = _cells(asked, model, by_index, metrics)
        against = None if model == asked.baseline else base
        cells = tuple(
            None if cell is None else _compared(cell, None if against is None else against[n], asked.goal)
            for n, cell in enumerate(mine)
        )
        means = figures(_means(mine, metrics), None if against is None else base_means, asked.goal)
        rows.append(TableRow(model, cells, means))
    return Table(asked.datasets, tuple(metrics), tuple(rows))


def named(came: Iterable[Came]) -> tuple[str, ...]:
    """Every metric that somebody reported, in order."""
    return tuple(sorted({name for one in came for name in one.metrics}))


def _cells(
    asked: Evaluation, model: str, by_index: Mapping[int, Came], metrics: Sequence[str]
) -> tuple[Came | None, ...]:
    found = []
    for index in indexes(asked, asked.models.index(model)):
        one = by_index.get(index)
        known = {} if one is None else {name: one.metrics[name] for name in metrics if name in one.metrics}
        found.append(None if one is None else Came(one.index, one.phase, finite(known), one.reason))
    return tuple(found)


def _compared(cell: Came, base: Came | None, goal: Goal) -> Cell:
    return Cell(cell.phase, figures(cell.metrics, None if base is None else base.metrics, goal), cell.reason)


def figures(values: Mapping[str, float], base: Mapping[str, float] | None, goal: Goal) -> dict[str, Figure]:
    return {name: figure(value, None if base is None else base.get(name), goal) for name, value in values.items()}


def figure(value: float, base: float | None, goal: Goal) -> Figure:
    if base is None:
        return Figure(value)
    return Figure(value, value - base, None if value == base else is_better(value, base, goal))


def _means(cells: Sequence[Came | None], metrics: Sequence[str]) -> dict[str, float]:
    found = {}
    for name in metrics:
        values = [cell.metrics[name] for cell in cells if cell is not None and name in cell.metrics]
        if values and len(values) == len(cells):
            found[name] = sum(values) / len(values)
    return found
