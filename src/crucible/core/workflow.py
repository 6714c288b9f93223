"""What becomes of the steps of a workflow: which of them begin, which nobody needs any more, and what a step's task
says of the job that works for it. Pure: who submits and cancels those jobs asks here what is owed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce

from crucible.core import task as tasks
from crucible.model.job import Desired, Job, JobStatus
from crucible.model.spec import Step, When
from crucible.model.steps import PHASES, Needs, above, layers
from crucible.model.task import Task, TaskAdvanced, TaskEnded, TaskEvent, TaskPhase, Verdict

HELD = "its workflow is held"
CANCELLED = "its workflow is cancelled"


@dataclass(frozen=True, slots=True)
class Part:
    """A step as it stands."""

    step: Step
    task: Task
    child: Job | None = None  # the job that works for it, once there is one
    came: Task | None = None  # of a job that has ended and is one task: that task

    @property
    def is_open(self) -> bool:
        return not self.task.phase.is_terminal

    @property
    def is_begun(self) -> bool:
        return self.child is not None


Events = Mapping[int, tuple[TaskEvent, ...]]  # by the index of the step


def decide(job: Job, parts: Sequence[Part], now: datetime) -> Events:
    """What has become true of the steps. A step whose turn has come is given a time at which somebody must have begun
    it: that is written before anything is submitted, and found again by whoever looks for rows that are late."""
    found: dict[int, tuple[TaskEvent, ...]] = {}
    known = {part.step.name: part for part in parts}
    for name in [name for layer in layers(needs_of(parts)) for name in layer]:
        part = known[name]
        events = followed(part, now) if part.is_begun else turned(job, part, known, now)
        if events:
            found[part.task.index] = events
            known[name] = replace(part, task=reduce(tasks.evolve, events, part.task))
    return found


def needs_of(parts: Iterable[Part]) -> Needs:
    return {part.step.name: part.step.needs for part in parts}


def followed(part: Part, now: datetime) -> tuple[TaskEvent, ...]:
    """What the step's job proves about its task."""
    task, child = part.task, part.child
    if child is None or task.phase.is_terminal:
        return ()
    phase, came = PHASES[child.status], part.came
    if child.status is JobStatus.COMPLETED and came is not None:
        return (TaskEnded(now, phase, None, value=came.value, metrics=came.metrics, outputs=came.outputs),)
    if child.status.is_terminal:
        return (TaskEnded(now, phase, said_of(part.step, child)),)
    if (task.phase, task.reason, task.deadline_at) == (phase, child.reason, None):
        return ()
    return (TaskAdvanced(now, phase, None, child.reason),)


def said_of(step: Step, child: Job) -> str | None:
    """Why its job did not succeed. It becomes the workflow's reason, where several steps may have one."""
    if child.status is JobStatus.COMPLETED or child.reason is None:
        return None
    return f"{step.name}: {child.reason}" if child.status is JobStatus.FAILED else child.reason


def turned(job: Job, part: Part, parts: Mapping[str, Part], now: datetime) -> tuple[TaskEvent, ...]:
    """Of a step that has no job yet: its turn has come, or will never come."""
    task = part.task
    if task.phase.is_terminal:
        return ()
    if job.desired is Desired.CANCEL:
        return (TaskEnded(now, TaskPhase.CANCELLED, job.reason or CANCELLED),)
    needed = [parts[name] for name in part.step.needs]
    why = unmet(part.step, needed, parts)
    if why is not None:
        return (TaskEnded(now, TaskPhase.CANCELLED, why, verdict=Verdict.SKIPPED),)
    if task.deadline_at is None and is_due(part.step, needed, parts):
        return (TaskAdvanced(now, TaskPhase.WAITING, now, None),)
    return ()


def unmet(step: Step, needed: Sequence[Part], parts: Mapping[str, Part]) -> str | None:
    """Why the step is skipped; None if it is not, or not yet."""
    if step.when is When.SUCCEEDED:
        bad = next((one for one in needed if not one.is_open and one.task.phase is not TaskPhase.SUCCEEDED), None)
        return None if bad is None else f"{bad.step.name} {ending(bad.task)}"
    if step.when is When.FAILED:
        before = all_before(step, parts)
        if not any(one.is_open or one.task.phase is TaskPhase.FAILED for one in before):
            return "nothing before it failed"
    return None


def is_due(step: Step, needed: Sequence[Part], parts: Mapping[str, Part]) -> bool:
    """Of a step that is not skipped. One that waits for a failure may have to wait longer than for what it needs: that
    may have been skipped while a step before it still runs."""
    if any(one.is_open for one in needed):
        return False
    return step.when is not When.FAILED or any(one.task.phase is TaskPhase.FAILED for one in all_before(step, parts))


def all_before(step: Step, parts: Mapping[str, Part]) -> list[Part]:
    return [parts[name] for name in above(step.name, needs_of(parts.values()))]


def ending(task: Task) -> str:
    """In words, of one that did not succeed."""
    if task.verdict is Verdict.SKIPPED:
        return "was skipped"
    return "failed" if task.phase is TaskPhase.FAILED else "was cancelled"


# --- what is owed -----------------------------------------------------------------------------------------------------


def to_begin(job: Job, parts: Sequence[Part], now: datetime) -> tuple[Part, ...]:
    """Steps whose turn has come and that have no job yet."""
    if job.desired is not Desired.RUN:
        return ()
    waiting = [part for part in parts if part.is_open and not part.is_begun]
    return tuple(part for part in waiting if part.task.deadline_at is not None and part.task.deadline_at <= now)


def wishes(job: Job, parts: Sequence[Part]) -> tuple[tuple[Job, Desired, str], ...]:
    """What is wanted of the steps' jobs and was not told to them yet, with the reason. One that somebody holds by
    itself stays so."""
    found = []
    for child in [part.child for part in parts]:
        if child is None or child.status.is_terminal or child.desired is job.desired:
            continue
        if job.desired is Desired.CANCEL:
            found.append((child, Desired.CANCEL, job.reason or CANCELLED))
        elif job.desired is Desired.HOLD and child.desired is Desired.RUN:
            found.append((child, Desired.HOLD, HELD))
        elif job.desired is Desired.RUN and child.desired is Desired.HOLD and child.reason == HELD:
            found.append((child, Desired.RUN, "its workflow goes on"))
    return tuple(found)
