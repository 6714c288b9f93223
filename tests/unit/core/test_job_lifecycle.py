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
