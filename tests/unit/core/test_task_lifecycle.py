from datetime import timedelta
from functools import reduce

import pytest

from crucible.core import task as tasks
from crucible.model.attempt import AttemptPhase, Outcome
from crucible.model.ids import AttemptId
from crucible.model.job import Desired
from crucible.model.policy import Policy
from crucible.model.spec import Retry
from crucible.model.task import TaskEnded, TaskPhase, TaskPlaced, TaskRetried, Verdict
from making import NOW, POLICY, a_task, an_attempt

RETRY = Retry(limit=3, delay=timedelta(seconds=60), growth=2)


def over(outcome: Outcome, desired: Desired = Desired.RUN, policy: Policy = POLICY, **task: object):
    attempt = an_attempt(phase=AttemptPhase.ENDED, outcome=outcome, reason="because")
    before = a_task(attempt_id=AttemptId("a"), phase=TaskPhase.RUNNING, **task)
    (event,) = tasks.decide(before, attempt, desired, RETRY, NOW, policy)
    return event


@pytest.mark.parametrize(("failures", "pause"), [(0, 60), (1, 120), (2, 240)])
def test_retries_wait_ever_longer(failures: int, pause: int) -> None:
    event = over(Outcome.FAILED, failures=failures)
    assert isinstance(event, TaskRetried) and event.counts_as_failure
    assert event.not_before == NOW + timedelta(seconds=pause)


def test_after_the_last_retry_the_task_has_failed_and_says_how_often_it_tried() -> None:
    event = over(Outcome.FAILED, failures=3)
    assert isinstance(event, TaskEnded) and event.phase is TaskPhase.FAILED
    assert event.reason == "because (tried 4 times)"


def test_a_lost_machine_never_counts_against_the_user() -> None:
    event = over(Outcome.LOST, failures=3)
    assert isinstance(event, TaskRetried)
    assert (event.counts_as_failure, event.not_before) == (False, NOW)


def test_a_row_of_losses_slows_down_and_ends_at_the_limit() -> None:
    event = over(Outcome.LOST, losses=3)
    assert isinstance(event, TaskRetried) and event.not_before == NOW + timedelta(seconds=8)
    event = over(Outcome.LOST, losses=10_000, policy=Policy(loss_limit=20_000))
    assert isinstance(event, TaskRetried) and event.not_before == NOW + POLICY.loss_pause_max
    assert isinstance(over(Outcome.LOST, losses=POLICY.loss_limit), TaskEnded)


def test_a_refused_order_counts_as_nothing() -> None:
    event = over(Outcome.UNPLACED)
    assert isinstance(event, TaskRetried)
    assert not event.counts_as_failure and not event.counts_as_loss


def test_whatever_happened_a_cancelled_task_is_cancelled_unless_it_had_succeeded() -> None:
    for outcome in Outcome:
        event = over(outcome, Desired.CANCEL)
        expected = TaskPhase.SUCCEEDED if outcome is Outcome.SUCCEEDED else TaskPhase.CANCELLED
        assert isinstance(event, TaskEnded) and event.phase is expected


def test_a_timeout_is_final() -> None:
    event = over(Outcome.TIMED_OUT)
    assert isinstance(event, TaskEnded) and event.phase is TaskPhase.FAILED


def test_a_waiting_task_is_cancelled_without_an_attempt() -> None:
    (event,) = tasks.decide(a_task(), None, Desired.CANCEL, RETRY, NOW, POLICY)
    assert isinstance(event, TaskEnded) and event.phase is TaskPhase.CANCELLED


def test_machines_that_never_come_up_are_not_bought_for_ever() -> None:
    again = over(Outcome.LOST, boots_failed=POLICY.boot_limit - 2)
    assert isinstance(again, TaskRetried) and again.counts_as_failed_boot
    ended = over(Outcome.LOST, boots_failed=POLICY.boot_limit - 1)
    assert isinstance(ended, TaskEnded) and ended.phase is TaskPhase.FAILED
    assert ended.reason is not None and ended.reason.startswith(f"{POLICY.boot_limit} times in a row")


