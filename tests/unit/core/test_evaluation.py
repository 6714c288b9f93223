"""The table of an evaluation."""

import math

from crucible.core.evaluation import Came, Figure, table
from crucible.model.sweep import Evaluation, Goal
from crucible.model.task import TaskPhase

ASKED = Evaluation(models=("base", "a", "b"), datasets=("x", "y"), baseline="base")
DONE = TaskPhase.SUCCEEDED


def came(*values: dict[str, float]) -> list[Came]:
    return [Came(index, DONE, metrics) for index, metrics in enumerate(values)]


def test_every_cell_stands_beside_that_of_the_baseline() -> None:
    found = table(ASKED, ASKED.models, came({"acc": 0.5}, {"acc": 0.2}, {"acc": 0.7}, {"acc": 0.1}, {}, {"acc": 0.2}))
    base, a, b = found.rows
    assert found.metrics == ("acc",)
    assert [cell.figures for cell in base.cells if cell] == [{"acc": Figure(0.5)}, {"acc": Figure(0.2)}]
    assert a.cells[0] is not None and a.cells[0].figures["acc"].is_better is True
    assert a.cells[1] is not None and a.cells[1].figures["acc"] == Figure(0.1, -0.1, False)
    assert b.cells[1] is not None and b.cells[1].figures["acc"] == Figure(0.2, 0.0, None)


def test_less_is_better_if_that_is_the_goal() -> None:
    asked = Evaluation(models=("base", "a"), datasets=("x",), baseline="base", goal=Goal.MINIMIZE)
    cell = table(asked, ["a"], came({"loss": 2.0}, {"loss": 1.0})).rows[0].cells[0]
    assert cell is not None and cell.figures["loss"] == Figure(1.0, -1.0, True)


def test_a_mean_is_over_all_datasets_or_none() -> None:
    base, a, b = table(ASKED, ASKED.models, came({"acc": 0.5}, {"acc": 0.3}, {"acc": 0.7}, {}, {}, {})).rows
    assert base.means["acc"].value == 0.4
    assert a.means == b.means == {}


def test_without_a_baseline_nothing_is_compared() -> None:
    asked = Evaluation(models=("a", "b"), datasets=("x",))
    for row in table(asked, asked.models, came({"acc": 0.5}, {"acc": 0.3})).rows:
        assert row.cells[0] is not None and row.cells[0].figures["acc"].delta is None


def test_columns_are_those_that_were_asked_for_in_their_order() -> None:
    asked = Evaluation(models=("a",), datasets=("x",), metrics=("f1", "acc", "missing"))
    found = table(asked, asked.models, came({"acc": 0.5, "f1": 0.3, "other": 1.0}))
    assert found.metrics == ("f1", "acc", "missing")
    assert found.rows[0].cells[0] is not None and found.rows[0].cells[0].figures.keys() == {"f1", "acc"}


def test_what_is_not_there_yet_or_not_finite_is_no_figure() -> None:
    found = table(ASKED, ("a",), [Came(2, TaskPhase.RUNNING, {}), Came(3, DONE, {"acc": math.nan}, "because")])
    running, spoilt = found.rows[0].cells
    assert running is not None and (running.phase, running.figures) == (TaskPhase.RUNNING, {})
    assert spoilt is not None and (spoilt.figures, spoilt.reason) == ({}, "because")


def test_some_rows_of_many_are_compared_with_a_baseline_that_is_not_among_them() -> None:
    all_of_it = came({"acc": 0.5}, {"acc": 0.5}, {"acc": 0.7}, {"acc": 0.7}, {"acc": 0.1}, {"acc": 0.1})
    assert table(ASKED, ("b",), all_of_it).rows == table(ASKED, ASKED.models, all_of_it).rows[2:]
