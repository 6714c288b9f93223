"""What trials try, what they are worth, and which of them is best."""

import math
from dataclasses import replace

import pytest

from crucible.core import sweep as sweeps
from crucible.model.sweep import (
    Curve,
    Delivery,
    Evaluation,
    Goal,
    Objective,
    Parameter,
    Reading,
    Scale,
    Search,
    Sweep,
)
from crucible.model.task import Task, TaskPhase, Verdict
from making import NOW

LOSS = Objective(metric="loss")
A = Parameter(name="a", values=(1, 2))
B = Parameter(name="b", values=("x", "y", "z"))


def test_a_grid_tries_every_combination_and_the_last_parameter_changes_first() -> None:
    assert sweeps.trials(Sweep(parameters=(A, B))) == tuple({"a": a, "b": b} for a in (1, 2) for b in "xyz")


def test_a_grid_may_be_cut_off() -> None:
    assert sweeps.trials(Sweep(parameters=(A, B), count=2)) == ({"a": 1, "b": "x"}, {"a": 1, "b": "y"})


def test_a_grid_takes_no_more_memory_than_its_trials() -> None:
    far = Parameter(name="n", least=0, most=2.0**53, is_whole=True)
    found = sweeps.trials(Sweep(parameters=(far, far), count=3))
    assert [trial["n"] for trial in found if trial] == [0, 0, 0]


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (Parameter(name="p", least=0, most=0.5, step=0.1), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
        (Parameter(name="p", least=2, most=9, step=3, is_whole=True), [2, 5, 8]),
        (Parameter(name="p", least=1, most=3, is_whole=True), [1, 2, 3]),
        (Parameter(name="p", least=7, most=7), [7.0]),
    ],
)
def test_a_range_with_steps_has_the_values_that_one_would_write_down(parameter: Parameter, values: list[float]) -> None:
    found = [trial["p"] for trial in sweeps.trials(Sweep(parameters=(parameter,))) if trial]
    assert found == values
    assert all(type(one) is (int if parameter.is_whole else float) for one in found)


def test_random_trials_follow_from_the_seed_and_their_number() -> None:
    space = (Parameter(name="lr", least=1e-5, most=0.1, scale=Scale.LOG), B)
    ten, twenty = (sweeps.trials(Sweep(method=Search.RANDOM, parameters=space, count=n, seed=7)) for n in (10, 20))
    assert twenty[:10] == ten
    assert sweeps.trials(Sweep(method=Search.RANDOM, parameters=space, count=10, seed=8)) != ten


def test_an_adaptive_trial_is_given_nothing_before_it_begins() -> None:
    assert sweeps.trials(Sweep(method=Search.TPE, parameters=(A,), count=3)) == (None, None, None)


def test_an_evaluation_is_every_model_on_every_dataset() -> None:
    assert sweeps.pairs(Evaluation(models=("m", "n"), datasets=("d",))) == (
        {"model": "m", "dataset": "d"},
        {"model": "n", "dataset": "d"},
    )


def test_parameters_reach_a_program_as_text_it_can_read_back() -> None:
    params = {"lr": 1e-05, "deep": True, "n": 3, "opt.name": "adam", "rate": 0.1}
    assert sweeps.delivered(Delivery.ENV, params) == (
        (),
        {"lr": "1e-05", "deep": "true", "n": "3", "opt_name": "adam", "rate": "0.1"},
    )
    assert sweeps.delivered(Delivery.ARGS, {"lr": 0.5, "opt-name": "a b"}) == (("--lr=0.5", "--opt-name=a b"), {})
    assert sweeps.delivered(Delivery.FILE, params) == ((), {})


# --- what a trial is worth ----------------------------------------------------------------------------------------


def test_the_last_or_the_best_report_counts() -> None:
    curve = Curve(last=0.5, best=0.2, reports=2)
    assert sweeps.worth(curve, LOSS) == 0.5
    assert sweeps.worth(curve, replace(LOSS, reading=Reading.BEST)) == 0.2


def test_a_trial_that_reported_nothing_finite_is_worth_nothing_and_says_why() -> None:
    spoilt = Curve(last=None, best=0.2, reports=2)
    assert sweeps.worth(None, LOSS) is sweeps.worth(spoilt, LOSS) is None
    assert sweeps.why_worthless(None, LOSS) == "it reported no loss"
    assert sweeps.why_worthless(spoilt, LOSS) == "its loss was no finite number"
    assert sweeps.finite({"loss": math.nan, "acc": 0.5, "n": math.inf}) == {"acc": 0.5}


def test_a_search_without_a_best_trial_says_why_and_what_to_do() -> None:
    silent, spoilt = sweeps.why_worthless(None, LOSS), sweeps.diverged(LOSS)
    nothing = "no trial has ended with a finite loss: none reported it, or anything else "
    assert sweeps.why_no_best(LOSS, [silent], []) == nothing + "(in Python: crucible.train.log(step, loss=…))"
    others = sweeps.why_no_best(LOSS, [silent], {"los", "acc"})
    assert others == "no trial has ended with a finite loss; they report acc, los"
    infinite = sweeps.why_no_best(LOSS, [silent, spoilt], {"acc"})
    assert infinite == "no trial has ended with a finite loss: what was reported of it was NaN or infinite"


def trial(
    index: int, value: float | None, phase: TaskPhase = TaskPhase.SUCCEEDED, verdict: Verdict | None = None
) -> Task:
    return Task(id=f"t{index}", job_id="j", index=index, created_at=NOW, phase=phase, value=value, verdict=verdict)  # type: ignore[arg-type]


def test_what_was_stopped_early_comes_after_what_was_not_and_no_value_comes_last() -> None:
    tasks = [
        trial(0, None),
        trial(1, 0.1, verdict=Verdict.PRUNED),
        trial(2, 0.9),
        trial(3, 0.3, TaskPhase.FAILED),
        trial(4, 0.5),
        trial(5, 0.5),
    ]

    def order(goal: Goal) -> list[int]:
        return [task.index for task in sorted(tasks, key=lambda task: sweeps.standing(task, goal))]

    assert order(Goal.MINIMIZE) == [4, 5, 2, 1, 0, 3]
    assert order(Goal.MAXIMIZE) == [2, 4, 5, 1, 0, 3]


def test_the_best_trial_came_to_its_end_with_a_value() -> None:
    pruned = trial(0, 0.1, verdict=Verdict.PRUNED)
    assert sweeps.best([pruned, trial(1, None)], Goal.MINIMIZE) is None
    assert sweeps.best([], Goal.MINIMIZE) is None
    found = sweeps.best([pruned, trial(1, 0.7), trial(2, 0.4)], Goal.MINIMIZE)
    assert found is not None and found.index == 2
