"""Which trials are given up, and what is kept of each to decide it."""

import math
from dataclasses import replace

import pytest

from crucible.core.pruning import Peers, Report, followed, given_up, joined, newest_mark
from crucible.model.sweep import Curve, Goal, Objective, Pruner, Pruning, Reading

LOSS = Objective(metric="loss")
MEDIAN = Pruning(rule=Pruner.MEDIAN, least_trials=3)
ASHA = Pruning(rule=Pruner.ASHA, after_step=1, reduction=3)


def reports(*values: float | None, first: int = 1, number: int = 0) -> list[Report]:
    return [(number + n, first + n, value) for n, value in enumerate(values)]


def at(step: int, value: float | None) -> Curve:
    return Curve(last=value, best=value, reports=1, marks=((step, value),))


def test_a_curve_knows_the_last_and_the_best_of_its_trial() -> None:
    curve = followed(None, 0, reports(3.0, 1.0, 2.0), LOSS, None)
    assert (curve.last, curve.best, curve.reports, curve.number) == (2.0, 1.0, 3, 3)
    assert followed(None, 0, reports(3.0, 1.0, 2.0), replace(LOSS, goal=Goal.MAXIMIZE), None).best == 3.0


def test_what_is_sent_twice_counts_once() -> None:
    once = followed(None, 0, reports(3.0, 1.0), LOSS, ASHA)
    assert followed(once, 0, reports(3.0, 1.0), LOSS, ASHA) == once
    assert followed(once, 0, reports(3.0, 1.0, 0.5), LOSS, ASHA).last == 0.5


def test_a_new_attempt_goes_on_and_an_older_one_is_not_heard() -> None:
    first = followed(None, 0, reports(3.0, 1.0), LOSS, ASHA)
    second = followed(first, 1, reports(2.0), LOSS, ASHA)
    assert (second.last, second.best, second.attempt, second.number) == (2.0, 1.0, 1, 1)
    assert followed(second, 0, reports(9.0, number=2), LOSS, ASHA) == second


def test_records_without_the_objective_are_only_counted() -> None:
    curve = followed(None, 0, [(0, 1, None), (1, 2, 0.5)], LOSS, None)
    assert (curve.reports, curve.number, curve.last) == (1, 2, 0.5)


def test_a_value_that_is_not_finite_takes_the_last_one_away_and_is_never_the_best() -> None:
    curve = followed(None, 0, reports(1.0, math.nan), LOSS, MEDIAN)
    assert (curve.last, curve.best) == (None, 1.0)
    assert curve.marks == ((1, 1.0), (2, None))
    assert followed(None, 0, reports(-math.inf), LOSS, None).best is None


def test_reports_without_a_step_are_counted_instead() -> None:
    curve = followed(None, 0, [(0, None, 3.0), (1, None, 2.0), (2, None, 1.0)], LOSS, ASHA)
    assert curve.marks == ((1, 3.0), (3, 1.0))


def test_a_mark_is_worth_what_the_trial_would_have_been_worth_there() -> None:
    values = reports(3.0, 1.0, 2.0)
    assert followed(None, 0, values, LOSS, ASHA).marks == ((1, 3.0), (3, 2.0))
    assert followed(None, 0, values, replace(LOSS, reading=Reading.BEST), ASHA).marks == ((1, 3.0), (3, 1.0))


def test_a_mark_that_was_reached_stays_whatever_comes_after() -> None:
    curve = followed(None, 0, reports(3.0, 2.0, 1.0), LOSS, ASHA)
    again = followed(curve, 1, reports(9.0, 8.0, 7.0), LOSS, ASHA)
    assert again.marks == curve.marks


def test_a_trial_that_reports_seldom_has_the_newest_mark_only() -> None:
    assert followed(None, 0, [(0, 100, 1.0)], LOSS, ASHA).marks == ((81, 1.0),)


