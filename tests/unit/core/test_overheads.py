"""What machines are paid for beside the work is learnt from past jobs, and estimates of cost get better by it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from crucible.core.overheads import MOST_H, Overhead, believed, fitted, overhead_of, starts_of, with_starts
from crucible.core.telemetry import accuracy_of
from crucible.model.ids import JobId
from crucible.model.record import Prediction
from market import a_job, a_price, a_table, a_type, propose

NOW = datetime(2026, 11, 1, tzinfo=UTC)
MINUTE = 1 / 60
DONE = Prediction(
    job_id=JobId("j"),
    status="completed",
    provider="aws",
    attempts=1,
    planned_on="1 × aws/p4d",
    ran_on="1 × aws/p4d",
    paid_hours=1.25,
    actual_hours=1.0,
    ended_at=NOW,
)


def seen(extra_h: float, ran_h: float = 1.0, days: float = 0.0) -> Overhead:
    return Overhead("aws", extra_h, ran_h, NOW - timedelta(days=days))


def test_few_jobs_move_the_catalogs_figure_a_little_and_many_take_over() -> None:
    one, some, many = (fitted([seen(0.5, 0.1)] * count, 0.1, NOW) for count in (1, 10, 500))
    assert 0.1 < one < some < many == pytest.approx(0.5, abs=0.02)
    assert fitted([], 0.1, NOW) == pytest.approx(0.1)


def test_what_grows_with_the_hours_is_not_taken_for_a_slow_start() -> None:
    some = [seen(0.1 + 0.05 * hours, hours) for hours in (0.5, 1, 2, 5, 10, 20, 30)] * 10
    assert fitted(some, 0.1, NOW) == pytest.approx(0.1, abs=0.02)


def test_old_jobs_count_less_and_nothing_is_below_none_or_without_bounds() -> None:
    assert fitted([seen(0.5, days=90)] * 5, 0.0, NOW) < fitted([seen(0.5)] * 5, 0.0, NOW)
    assert fitted([seen(0.0, 9.0)] * 50 + [seen(1.0, 20.0)] * 50, 0.0, NOW) == 0.0
    assert starts_of([seen(50.0, 0.01)] * 900, {}, NOW)["aws"] == MOST_H


@pytest.mark.parametrize(
    "changes",
    [{"status": "failed"}, {"attempts": 2}, {"ran_on": "1 × aws/p5"}, {"paid_hours": None}, {"actual_hours": None}],
)
def test_what_says_nothing_of_a_start_is_left_out(changes: dict[str, object]) -> None:
    assert overhead_of(DONE) == Overhead("aws", 0.25, 1.0, NOW)
    assert overhead_of(replace(DONE, **changes)) is None  # type: ignore[arg-type]


def test_after_a_bias_the_costs_that_follow_are_estimated_within_the_goal() -> None:
    """Machines take twelve minutes that the catalog knows nothing of; jobs take half an hour to an hour."""
    random, past, pairs = Random(3), list[Overhead](), list[tuple[float, float]]()
    table = a_table([a_type("p4d")], [a_price("p4d", 10.0)])
    for number in range(60):
        spec = a_job(hours=(hours := random.uniform(0.5, 1.0)))
        way = propose(spec, with_starts(table, starts_of(past, believed(table), NOW))).chosen
        assert way is not None and way.cost is not None
        extra = random.gauss(12 * MINUTE, 2 * MINUTE)
        pairs.append((way.cost / 1e6, 10.0 * (hours + extra)))
        past.append(Overhead("aws", max(extra, 0.0), hours, NOW - timedelta(hours=60 - number)))
    before, after = accuracy_of(pairs[:5]), accuracy_of(pairs[-20:])
    assert before is not None and after is not None
    assert before.bias < -0.1 and abs(after.bias) < 0.03
    assert after.p90_error < 0.15 and after.within == 1.0
