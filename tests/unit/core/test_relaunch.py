"""The next purchase of a job that was interrupted: what is left of it, and what it gives up when nothing keeps its
limits any more."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from crucible.core.plan import Question, purchase
from crucible.core.relaunch import (
    NO_PAST,
    Limit,
    Past,
    Relaunch,
    relaunch,
    remaining,
    said,
    share_done,
)
from crucible.model.ids import AttemptId, JobId, TaskId
from crucible.model.offer import Market
from crucible.model.record import Progress
from crucible.model.spec import JobSpec, ProgressHint, Workload
from market import BOOK, NOW, a_job, a_price, a_table, a_type, dollars

# Spot is a third of the price and taken every ten hours; on demand costs 30 dollars an hour.
TABLE = a_table(
    [a_type("p4d"), a_type("p5", gpu_memory_gib=200.0)],
    [a_price("p4d", 30.0), a_price("p4d", 10.0, Market.SPOT)],
    hazard=0.1,
)


def a_past(done: float = 0.0, spent: float = 0.0) -> Past:
    return Past(saved_step=round(done * 1000), done=done, spent=dollars(spent))


def again(spec: JobSpec, past: Past = NO_PAST, table: Any = TABLE, **question: Any) -> Relaunch | None:
    asked = Question(spec=remaining(spec, past), now=NOW, enabled=frozenset({"aws"}), **question)
    return relaunch(asked, table, BOOK)


def progress(**fields: Any) -> Progress:
    return Progress(task_id=TaskId("t"), job_id=JobId("j"), attempt_id=AttemptId("a"), at=NOW, **fields)


def market(found: Relaunch | None) -> Market:
    assert found is not None
    return found.way.first.market


# --- what is left ---------------------------------------------------------------------------------------------------


def test_what_a_checkpoint_holds_is_done_and_nothing_else() -> None:
    spec = replace(a_job(), progress=ProgressHint(total_steps=1000))
    assert share_done(250, spec, progress(step=900, fraction=0.9)) == 0.25
    assert share_done(None, spec, progress(step=900, fraction=0.9)) == 0.0
    assert share_done(2000, spec, None) == 1.0


def test_the_total_may_come_from_the_workload_or_from_the_program_itself() -> None:
    assert share_done(50, replace(a_job(), workload=Workload(steps=200.0)), None) == 0.25
    assert share_done(50, a_job(), progress(step=60, total_steps=100)) == 0.5


def test_a_fraction_counts_as_far_as_a_checkpoint_covers_it() -> None:
    assert share_done(30, a_job(), progress(step=60, fraction=0.8)) == pytest.approx(0.4)
    assert share_done(90, a_job(), progress(step=60, fraction=0.8)) == pytest.approx(0.8)
    assert share_done(30, a_job(), progress(fraction=0.8)) == 0.0
    assert share_done(30, a_job(), None) == 0.0


def test_what_is_left_is_a_smaller_job_with_a_smaller_budget() -> None:
    load = Workload(steps=1000.0, tokens=4e9, samples=800.0)
    spec = replace(a_job(hours=10.0, budget=dollars(100)), workload=load)
    rest = remaining(spec, a_past(done=0.75, spent=60))
    assert rest.resources.estimated_hours == 2.5
    assert (rest.workload.steps, rest.workload.tokens, rest.workload.samples) == (250.0, 1e9, 200.0)
    assert rest.constraints.budget == dollars(40)
    assert remaining(spec, a_past(spent=500)).constraints.budget == 0
    assert remaining(a_job(), a_past(spent=500)).constraints.budget is None


def test_a_job_that_has_reached_its_last_step_still_has_something_to_do() -> None:
    assert (remaining(a_job(hours=10.0), a_past(done=1.0)).resources.estimated_hours or 0) > 0


# --- where it goes on -------------------------------------------------------------------------------------------------


def test_with_time_in_hand_spot_is_bought_again() -> None:
    found = again(a_job(allow_spot=True, deadline=NOW + timedelta(hours=20)))
    assert market(found) is Market.SPOT and found is not None and found.given_up == ()


def test_when_time_gets_short_it_goes_on_where_nothing_can_be_taken_away() -> None:
    spec = a_job(allow_spot=True, min_reliability=0.9, deadline=NOW + timedelta(hours=10.2))
    assert market(again(spec)) is Market.ON_DEMAND
    assert market(again(spec, a_past(done=0.8))) is Market.SPOT, "eight of ten hours are done: there is time again"


def test_what_was_spent_makes_room_for_the_cheaper_machine_only() -> None:
    spec = a_job(allow_spot=True, min_reliability=0.9, deadline=NOW + timedelta(hours=10.2), budget=dollars(320))
    assert market(again(spec)) is Market.ON_DEMAND
    found = again(spec, a_past(spent=120))
    assert found is not None and found.given_up == (Limit.DEADLINE,) and market(found) is Market.SPOT


def test_a_deadline_that_cannot_be_kept_is_missed_by_as_little_as_possible() -> None:
    spec = a_job(allow_spot=True, deadline=NOW + timedelta(hours=3))
    found = again(spec)
    assert found is not None and found.given_up == (Limit.DEADLINE,) and market(found) is Market.ON_DEMAND
    words = said(found, remaining(spec, NO_PAST), NOW)
    assert words == ("the deadline cannot be kept any more: goes on with 1 × aws/r1 p4d on demand, expected 7.0 h late")


def test_a_deadline_that_has_passed_does_not_stop_a_job_that_runs() -> None:
    found = again(a_job(allow_spot=True, deadline=NOW - timedelta(hours=1)))
    assert found is not None and found.given_up == (Limit.DEADLINE,)


def test_a_budget_that_cannot_be_kept_is_passed_by_as_little_as_possible() -> None:
    spec = a_job(allow_spot=True, budget=dollars(100))
    found = again(spec, a_past(spent=99))
    assert found is not None and found.given_up == (Limit.BUDGET,) and market(found) is Market.SPOT
    words = said(found, remaining(spec, a_past(spent=99)), NOW)
    assert words is not None and words.startswith("the budget cannot be kept any more") and "over what is left" in words


def test_who_can_keep_only_one_limit_is_late_rather_than_over_the_budget() -> None:
    spec = a_job(allow_spot=True, min_reliability=0.99, deadline=NOW + timedelta(hours=10.2), budget=dollars(200))
    found = again(spec)
    assert found is not None and found.given_up == (Limit.DEADLINE,)
    assert (found.way.cost or 0) <= dollars(200)


def test_both_limits_are_given_up_only_if_neither_can_be_kept() -> None:
    found = again(a_job(allow_spot=True, deadline=NOW + timedelta(hours=1), budget=dollars(5)))
    assert found is not None and set(found.given_up) == {Limit.DEADLINE, Limit.BUDGET}
    assert market(found) is Market.SPOT


def test_other_rules_are_never_given_up() -> None:
    late = NOW + timedelta(hours=1)
    on_demand = again(a_job(allow_spot=False, deadline=late))
    assert market(on_demand) is Market.ON_DEMAND
    assert again(a_job(allow_spot=True, deadline=late, max_price_per_hour=dollars(5))) is None
    assert again(a_job(allow_spot=True, deadline=late, providers=("gcp",))) is None


def test_what_only_rests_is_waited_for() -> None:
    spot = int(TABLE.is_spot.argmax())
    resting = replace(TABLE, cooling={spot: "a machine was taken back there"})
    spec = a_job(allow_spot=True, budget=dollars(150))
    assert again(spec, table=resting) is None, "the budget can still be kept, in ten minutes"
    found = again(a_job(allow_spot=True), table=resting)
    assert market(found) is Market.ON_DEMAND and found is not None and found.given_up == ()


def test_without_limits_it_is_the_purchase_that_anybody_would_make() -> None:
    spec = a_job(allow_spot=True)
    question = Question(spec=spec, now=NOW, enabled=frozenset({"aws"}))
    found = again(spec)
    assert found is not None and found.way == purchase(question, TABLE, BOOK) and said(found, spec, NOW) is None