@pytest.mark.parametrize(
    ("pruning", "marks"),
    [
        (ASHA, [1, 1, 3, 3, 3, 3, 3, 3, 9]),
        (Pruning(rule=Pruner.ASHA, after_step=2, reduction=2), [None, 2, 2, 4, 4, 4, 4, 8, 8]),
        (MEDIAN, [1, 2, 3, 4, 4, 6, 6, 6, 9]),
        (Pruning(rule=Pruner.MEDIAN, after_step=5), [None, None, None, None, 5, 5, 7, 7, 7]),
    ],
)
def test_marks_lie_further_and_further_apart(pruning: Pruning, marks: list[int | None]) -> None:
    assert [newest_mark(pruning, step) for step in range(1, 10)] == marks


def test_a_million_steps_are_thirty_marks() -> None:
    values = [(n, n + 1, 1.0) for n in range(0, 1_000_000, 1000)]
    assert len(followed(None, 0, values, LOSS, MEDIAN).marks) < 35


# --- who is stopped -----------------------------------------------------------------------------------------------


def stopped(
    values: dict[str, float | None], running: str, pruning: Pruning, objective: Objective = LOSS
) -> dict[str, str]:
    return judged({name: at(9, value) for name, value in values.items()}, list(running), pruning, objective)


def judged(
    curves: dict[str, Curve], running: list[str], pruning: Pruning, objective: Objective = LOSS
) -> dict[str, str]:
    peers: Peers = {}
    for curve in curves.values():
        joined(peers, None, curve, objective.goal)
    return given_up(curves, running, peers, objective, pruning)


def test_the_median_stops_what_is_worse_than_half_of_the_others() -> None:
    found = stopped({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, "abcd", MEDIAN)
    assert found == {
        "c": "stopped early: loss 3 at step 9 is worse than the median of 3 others there, 2",
        "d": "stopped early: loss 4 at step 9 is worse than the median of 3 others there, 2",
    }


def test_nobody_is_stopped_by_too_few_others() -> None:
    assert stopped({"a": 1.0, "b": 2.0, "c": 3.0}, "abc", MEDIAN) == {}
    assert stopped({"a": 1.0, "b": 2.0}, "ab", ASHA) == {}


def test_asha_keeps_the_best_share() -> None:
    found = stopped({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0, "f": 6.0}, "abcdef", ASHA)
    assert sorted(found) == ["c", "d", "e", "f"]
    assert found["c"] == "stopped early: loss 3 at step 9 is not among the best 2 of 6 there"


def test_more_is_better_if_that_is_the_goal() -> None:
    more = Objective(metric="acc", goal=Goal.MAXIMIZE)
    assert sorted(stopped({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, "abcd", MEDIAN, more)) == ["a", "b"]
    assert stopped({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, "a", MEDIAN, more) == {
        "a": "stopped early: acc 1 at step 9 is worse than the median of 3 others there, 3"
    }


def test_what_has_ended_is_compared_with_and_never_stopped() -> None:
    assert sorted(stopped({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, "d", MEDIAN)) == ["d"]


def test_a_value_that_is_not_finite_is_the_worst() -> None:
    found = stopped({"a": 1.0, "b": 2.0, "c": 3.0, "d": None}, "abcd", ASHA)
    assert found["d"] == "stopped early: loss that is no finite number at step 9 is not among the best 1 of 4 there"


def test_trials_are_compared_at_the_newest_mark_of_each() -> None:
    ahead = Curve(marks=((1, 9.0), (3, 0.1)))
    curves = {"ahead": ahead, "b": at(1, 1.0), "c": at(1, 2.0), "d": at(1, 3.0), "new": Curve()}
    assert judged(curves, list(curves), ASHA).keys() == {"c", "d"}


def test_a_curve_that_grows_is_entered_once() -> None:
    peers: Peers = {}
    first = Curve(marks=((1, 2.0),))
    second = Curve(marks=((1, 2.0), (3, 1.0)))
    joined(peers, None, first, Goal.MINIMIZE)
    joined(peers, first, second, Goal.MINIMIZE)
    joined(peers, second, second, Goal.MINIMIZE)
    joined(peers, None, at(1, 5.0), Goal.MAXIMIZE)
    assert peers == {1: [-5.0, 2.0], 3: [1.0]}
