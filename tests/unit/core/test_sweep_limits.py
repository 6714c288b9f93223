"""When no further trial is begun, and when all are given up."""

from datetime import timedelta

import pytest

from crucible.core.sweep_limits import Ran, drain_reason, failed_reason, still_to_come
from crucible.model.job import Job
from crucible.model.spec import Constraints, JobSpec
from crucible.model.sweep import Evaluation, Sweep
from crucible.model.units import MicroUsd, micro_usd
from making import NOW, a_job

HOUR = 3600.0
NONE_RAN = Ran()


def drained(
    spec: JobSpec, ran: Ran = NONE_RAN, spent: float = 0, job: Job | None = None, trials: int = 100
) -> str | None:
    return drain_reason(job or a_job(started_at=NOW), spec, ran, micro_usd(spent), trials, NOW + timedelta(hours=2))


@pytest.mark.parametrize(
    ("limit", "reason"),
    [(timedelta(hours=2), "no trial begins later than 2:00:00 after the first"), (timedelta(hours=2.1), None)],
)
def test_the_time_counts_from_the_first_trial(limit: timedelta, reason: str | None) -> None:
    spec = JobSpec(sweep=Sweep(max_time=limit))
    assert drained(spec) == reason
    assert drained(spec, job=a_job(started_at=None)) is None


def test_money_counts_with_what_the_trials_that_run_are_expected_to_cost() -> None:
    """Ten trials of an hour cost a dollar each; two that run are half way, so that a dollar is still to come."""
    spec = JobSpec(sweep=Sweep(), constraints=Constraints(budget=micro_usd(12)))
    ran = Ran(ended=10, ended_s=10 * HOUR, live_s=(HOUR / 2, HOUR / 2))
    assert drained(spec, ran, spent=10.9) is None
    assert drained(spec, ran, spent=11) == (
        "the budget of $12.00 is used up: trials have cost $11.00, and those that run are expected to take $1.00 more"
    )
    assert drained(spec, Ran(ended=12, ended_s=12 * HOUR), spent=12) == (
        "the budget of $12.00 is used up: trials have cost $12.00"
    )


def test_before_any_trial_has_ended_the_plan_says_what_each_costs() -> None:
    job = a_job(started_at=NOW, cost_estimated_microusd=micro_usd(100))
    assert still_to_come(job, Ran(live_s=(60.0,) * 10), micro_usd(4), trials=100) == micro_usd(6)
    assert still_to_come(job, Ran(live_s=(60.0,)), micro_usd(4), trials=100) == 0
    assert still_to_come(a_job(), Ran(live_s=(60.0,)), micro_usd(4), trials=100) == 0


def test_a_trial_that_takes_longer_than_others_is_expected_to_end_now() -> None:
    assert still_to_come(a_job(), Ran(1, HOUR, (9 * HOUR,)), micro_usd(1), 2) == MicroUsd(0)


def test_what_costs_nothing_is_never_over_budget() -> None:
    assert drained(JobSpec(sweep=Sweep(), constraints=Constraints(budget=MicroUsd(0)))) is None


def test_more_failures_than_are_allowed_give_all_of_it_up() -> None:
    assert failed_reason(JobSpec(sweep=Sweep(max_failures=2)), 2) is None
    assert failed_reason(JobSpec(sweep=Sweep(max_failures=2)), 3) == "more tasks failed than max_failures allows (2)"
    assert (
        failed_reason(JobSpec(evaluation=Evaluation(max_failures=0)), 1)
        == "more tasks failed than max_failures allows (0)"
    )
    assert failed_reason(JobSpec(sweep=Sweep()), 1000) is None
    assert failed_reason(JobSpec(), 1) is None
