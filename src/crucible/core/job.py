"""How a job moves. Its status is a function of its tasks' counts; people change only what they want of it."""

from collections import deque
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from crucible.model.errors import Conflict
from crucible.model.ids import UserId
from crucible.model.job import (
    Desired,
    Job,
    JobAllocated,
    JobDesired,
    JobEvent,
    JobReasonChanged,
    JobStatus,
    JobStatusChanged,
    JobSubmitted,
)
from crucible.model.task import TaskPhase
from crucible.model.tree import Tally

S = JobStatus

# Every legal step. Any non-terminal status may also go to FAILED or CANCELLED; terminal is for ever.
TRANSITIONS: dict[JobStatus, tuple[JobStatus, ...]] = {
    S.PENDING: (S.SCHEDULED, S.FAILED, S.CANCELLED),
    S.SCHEDULED: (S.PROVISIONING, S.PENDING, S.FAILED, S.CANCELLED),
    S.PROVISIONING: (S.RUNNING, S.SCHEDULED, S.FAILED, S.CANCELLED),
    S.RUNNING: (S.CHECKPOINTING, S.COMPLETED, S.SCHEDULED, S.FAILED, S.CANCELLED),
    S.CHECKPOINTING: (S.RUNNING, S.SCHEDULED, S.FAILED, S.CANCELLED),
    S.COMPLETED: (),
    S.FAILED: (),
    S.CANCELLED: (),
}

# The furthest phase wins: a job runs as soon as one of its tasks does.
_LIVE = (
    (TaskPhase.RUNNING, S.RUNNING),
    (TaskPhase.CHECKPOINTING, S.CHECKPOINTING),
    (TaskPhase.PROVISIONING, S.PROVISIONING),
    (TaskPhase.SCHEDULED, S.SCHEDULED),
)


def decide(job: Job, tally: Tally, now: datetime) -> tuple[JobEvent, ...]:
    """The status changes that the tasks' counts prove, one legal step at a time."""
    if job.status.is_terminal:
        return ()
    target = derived_status(job.desired, tally)
    # Until a wish is fulfilled, it is what explains the job: a held one must not say that it waits for a GPU.
    reason = tally.reason if job.desired is Desired.RUN or target.is_terminal else job.reason
    if target is job.status:
        return explained(job, reason, now)
    steps = path(job.status, target)
    return tuple(JobStatusChanged(now, step, reason if step is target else None) for step in steps)


def explained(job: Job, reason: str | None, now: datetime) -> tuple[JobEvent, ...]:
    if reason and reason != job.reason:
        return (JobReasonChanged(now, reason),)
    return ()


def derived_status(desired: Desired, tally: Tally) -> JobStatus:
    counts = {phase: n for phase, n in tally.counts.items() if n}
    if counts and all(phase.is_terminal for phase in counts):
        if TaskPhase.FAILED in counts:
            return S.FAILED
        return S.CANCELLED if TaskPhase.CANCELLED in counts else S.COMPLETED
    for phase, status in _LIVE:
        if phase in counts:
            return status
    relaunches = tally.ever_placed and desired is not Desired.HOLD
    return S.SCHEDULED if relaunches else S.PENDING


def path(start: JobStatus, goal: JobStatus) -> tuple[JobStatus, ...]:
    """The shortest legal way: a quick task may be over before anybody saw it run."""
    ways: deque[tuple[JobStatus, ...]] = deque([(start,)])
    seen = {start}
    while ways:
        way = ways.popleft()
        if way[-1] is goal:
            return way[1:]
        for step in TRANSITIONS[way[-1]]:
            if step not in seen:
                seen.add(step)
                ways.append((*way, step))
    raise Conflict(f"a job cannot go from {start} to {goal}")


def wish(job: Job, desired: Desired, by: UserId, reason: str | None, now: datetime) -> tuple[JobEvent, ...]:
    """Record what somebody wants. Asking twice is asking once; a finished job cannot be asked for anything new."""
    if job.desired is desired or (desired is Desired.CANCEL and job.status is S.CANCELLED):
        return ()
    if job.status.is_terminal:
        raise Conflict(f"job {job.id} is {job.status}; `crucible retry` or `crucible resume` starts a new one from it")
    if job.desired is Desired.CANCEL:
        raise Conflict(f"job {job.id} is being cancelled")
    return (JobDesired(now, desired, by, reason),)


def evolve(job: Job, event: JobEvent) -> Job:
    """Fold one fact into the state."""
    job = replace(job, version=job.version + 1, updated_at=event.at)
    match event:
        case JobSubmitted():
            return job
        case JobStatusChanged(at, status, reason):
            return replace(
                job,
                status=status,
                reason=reason,
                started_at=at if status is S.RUNNING and job.started_at is None else job.started_at,
                finished_at=at if status.is_terminal else None,
            )
        case JobReasonChanged(reason=reason):
            return replace(job, reason=reason)
        case JobDesired(desired=desired, reason=reason):
            return replace(job, desired=desired, reason=reason or job.reason)
        case JobAllocated():
            return replace(
                job,
                selected_provider=event.provider,
                selected_region=event.region,
                selected_backend=event.backend,
                selected_instance_type=event.instance_type,
                selected_count=event.count,
                selected_spot=event.is_spot,
            )
        case _:
            assert_never(event)
