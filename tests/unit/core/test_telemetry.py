"""What past jobs say of speeds takes over as it accrues (requirement C4), and how good predictions were (C10)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.catalog import benchmarks, facts
from crucible.core.perf import Origin
from crucible.core.speed_fit import Kind
from crucible.core.speeds import Factor, SpeedBook, make_book
from crucible.core.telemetry import (
    Observation,
    accuracy_of,
    factors_of,
    is_within_goal,
    observation_of,
    scores_of,
    trend_of,
)
from crucible.model.catalog import Gpu
from crucible.model.ids import JobId
from crucible.model.record import Prediction
from crucible.model.spec import ModelClass

NOW = datetime(2027, 1, 1, tzinfo=UTC)
LLM = Kind(ModelClass.LLM)


def seen(ratio: float, team: str = "", framework: str = "pytorch", days: float = 0, weight: float = 1.0) -> Observation:
    return Observation(
        framework=framework,
        kind="llm",
        gpu="H100-SXM",
        team=team,
        ratio=ratio,
        weight=weight,
        at=NOW - timedelta(days=days),
    )


def factor(observations: list[Observation], team: str = "", framework: str = "") -> float:
    return exp(factors_of(observations, NOW)[team, framework, "llm", "H100-SXM"].log)


def test_without_observations_the_table_stands() -> None:
    assert factors_of([], NOW) == {}


def test_one_job_moves_a_speed_a_little_and_many_take_over() -> None:
    one, some, many = (factor([seen(0.5)] * count) for count in (1, 10, 500))
    assert 0.5 < many < some < one < 1.0
    assert one == pytest.approx(0.5 ** (1 / 6))
    assert many == pytest.approx(0.5, rel=0.01)


def test_doubt_shrinks_with_what_is_known() -> None:
    few, many = (factors_of([seen(0.8)] * n, NOW)["", "", "llm", "H100-SXM"].doubt for n in (1, 100))
    assert 0 < many < few < 1


def test_old_jobs_count_less() -> None:
    assert factor([seen(0.5, days=360)] * 5) > factor([seen(0.5)] * 5)


def test_a_slip_of_the_clock_counts_as_ten_times_at_most() -> None:
    assert factor([seen(1e9)]) == pytest.approx(10 ** (1 / 6))


def test_what_cannot_be_compared_is_left_out() -> None:
    assert factors_of([seen(0.0), seen(1.0, weight=0.0)], NOW) == {}


def test_a_team_that_differs_gets_its_own_factor_and_others_do_not() -> None:
    usual = [seen(ratio, team="vision") for ratio in (0.95, 1.0, 1.05)] * 10
    slow = [seen(ratio, team="speech") for ratio in (0.48, 0.5, 0.52)] * 4
    factors = factors_of([*usual, *slow], NOW)
    assert factors["speech", "pytorch", "llm", "H100-SXM"].log < log(0.65)
    assert exp(factors["", "pytorch", "llm", "H100-SXM"].log) == pytest.approx(0.85, abs=0.06)
    few = factors_of([*usual, seen(0.5, team="new")], NOW)
    assert ("new", "pytorch", "llm", "H100-SXM") not in few


def test_frameworks_are_told_apart() -> None:
    observations = [seen(1.0)] * 20 + [seen(0.6, framework="tensorflow")] * 20
    assert factor(observations, framework="tensorflow") < 0.75 < 0.9 < factor(observations, framework="pytorch")


@cache
def book() -> SpeedBook:
    return make_book(benchmarks.benchmarks(), facts.read(facts.SHIPPED, "gpus.csv", Gpu))


def test_the_book_uses_the_most_particular_factor() -> None:
    factors = {
        ("", "", "llm", "H100-SXM"): Factor(log(0.9), 0.5),
        ("", "pytorch", "llm", "H100-SXM"): Factor(log(0.8), 0.5),
        ("mine", "pytorch", "llm", "H100-SXM"): Factor(log(0.5), 0.5),
    }
    plain = book()
    told = plain.with_telemetry(factors)
    names = ("H100-SXM", "A100-80GB", "slot")
    before = plain.speeds(names, LLM)

    def ratio(team: str, framework: str) -> float:
        return float(np.exp(told.speeds(names, LLM, team, framework).speed[0] - before.speed[0]))

    assert ratio("mine", "pytorch") == pytest.approx(0.5)
    assert ratio("other", "pytorch") == pytest.approx(0.8)
    assert ratio("other", "tensorflow") == pytest.approx(0.9)
    after = told.speeds(names, LLM, "mine", "pytorch")
    assert after.error[0] == pytest.approx(before.error[0] / 2)
    assert after.speed[1] == before.speed[1]
    assert np.isnan(after.speed[2])


def done(**changes: Any) -> Prediction:
    """A job that ran as it was planned."""
    whole = Prediction(
        job_id=JobId("j"),
        framework="pytorch",
        model_class="llm",
        team="mine",
        planned_on="1 × aws/p5.48xlarge",
        gpu="H100-SXM",
        origin=Origin.MEASURED,
        book_hours=4.0,
        status="completed",
        ran_on="1 × aws/p5.48xlarge",
        attempts=1,
        actual_hours=8.0,
        ended_at=NOW,
    )
    return replace(whole, **changes)


def test_a_finished_run_is_an_observation() -> None:
    assert observation_of(done(), book()) == seen(0.5, team="mine")


def test_a_gpu_is_known_by_any_of_its_names() -> None:
    assert observation_of(done(gpu="NVIDIA H100 SXM"), book()) == seen(0.5, team="mine")


@pytest.mark.parametrize(
    ("origin", "hours", "weight"),
    [(Origin.RECKONED, 8.0, 1.0), (Origin.SCALED, 8.0, 0.25), (Origin.MEASURED, 0.5, 0.5)],
)
def test_short_runs_and_estimates_of_users_count_less(origin: Origin, hours: float, weight: float) -> None:
    one = observation_of(done(origin=origin, actual_hours=hours), book())
    assert one is not None and one.weight == weight


@pytest.mark.parametrize(
    "changes",
    [
        {"origin": Origin.GIVEN},
        {"origin": None},
        {"gpu": "slot"},
        {"gpu": None},
        {"actual_hours": 0.0},
        {"actual_hours": None},
        {"book_hours": None},
        {"status": "failed"},
        {"attempts": 2},
        {"ran_on": "1 × aws/p4d.24xlarge"},
        {"ended_at": None},
    ],
    ids=str,
)
def test_some_runs_say_nothing_of_a_gpu(changes: dict[str, Any]) -> None:
    assert observation_of(done(**changes), book()) is None


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=30))
def test_the_factor_lies_between_the_table_and_what_was_seen(ratios: list[float]) -> None:
    found = factors_of([seen(ratio) for ratio in ratios], NOW)["", "", "llm", "H100-SXM"].log
    mean = sum(log(ratio) for ratio in ratios) / len(ratios)
    assert min(0.0, mean) - 1e-9 <= found <= max(0.0, mean) + 1e-9


def test_accuracy_is_the_error_as_a_share_of_what_happened() -> None:
    found = accuracy_of([(10, 10), (11, 10), (8, 10), (20, 10), (0, 5), (5, 0)])
    assert found is not None
    assert found.count == 4
    assert found.median_error == pytest.approx(0.15)
    assert found.p90_error == pytest.approx(0.76)
    assert found.bias == pytest.approx(0.05)
    assert found.within == 0.5


def test_nothing_to_compare_is_no_accuracy() -> None:
    assert accuracy_of([]) is None
    assert accuracy_of([(1.0, 0.0)]) is None


def test_scores_are_of_completed_jobs_together_and_of_each_gpu_and_kind() -> None:
    rows = [
        done(estimated_hours=8.0),
        done(estimated_hours=12.0, estimated_cost=30_000_000, actual_cost=20_000_000),
        done(gpu="A100-80GB", model_class="vision", estimated_hours=8.8),
        done(gpu="L4", estimated_hours=None),
        done(status="cancelled", estimated_hours=1.0),
    ]
    everything, h100, a100 = scores_of(rows)
    assert everything.key == {} and everything.hours is not None and everything.cost is not None
    assert (everything.hours.count, everything.cost.count) == (3, 1)
    assert everything.hours.within == pytest.approx(2 / 3)
    assert h100.key == {"gpu": "H100-SXM", "model_class": "llm"}
    assert h100.hours is not None and h100.hours.median_error == 0.25
    assert a100.key == {"gpu": "A100-80GB", "model_class": "vision"} and a100.cost is None


def test_scores_are_told_by_whatever_jobs_have_in_common_and_week_by_week() -> None:
    rows = [
        done(estimated_hours=10.0, team=team, ended_at=NOW - timedelta(days=days))
        for team, days in (("a", 0), ("b", 8), ("a", 15))
    ]
    assert [one.key for one in scores_of(rows, ("team",))[1:]] == [{"team": "a"}, {"team": "b"}]
    assert [one.key["week"] for one in trend_of(rows, 2)] == ["2026-12-21", "2026-12-28"]


def test_a_job_is_within_its_goal_and_within_its_range() -> None:
    near = done(estimated_cost=9_000_000, actual_cost=10_000_000, estimated_cost_high=11_000_000)
    far = done(estimated_cost=5_000_000, actual_cost=10_000_000, estimated_cost_high=9_000_000)
    assert (is_within_goal(near), is_within_goal(far), is_within_goal(done())) == (True, False, None)
    assert scores_of([near, far])[0].within_range == 0.5


def test_without_jobs_there_is_one_empty_score() -> None:
    (everything,) = scores_of([])
    assert everything.hours is None and everything.cost is None
