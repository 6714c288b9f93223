"""What the engine finds that people should hear of, as notices: a job that failed, a machine that nobody owns, a
deadline that will be missed. The key of each says what it is about, then which occurrence."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from crucible.core.costs import Remaining
from crucible.model.job import Job, JobStatus
from crucible.model.lease import Machine
from crucible.model.notice import Notice, NoticeKind, Severity, notice_key

# A deadline that is missed by less may still be met: estimates are no better than that.
LEAST_LATE = timedelta(minutes=1)


def failure(job: Job) -> Sequence[Notice]:
    """Of a job that has just ended. What a workflow's step failed of is told by the workflow."""
    if job.status is not JobStatus.FAILED or job.parent is not None or job.finished_at is None:
        return ()
    reason = job.reason or "nobody knows why"
    return (
        Notice(
            key=notice_key(f"failure:{job.user_id}:{job.name}", job.id),
            at=job.finished_at,
            kind=NoticeKind.FAILURE,
            severity=Severity.WARNING,
            title=f"{job.name} failed",
            text=f"{reason}\ncrucible why {job.id} says more; crucible logs {job.id} shows what it wrote",
            team=job.team,
            project=job.project,
            user_id=job.user_id,
            job_id=job.id,
            details={"job": job.name, "reason": reason},
        ),
    )


def leak(provider: str, region: str, machine: Machine, now: datetime) -> Notice:
    place = f"{provider}/{region}"
    return Notice(
        key=notice_key(f"leak:{place}", machine.id),
        at=now,
        kind=NoticeKind.LEAK,
        severity=Severity.CRITICAL,
        title=f"a machine that nobody owns in {place}",
        text=(
            f"{machine.id} carries the order {machine.order_id}, and no lease owns it. It is being removed;"
            f" look at the provider's console if this comes again"
        ),
        details={"provider": provider, "region": region, "machine": machine.id, "order": machine.order_id},
    )


def lateness(job: Job, rest: Remaining | None, now: datetime) -> Notice | None:
    """Once when it is likely, once when it has happened."""
    deadline = job.deadline_at
    if deadline is None or job.status.is_terminal:
        return None
    if now >= deadline:
        words = f"its deadline was {_said(deadline)}, and it is {job.status}"
        return _late(job, "missed", Severity.CRITICAL, f"{job.name} has missed its deadline", words, now)
    if rest is None or now + timedelta(hours=rest.hours) < deadline + LEAST_LATE:
        return None
    late = now + timedelta(hours=rest.hours) - deadline
    words = (
        f"by its {rest.basis} it needs {rest.hours:.1f} h more and would be {_hours(late)} late for {_said(deadline)}"
    )
    return _late(job, "likely", Severity.WARNING, f"{job.name} is likely to miss its deadline", words, now)


def _late(job: Job, which: str, severity: Severity, title: str, words: str, now: datetime) -> Notice:
    return Notice(
        key=notice_key(f"deadline:{job.id}", which),
        at=now,
        kind=NoticeKind.DEADLINE,
        severity=severity,
        title=title,
        text=f"{words}\ncrucible describe {job.id} says how far it is; crucible plan shows what would be faster",
        team=job.team,
        project=job.project,
        user_id=job.user_id,
        job_id=job.id,
        details={"job": job.name},
    )


def _said(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _hours(span: timedelta) -> str:
    hours = span / timedelta(hours=1)
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