def test_a_gang_that_came_up_forgives_those_that_did_not() -> None:
    task = a_task(boots_failed=5, attempt_id=AttemptId("a"))
    (advanced,) = tasks.decide(task, an_attempt(1, phase=AttemptPhase.RUNNING), Desired.RUN, Retry(), NOW, POLICY)
    assert tasks.evolve(task, advanced).boots_failed == 0


def lost_after(ran: timedelta | None = None, losses: int = POLICY.loss_limit, **attempt: object):
    times = {} if ran is None else dict(started_at=NOW - ran, ended_at=NOW)
    over = an_attempt(1, phase=AttemptPhase.ENDED, outcome=Outcome.LOST, reason="taken back", **times, **attempt)
    task = a_task(attempt_id=AttemptId("a"), phase=TaskPhase.RUNNING, losses=losses)
    (event,) = tasks.decide(task, over, Desired.RUN, RETRY, NOW, POLICY)
    return task, event


def test_a_spot_job_may_be_taken_back_as_often_as_it_gets_somewhere() -> None:
    for progress in (dict(saved_step=1), dict(saved_step=301, resume_step=300), dict(ran=POLICY.real_run)):
        task, event = lost_after(**progress)  # type: ignore[arg-type]
        assert isinstance(event, TaskRetried) and event.not_before == NOW
        assert not event.counts_as_failure and not event.counts_as_loss
        assert tasks.evolve(task, event).losses == 0, "what comes is counted from nothing"


def test_a_loss_that_left_nothing_counts() -> None:
    for nothing in (dict(saved_step=300, resume_step=300), dict(ran=POLICY.real_run / 2), dict()):
        _, ended = lost_after(**nothing)  # type: ignore[arg-type]
        assert isinstance(ended, TaskEnded) and ended.phase is TaskPhase.FAILED
        task, again = lost_after(losses=3, **nothing)  # type: ignore[arg-type]
        assert isinstance(again, TaskRetried) and tasks.evolve(task, again).losses == 4


def test_what_is_given_up_is_said_where_the_task_is_placed() -> None:
    placed = TaskPlaced(NOW, AttemptId("b"), NOW, "the deadline cannot be kept any more")
    assert tasks.evolve(a_task(), placed).reason == "the deadline cannot be kept any more"


# --- what a job takes over from the one it goes on from ---------------------------------------------


def test_a_result_is_taken_over_and_not_worked_for_again() -> None:
    before = a_task(phase=TaskPhase.SUCCEEDED, params={"lr": 1}, value=0.5, metrics={"loss": 0.5}, attempts=3)
    new = a_task(params={"lr": 1})
    after = reduce(tasks.evolve, tasks.taken_over(new, before, NOW), new)
    assert (after.phase, after.value, after.metrics) == (TaskPhase.SUCCEEDED, 0.5, {"loss": 0.5})
    assert (after.verdict, after.attempts) == (Verdict.REUSED, 0)


def test_what_was_stopped_early_stays_so() -> None:
    before = a_task(phase=TaskPhase.SUCCEEDED, verdict=Verdict.PRUNED, reason="stopped early")
    after = reduce(tasks.evolve, tasks.taken_over(a_task(), before, NOW), a_task())
    assert (after.verdict, after.reason) == (Verdict.PRUNED, "stopped early")


def test_a_trial_that_did_not_end_goes_on_with_what_it_was_given() -> None:
    before = a_task(phase=TaskPhase.CANCELLED, params={"lr": 1})
    after = reduce(tasks.evolve, tasks.taken_over(a_task(), before, NOW), a_task())
    assert (after.phase, after.params) == (TaskPhase.WAITING, {"lr": 1})
    assert tasks.taken_over(a_task(), None, NOW) == ()
