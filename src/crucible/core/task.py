"""How a task moves: it waits, has one live attempt at a time, and ends once."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from crucible.model.attempt import Attempt, AttemptPhase, Outcome
from crucible.model.job import Desired
from crucible.model.policy import Policy
from crucible.model.spec import Retry
from crucible.model.task import (
    Task,
    TaskAdvanced,
    TaskCreated,
    TaskEnded,
    TaskEvent,
    TaskExplained,
    TaskGiven,
    TaskPhase,
    TaskPlaced,
    TaskPruned,
    TaskRetried,
    Verdict,
)

_PHASES = {
    AttemptPhase.PROVISIONING: TaskPhase.PROVISIONING,
    AttemptPhase.STARTING: TaskPhase.PROVISIONING,
    AttemptPhase.RUNNING: TaskPhase.RUNNING,
}


def decide(
    task: Task, attempt: Attempt | None, desired: Desired, retry: Retry, now: datetime, policy: Policy
) -> tuple[TaskEvent, ...]:
    """What the state of the live attempt, or the lack of one, means for the task."""
    if task.phase.is_terminal:
        return ()
    if attempt is None or attempt.id != task.attempt_id:
        if desired is Desired.CANCEL:
            return (TaskEnded(now, TaskPhase.CANCELLED, "cancelled before it ran"),)
        return ()
    if attempt.phase is AttemptPhase.ENDED:
        return (after(task, attempt, desired, retry, now, policy),)
    return advanced(task, attempt, now)


def advanced(task: Task, attempt: Attempt, now: datetime) -> tuple[TaskEvent, ...]:
    phase = TaskPhase.CHECKPOINTING if attempt.is_checkpointing else _PHASES.get(attempt.phase, task.phase)
    if phase is task.phase and attempt.deadline_at == task.deadline_at:
        return ()
    return (TaskAdvanced(now, phase, attempt.deadline_at, attempt.reason),)


def after(task: Task, attempt: Attempt, desired: Desired, retry: Retry, now: datetime, policy: Policy) -> TaskEvent:
    """The attempt is over: done, again, or given up."""
    reason = attempt.reason or "no reason given"
    match attempt.outcome:
        case Outcome.SUCCEEDED:
            return TaskEnded(now, TaskPhase.SUCCEEDED, None, outputs=attempt.outputs)
        case _ if task.verdict is Verdict.PRUNED:
            return TaskEnded(now, TaskPhase.SUCCEEDED, task.reason, task.verdict, outputs=attempt.outputs)
        case _ if desired is Desired.CANCEL or attempt.outcome is Outcome.CANCELLED:
            return TaskEnded(now, TaskPhase.CANCELLED, reason)
        case Outcome.TIMED_OUT:
            return TaskEnded(now, TaskPhase.FAILED, reason)
        case Outcome.FAILED if task.failures >= retry.limit:
            times = f" (tried {task.failures + 1} times)" if retry.limit else ""
            return TaskEnded(now, TaskPhase.FAILED, reason + times)
        case Outcome.FAILED:
            pause = retry.delay * retry.growth**task.failures
            return TaskRetried(now, reason, now + pause, counts_as_failure=True, counts_as_loss=False)
        case Outcome.HELD:
            return TaskRetried(now, reason, now, counts_as_failure=False, counts_as_loss=False)
        case Outcome.UNPLACED:
            later = now + policy.refused_retry
            return TaskRetried(now, reason, later, counts_as_failure=False, counts_as_loss=False)
        case _ if got_somewhere(attempt, policy):
            return TaskRetried(now, reason, now, counts_as_failure=False, counts_as_loss=False, made_progress=True)
        case _ if task.losses >= policy.loss_limit:
            return TaskEnded(now, TaskPhase.FAILED, f"{reason} ({task.losses + 1} machines lost)")
        case _ if never_came_up(attempt) and task.boots_failed + 1 >= policy.boot_limit:
            said = f"{task.boots_failed + 1} times in a row the machines did not come up; the last time: {reason}"
            return TaskEnded(now, TaskPhase.FAILED, said)
        case _:
            pause = loss_pause(task.losses, policy)
            failed_boot = never_came_up(attempt)
            return TaskRetried(
                now,
                reason,
                now + pause,
                counts_as_failure=False,
                counts_as_loss=True,
                counts_as_failed_boot=failed_boot,
            )


def got_somewhere(attempt: Attempt, policy: Policy) -> bool:
    """Its loss is the price of a cheap machine, however often it is paid: it has left a newer checkpoint than it found,
    or has run for a while."""
    if attempt.saved_step is not None and (attempt.resume_step is None or attempt.saved_step > attempt.resume_step):
        return True
    if attempt.started_at is None or attempt.ended_at is None:
        return False
    return attempt.ended_at - attempt.started_at >= policy.real_run


def never_came_up(attempt: Attempt) -> bool:
    """Its machines were bought and paid for, and no rank was ever assigned to them."""
    return not attempt.ranks


def loss_pause(losses: int, policy: Policy) -> timedelta:
    """The first loss is bad luck: go on at once. A row of them is not."""
    if losses == 0:
        return timedelta(0)
    return min(timedelta(seconds=2.0 ** min(losses, 16)), policy.loss_pause_max)


def taken_over(task: Task, before: Task | None, now: datetime) -> tuple[TaskEvent, ...]:
    """What a job that goes on from another takes over from the task at the same place: its result, or at least what it
    was given, since its checkpoints belong to that."""
    if before is None:
        return ()
    given = [TaskGiven(now, before.params)] if before.params is not None and before.params != task.params else []
    if before.phase is not TaskPhase.SUCCEEDED:
        return tuple(given)
    verdict = before.verdict or Verdict.REUSED
    return *given, TaskEnded(now, before.phase, before.reason, verdict, before.value, before.metrics, before.outputs)


def explained(task: Task, reason: str, not_before: datetime | None, now: datetime) -> tuple[TaskEvent, ...]:
    """Still waiting: say why, unless it was said already."""
    if reason == task.reason:
        return ()
    return (TaskExplained(now, reason, not_before),)


def evolve(task: Task, event: TaskEvent) -> Task:
    """Fold one fact into the state."""
    task = replace(task, version=task.version + 1)
    match event:
        case TaskCreated():
            return task
        case TaskPlaced(attempt_id=attempt_id, deadline_at=deadline_at, reason=reason):
            return replace(
                task,
                phase=TaskPhase.SCHEDULED,
                attempt_id=attempt_id,
                attempts=task.attempts + 1,
                not_before=None,
                deadline_at=deadline_at,
                reason=reason,
            )
        case TaskAdvanced(phase=phase, deadline_at=deadline_at, reason=reason):
            boots = 0 if phase is TaskPhase.RUNNING else task.boots_failed
            return replace(task, phase=phase, deadline_at=deadline_at, reason=reason, boots_failed=boots)
        case TaskRetried():
            return replace(
                task,
                phase=TaskPhase.WAITING,
                attempt_id=None,
                failures=task.failures + event.counts_as_failure,
                losses=0 if event.made_progress else task.losses + event.counts_as_loss,
                boots_failed=task.boots_failed + event.counts_as_failed_boot,
                not_before=event.not_before,
                deadline_at=event.not_before,
                reason=event.reason,
            )
        case TaskExplained(reason=reason, not_before=not_before):
            return replace(task, reason=reason, not_before=not_before)
        case TaskEnded(phase=phase, reason=reason):
            return replace(
                task,
                phase=phase,
                reason=reason,
                attempt_id=None,
                not_before=None,
                deadline_at=None,
                verdict=event.verdict,
                value=event.value,
                metrics=event.metrics,
                outputs=event.outputs,
            )
        case TaskGiven(params=params):
            return replace(task, params=params)
        case TaskPruned(reason=reason):
            return replace(task, verdict=Verdict.PRUNED, reason=reason)
        case _:
            assert_never(event)
