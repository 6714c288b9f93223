from datetime import timedelta

import pytest

from crucible.core import job as jobs
from crucible.model.errors import Conflict
from crucible.model.ids import UserId
from crucible.model.job import Desired, JobStatus, JobStatusChanged
from crucible.model.task import TaskPhase
from crucible.model.tree import Tally
from making import NOW, a_job

S, T = JobStatus, TaskPhase


def statuses(start: JobStatus, tally: Tally, desired: Desired = Desired.RUN) -> list[JobStatus]:
    events = jobs.decide(a_job(status=start, desired=desired), tally, NOW)
    return [event.status for event in events if isinstance(event, JobStatusChanged)]


def test_the_table_is_the_documented_one() -> None:
    live = [s for s in S if not s.is_terminal]
    for status in live:
        assert {S.FAILED, S.CANCELLED} <= set(jobs.TRANSITIONS[status])
    assert S.SCHEDULED in jobs.TRANSITIONS[S.RUNNING]
    assert S.SCHEDULED in jobs.TRANSITIONS[S.CHECKPOINTING]
    assert S.COMPLETED not in jobs.TRANSITIONS[S.CHECKPOINTING]
    assert all(not jobs.TRANSITIONS[s] for s in S if s.is_terminal)


def test_a_task_that_was_over_before_anybody_looked_leaves_a_complete_history() -> None:
    seen = statuses(S.PENDING, Tally({T.SUCCEEDED: 1}))
    assert seen == [S.SCHEDULED, S.PROVISIONING, S.RUNNING, S.COMPLETED]


def test_a_preempted_task_takes_the_job_back_to_scheduled() -> None:
    assert statuses(S.RUNNING, Tally({T.WAITING: 1}, ever_placed=True)) == [S.SCHEDULED]


def test_a_held_job_shows_as_pending() -> None:
    assert statuses(S.RUNNING, Tally({T.WAITING: 1}, ever_placed=True), Desired.HOLD) == [S.SCHEDULED, S.PENDING]


@pytest.mark.parametrize("status", [S.PENDING, S.RUNNING])
def test_a_held_job_says_why_it_is_held_not_what_its_task_waits_for(status: JobStatus) -> None:
    job = a_job(status=status, desired=Desired.HOLD, reason="the budget ran out")
    for event in jobs.decide(job, Tally({T.WAITING: 1}, "waits: needs 1 free GPU"), NOW):
        job = jobs.evolve(job, event)
    assert (job.status, job.reason) == (S.PENDING, "the budget ran out")


def test_a_checkpointing_job_completes_by_way_of_running() -> None:
    assert statuses(S.CHECKPOINTING, Tally({T.SUCCEEDED: 1})) == [S.RUNNING, S.COMPLETED]


def test_one_failed_task_fails_the_job_once_all_are_over() -> None:
    assert statuses(S.RUNNING, Tally({T.SUCCEEDED: 2, T.FAILED: 1})) == [S.FAILED]
    assert statuses(S.RUNNING, Tally({T.RUNNING: 1, T.FAILED: 1})) == []


@pytest.mark.parametrize("status", [s for s in S if s.is_terminal])
def test_terminal_is_for_ever(status: JobStatus) -> None:
    assert jobs.decide(a_job(status=status), Tally({T.RUNNING: 1}), NOW) == ()


def test_cancelling_twice_is_cancelling_once() -> None:
    job = a_job()
    (wish,) = jobs.wish(job, Desired.CANCEL, UserId("u"), "why not", NOW)
    assert jobs.wish(jobs.evolve(job, wish), Desired.CANCEL, UserId("u"), None, NOW) == ()
    assert jobs.wish(a_job(status=S.CANCELLED), Desired.CANCEL, UserId("u"), None, NOW) == ()


def test_a_finished_job_cannot_be_cancelled() -> None:
    with pytest.raises(Conflict, match="completed"):
        jobs.wish(a_job(status=S.COMPLETED), Desired.CANCEL, UserId("u"), None, NOW)


def test_a_job_being_cancelled_cannot_be_held() -> None:
    with pytest.raises(Conflict):
        jobs.wish(a_job(desired=Desired.CANCEL), Desired.HOLD, UserId("u"), None, NOW)


def test_the_first_start_is_the_start() -> None:
    job = jobs.evolve(a_job(status=S.PROVISIONING), JobStatusChanged(NOW, S.RUNNING))
    later = NOW + timedelta(hours=1)
    for status in (S.SCHEDULED, S.PROVISIONING, S.RUNNING, S.COMPLETED):
        job = jobs.evolve(job, JobStatusChanged(later, status))
    assert job.started_at == NOW
    assert job.finished_at == later


# --- many tasks -----------------------------------------------------------------------------------


def came_to(counts: dict[TaskPhase, int], tolerated: int = 0, skipped: int = 0, **job: object) -> JobStatusChanged:
    reason = "exited with code 1" if counts.get(TaskPhase.FAILED) else None
    events = jobs.decide(a_job(status=JobStatus.RUNNING, **job), Tally(counts, reason, True, skipped), NOW, tolerated)
    assert isinstance(events[-1], JobStatusChanged)
    return events[-1]


