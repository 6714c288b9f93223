"""The adaptive search: inside its space, learning, and the same for the same history."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from crucible.core.sweep import drawn
from crucible.model.errors import InvalidRequest
from crucible.model.sweep import Goal, Objective, Parameter, Params, Scale, Search, Sweep, Tried
from crucible.search import optuna_search
from crucible.search.optuna_search import OptunaSampler

SPACE = (
    Parameter(name="x", least=-5.0, most=5.0),
    Parameter(name="lr", least=1e-5, most=0.1, scale=Scale.LOG),
    Parameter(name="mixed", values=(1, True, "a", 1.0)),
    Parameter(name="width", least=1, most=64, is_whole=True, scale=Scale.LOG),
    Parameter(name="rate", least=0.0, most=1.0, step=0.1),
    Parameter(name="depth", least=2, most=9, step=3, is_whole=True),
    Parameter(name="fixed", values=(7,)),
)
SWEEP = Sweep(method=Search.TPE, count=100, parameters=SPACE, objective=Objective(metric="loss"))


def cost(params: Mapping[str, Any]) -> float:
    return float((params["x"] - 1) ** 2 + (math.log10(params["lr"]) + 3) ** 2 + abs(params["rate"] - 0.3))


def suggested(sweep: Sweep, number: int, history: Sequence[Tried]) -> Params:
    (found,) = OptunaSampler().suggest(sweep, [number], history)
    return found


def searched(trials: int, sweep: Sweep = SWEEP) -> list[Tried]:
    history: list[Tried] = []
    for number in range(trials):
        params = suggested(sweep, number, history)
        history.append(Tried(number, params, cost(params)))
    return history


def test_the_same_history_gets_the_same_answer_in_any_order() -> None:
    history = searched(14)
    first = suggested(SWEEP, 14, history)
    assert suggested(SWEEP, 14, list(reversed(history))) == first
    assert suggested(SWEEP, 15, history) != first


def test_trials_that_begin_together_know_of_each_other() -> None:
    history = searched(14)
    first, second, third = OptunaSampler().suggest(SWEEP, [14, 15, 16], history)
    assert first == suggested(SWEEP, 14, history)
    assert second != suggested(SWEEP, 15, history)
    assert OptunaSampler().suggest(SWEEP, [14, 15, 16], history) == [first, second, third]


def test_the_first_trials_are_those_of_a_random_search() -> None:
    assert [one.params for one in searched(5)] == [drawn(SWEEP, number) for number in range(5)]


def test_what_is_suggested_lies_in_the_space() -> None:
    for one in searched(25):
        assert -5 <= one.params["x"] <= 5
        assert 1e-5 <= one.params["lr"] <= 0.1
        assert any(one.params["mixed"] == v and type(one.params["mixed"]) is type(v) for v in (1, True, "a", 1.0))
        assert one.params["width"] in range(1, 65) and type(one.params["width"]) is int
        assert one.params["rate"] in [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        assert one.params["depth"] in (2, 5, 8)
        assert one.params["fixed"] == 7
        assert list(one.params) == [each.name for each in SPACE]


def test_it_learns() -> None:
    history = searched(60)
    first, last = history[:20], history[40:]
    assert sum(one.value or 0 for one in last) < sum(one.value or 0 for one in first) / 2


def test_more_is_better_if_that_is_the_goal() -> None:
    sweep = Sweep(
        method=Search.TPE,
        count=50,
        parameters=(Parameter(name="x", least=0.0, most=1.0),),
        objective=Objective(metric="acc", goal=Goal.MAXIMIZE),
    )
    history: list[Tried] = []
    for number in range(40):
        params = suggested(sweep, number, history)
        history.append(Tried(number, params, params["x"]))
    assert sum(one.params["x"] for one in history[20:]) / 20 > 0.8


def test_a_trial_that_runs_is_not_tried_beside_itself() -> None:
    history = searched(20)
    first = suggested(SWEEP, 20, history)
    assert suggested(SWEEP, 20, [*history, Tried(19, first, is_live=True)]) != first


def test_where_trials_failed_is_tried_less() -> None:
    """Better and better towards 1, but from one half on nothing runs."""
    space = (Parameter(name="x", least=0.0, most=1.0),)
    sweep = Sweep(method=Search.TPE, count=60, parameters=space, objective=Objective(metric="loss"))
    history = [Tried(n, {"x": n / 40}, -n / 40 if n <= 20 else None) for n in range(40)]
    silent = [one for one in history if one.value is not None]

    def failing(known: list[Tried]) -> int:
        return sum(suggested(sweep, 100 + n, known)["x"] > 0.5 for n in range(30))

    assert failing(history) < failing(silent)


def test_a_long_history_is_cut_to_what_teaches_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna_search, "_MOST_HISTORY", 12)
    history = [Tried(n, drawn(SWEEP, n), float(n)) for n in range(40)]
    kept = optuna_search._telling([*history, Tried(50, drawn(SWEEP, 50), is_live=True)], Goal.MINIMIZE)
    assert [one.number for one in kept] == [*range(11), 50]


def test_a_server_without_the_extra_says_which_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    OptunaSampler().check()
    monkeypatch.setattr(optuna_search, "find_spec", lambda name: None)
    with pytest.raises(InvalidRequest, match=r"pip install 'crucible\[hpo\]'"):
        OptunaSampler().check()
