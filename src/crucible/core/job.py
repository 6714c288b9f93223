"""How a job moves. Its status follows from its tasks' counts; people change only what they want of it."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from crucible.model.budget import KEEPER
from crucible.model.errors import Conflict
from crucible.model.ids import UserId
from crucible.model.job import (
    Desired,
    Job,
    JobAllocated,
    JobDesired,
    JobDrained,
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
_AT_WORK = (S.RUNNING, S.CHECKPOINTING)

Fate = tuple[JobStatus, str | None]


def decide(job: Job, tally: Tally, now: datetime, tolerated: int = 0, fate: Fate | None = None) -> tuple[JobEvent, ...]:
    """The status changes that the tasks' counts prove, one legal step at a time. So many failed tasks do not fail the
    job, if any succeeded. `fate` is what becomes of a job whose work decides, not its tasks, when they have ended."""
    if job.status.is_terminal:
        return ()
    target = derived_status(job.desired, tally, tolerated, is_running=job.status in _AT_WORK)
    # Until a wish is fulfilled, it is what explains the job: a held one must not say that it waits for a GPU.
    reason = why(job, target, tally) if job.desired is Desired.RUN or target.is_terminal else job.reason
    if fate is not None and target.is_terminal:
        target, reason = fated(job, target, reason, fate)
    if target is job.status:
        return explained(job, reason, now)
    steps = path(job.status, target)
    return tuple(JobStatusChanged(now, step, reason if step is target else None) for step in steps)


def why(job: Job, target: JobStatus, tally: Tally) -> str | None:
    """Of many tasks one speaks for the others, and it is said for how many."""
    total, failed = sum(tally.counts.values()), tally.counts.get(TaskPhase.FAILED, 0)
    if total < 2 or not target.is_terminal:
        return tally.reason
    said = [job.reason] if job.desired is Desired.CANCEL and job.reason else []
    said += [job.drained] if job.drained else []
    said += [f"{failed} of {total} tasks failed, the first: {tally.reason}"] if failed and tally.reason else []
    return "; ".join(said) or (tally.reason if target is not S.COMPLETED else None)


def fated(job: Job, target: JobStatus, reason: str | None, fate: Fate) -> Fate:
    """Who cancels a job that is not done gets what they asked for. What a task failed of is said with the rest."""
    status, words = fate
    if status is S.FAILED and target is S.CANCELLED and job.desired is Desired.CANCEL:
        return target, reason
    return status, f"{words}: {reason}" if target is S.FAILED and words and reason else words


def explained(job: Job, reason: str | None, now: datetime) -> tuple[JobEvent, ...]:
    if reason and reason != job.reason:
        return (JobReasonChanged(now, reason),)
    return ()


def derived_status(desired: Desired, tally: Tally, tolerated: int = 0, is_running: bool = False) -> JobStatus:
    """A job of many tasks that `is_running` goes on doing so between two of them."""
    counts = {phase: n for phase, n in tally.counts.items() if n}
    if counts and all(phase.is_terminal for phase in counts):
        return ended_status(counts, tally.skipped, tolerated)
    if is_running and desired is Desired.RUN and goes_on(counts, tally):
        return S.CHECKPOINTING if TaskPhase.CHECKPOINTING in counts and TaskPhase.RUNNING not in counts else S.RUNNING
    for phase, status in _LIVE:
        if phase in counts:
            return status
    if tally.crews and desired is Desired.RUN:
        return S.PROVISIONING
    relaunches = tally.ever_placed and desired is not Desired.HOLD
    return S.SCHEDULED if relaunches else S.PENDING


def goes_on(counts: Mapping[TaskPhase, int], tally: Tally) -> bool:
    """Tasks are left, and what runs the next one is there or on its way: machines of its crews, its next step, another
    task that has begun."""
    is_one = sum(counts.values()) == 1 and not tally.crews and not tally.steps
    return not is_one and bool(tally.crews or tally.steps or any(phase in counts for phase, _ in _LIVE))


def ended_status(counts: Mapping[TaskPhase, int], skipped: int, tolerated: int) -> JobStatus:
    failed, succeeded = counts.get(TaskPhase.FAILED, 0), counts.get(TaskPhase.SUCCEEDED, 0)
    if failed > tolerated or (failed and not succeeded):
        return S.FAILED
    return S.CANCELLED if counts.get(TaskPhase.CANCELLED, 0) > skipped or not succeeded else S.COMPLETED


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
    """Record what somebody wants. Asking twice is asking once; a finished job cannot be asked for anything new. A job
    that a budget has paused may be held by a person as well: then money alone does not let it go on."""
    is_taken_over = desired is Desired.HOLD and job.desired_by == KEEPER and by != KEEPER
    if (job.desired is desired and not is_taken_over) or (desired is Desired.CANCEL and job.status is S.CANCELLED):
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
        case JobDesired(at=at, desired=desired, by=by, reason=reason):
            return replace(job, desired=desired, desired_by=by, desired_at=at, reason=reason or job.reason)
        case JobDrained(reason=reason):
            return replace(job, drained=reason)
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