def test_failed_trials_that_are_tolerated_are_told_of() -> None:
    end = came_to({TaskPhase.SUCCEEDED: 9, TaskPhase.FAILED: 1}, tolerated=5)
    assert (end.status, end.reason) == (JobStatus.COMPLETED, "1 of 10 tasks failed, the first: exited with code 1")


def test_a_search_that_came_to_its_limit_completes_and_says_so() -> None:
    end = came_to({TaskPhase.SUCCEEDED: 9, TaskPhase.CANCELLED: 3}, skipped=3, drained="the budget is used up")
    assert (end.status, end.reason) == (JobStatus.COMPLETED, "the budget is used up")


def test_too_many_failures_are_the_reason_of_the_end() -> None:
    said = dict(desired=Desired.CANCEL, reason="more tasks failed than max_failures allows (2)")
    end = came_to({TaskPhase.FAILED: 3, TaskPhase.CANCELLED: 7, TaskPhase.SUCCEEDED: 1}, tolerated=2, **said)
    assert end.status is JobStatus.FAILED
    assert end.reason == (
        "more tasks failed than max_failures allows (2); 3 of 11 tasks failed, the first: exited with code 1"
    )


def test_tasks_that_all_succeeded_need_no_words() -> None:
    assert came_to({TaskPhase.SUCCEEDED: 9}).reason is None


# --- jobs whose work decides, not their tasks -------------------------------------------------------------------


def fated(tally: Tally, fate: jobs.Fate, desired: Desired = Desired.RUN) -> tuple[JobStatus, str | None]:
    job = a_job(status=S.RUNNING, desired=desired)
    for event in jobs.decide(job, tally, NOW, fate=fate):
        job = jobs.evolve(job, event)
    return job.status, job.reason


def test_a_job_whose_work_is_done_has_completed_whatever_became_of_its_last_worker() -> None:
    skipped = Tally({T.CANCELLED: 3}, "every item is done", skipped=3)
    assert fated(skipped, (S.COMPLETED, None))[0] is S.COMPLETED
    assert fated(Tally({T.FAILED: 1}, "exit 1"), (S.COMPLETED, None)) == (S.COMPLETED, None)


def test_a_job_whose_work_is_not_done_has_failed_though_its_workers_ended_well() -> None:
    left = (S.FAILED, "its workers ended and left 5 of 9 items undone")
    assert fated(Tally({T.SUCCEEDED: 2}), left) == left
    status, reason = fated(Tally({T.FAILED: 1}, "exit 139"), left)
    assert (status, reason) == (S.FAILED, f"{left[1]}: exit 139")


def test_who_cancels_work_that_is_not_done_gets_a_cancelled_job() -> None:
    cancelled = Tally({T.CANCELLED: 1}, "cancelled by ada")
    assert fated(cancelled, (S.FAILED, "left"), Desired.CANCEL) == (S.CANCELLED, "cancelled by ada")
    assert fated(cancelled, (S.COMPLETED, None), Desired.CANCEL)[0] is S.COMPLETED


def test_fate_says_nothing_while_a_task_is_at_work() -> None:
    assert fated(Tally({T.RUNNING: 1, T.FAILED: 1}), (S.FAILED, "left"))[0] is S.RUNNING


@pytest.mark.parametrize(
    "tally",
    [
        Tally({T.WAITING: 5, T.SUCCEEDED: 3}, ever_placed=True, crews=1),  # its crew has a seat for the next
        Tally({T.WAITING: 5, T.PROVISIONING: 1, T.SUCCEEDED: 3}, ever_placed=True, crews=1),
        Tally({T.WAITING: 1}, ever_placed=True, crews=1),  # one worker, which starts again on the same machine
        Tally({T.WAITING: 2, T.SUCCEEDED: 1}, ever_placed=True, steps=2),  # a workflow between two steps
        Tally({T.WAITING: 2, T.SCHEDULED: 1, T.SUCCEEDED: 1}, ever_placed=True),  # the next gang of a search
    ],
)
def test_a_job_of_many_tasks_that_runs_stays_running_between_two_of_them(tally: Tally) -> None:
    assert statuses(S.RUNNING, tally) == []


def test_a_held_job_of_many_tasks_does_not_run_on() -> None:
    left = Tally({T.WAITING: 5, T.SUCCEEDED: 3}, ever_placed=True, crews=1)
    assert statuses(S.RUNNING, left, Desired.HOLD) == [S.SCHEDULED, S.PENDING]


def test_a_job_of_many_tasks_that_lost_its_machines_is_scheduled_again() -> None:
    left = Tally({T.WAITING: 5, T.SUCCEEDED: 3}, ever_placed=True)
    assert statuses(S.RUNNING, left) == [S.SCHEDULED]
    assert statuses(S.SCHEDULED, Tally(left.counts, ever_placed=True, crews=1)) == [S.PROVISIONING]


def test_a_job_whose_tasks_all_save_is_checkpointing_and_runs_on_when_one_has() -> None:
    saving = Tally({T.CHECKPOINTING: 2, T.WAITING: 1}, crews=1)
    assert statuses(S.RUNNING, saving) == [S.CHECKPOINTING]
    assert statuses(S.CHECKPOINTING, Tally({T.PROVISIONING: 1, T.WAITING: 1}, crews=1)) == [S.RUNNING]
