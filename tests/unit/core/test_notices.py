"""What people should hear of."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from crucible.core import budget_words, places
from crucible.core.alerts import subject_of
from crucible.core.budget import Position, Standing
from crucible.core.costs import Basis, Remaining
from crucible.core.health import notice_of
from crucible.core.notices import failure, lateness, leak
from crucible.model.budget import Budget, Period, Scope, budget_id
from crucible.model.health import Finding, FindingCode, PlaceHealth
from crucible.model.ids import JobId, MachineId, OrderId, UserId
from crucible.model.job import JobStatus
from crucible.model.lease import Machine, MachineState
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.units import NOTHING, MicroUsd
from crucible.testing.specimens import NOW, a_job

HOUR = timedelta(hours=1)


def rest(hours: float) -> Remaining:
    return Remaining(basis=Basis.PROGRESS, hours=hours, hours_high=hours, likely=NOTHING, high=NOTHING)


def test_a_failed_job_is_told_with_its_reason_and_whose_it_is() -> None:
    job = a_job(status=JobStatus.FAILED, finished_at=NOW, reason="exit code 3")
    (notice,) = failure(job)
    assert notice.title == f"{job.name} failed" and "exit code 3" in notice.text and job.id in notice.text
    assert (notice.kind, notice.user_id, notice.team, notice.job_id) == (
        NoticeKind.FAILURE,
        job.user_id,
        job.team,
        job.id,
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"status": JobStatus.COMPLETED, "finished_at": NOW},
        {"status": JobStatus.CANCELLED, "finished_at": NOW},
        {"status": JobStatus.RUNNING},
        {"status": JobStatus.FAILED, "finished_at": NOW, "parent": JobId("w")},
    ],
)
def test_what_did_not_fail_or_is_a_step_is_not_told(facts: dict[str, Any]) -> None:
    assert failure(a_job(**facts)) == ()


def test_a_machine_that_nobody_owns_is_told_once_for_each_machine() -> None:
    machine = Machine(id=MachineId("i-1"), order_id=OrderId("o"), index=0, state=MachineState.RUNNING)
    found = leak("aws", "us-east-1", machine, NOW)
    assert found.key == "leak:aws/us-east-1:i-1" and found.severity is Severity.CRITICAL and found.user_id is None


@pytest.mark.parametrize(
    ("hours", "key"),
    [(0.5, None), (1.0, None), (1.5, "deadline:j1:likely"), (None, None)],
)
def test_a_job_that_needs_longer_than_it_has_is_likely_late(hours: float | None, key: str | None) -> None:
    job = a_job(status=JobStatus.RUNNING, deadline_at=NOW + HOUR)
    found = lateness(job, None if hours is None else rest(hours), NOW)
    assert (found.key if found else None) == key
    assert found is None or "30 min late" in found.text


def test_a_deadline_that_has_passed_is_told_until_the_job_is_over() -> None:
    job = a_job(status=JobStatus.PENDING, deadline_at=NOW - HOUR)
    found = lateness(job, None, NOW)
    assert found is not None and (found.key, found.severity) == ("deadline:j1:missed", Severity.CRITICAL)
    assert lateness(a_job(status=JobStatus.COMPLETED, deadline_at=NOW - HOUR), None, NOW) is None
    assert lateness(a_job(status=JobStatus.RUNNING, deadline_at=None), rest(99), NOW) is None


# --- what is gathered -----------------------------------------------------------------------------------------------

TEN_DOLLARS = Budget(
    id=budget_id(Scope.TEAM, "vision", Period.ONCE),
    scope=Scope.TEAM,
    name="vision",
    period=Period.ONCE,
    limit=MicroUsd(10_000_000),
    created_by=UserId("ann"),
    created_at=NOW,
)
LATER = NOW + 7 * HOUR + timedelta(seconds=1, microseconds=2)


def of_job(job_id: str) -> Notice:
    (notice,) = failure(a_job(job_id, name="train", status=JobStatus.FAILED, finished_at=NOW))
    return notice


def stalled(at: datetime) -> Notice | None:
    finding = Finding(
        job_id=JobId("j1"), code=FindingCode.NO_PROGRESS, opened_at=at, severity=Severity.WARNING, words="", advice=""
    )
    return notice_of(finding, a_job())


def away(since: datetime) -> Notice | None:
    place = PlaceHealth(provider="aws", region="us-east-1", looked_at=since, failing_since=since)
    return places.failed(place, since + HOUR, "no answer", HOUR)[1]


def back(since: datetime) -> Notice | None:
    place = PlaceHealth(
        provider="aws", region="us-east-1", looked_at=since, failing_since=since, noticed_at=since + HOUR
    )
    return places.listed(place, since + 2 * HOUR, latency_s=0.1, machines=0, removed=0)[1]


def spent(share: float) -> Notice:
    standing = Standing(TEN_DOLLARS, Position(MicroUsd(9_000_000)))
    return budget_words.reached(standing, share, NOW, budget_words.Whom("vision"))


def leaked(machine_id: str) -> Notice:
    machine = Machine(id=MachineId(machine_id), order_id=OrderId("o"), index=0, state=MachineState.RUNNING)
    return leak("aws", "us-east-1", machine, NOW)


@pytest.mark.parametrize(
    ("one", "another", "subject"),
    [
        (of_job("j1"), of_job("j2"), "failure:ann:train"),
        (stalled(NOW), stalled(LATER), "stall:j1:no_progress"),
        (away(NOW), away(LATER), "provider:aws/us-east-1"),
        (away(NOW), back(NOW), "provider:aws/us-east-1"),
        (spent(0.5), spent(0.8), "budget:team:vision:once"),
        (leaked("i-1"), leaked("pods:gpu:2"), "leak:aws/us-east-1"),
    ],
)
def test_what_is_about_the_same_thing_is_gathered(one: Notice, another: Notice, subject: str) -> None:
    assert one.key != another.key and subject_of(one) == subject_of(another) == subject
