"""Tasks by the page, and what is remembered of trials beside their state."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from crucible.model.attempt import AttemptPhase
from crucible.model.ids import JobId, TaskId
from crucible.model.offer import Target
from crucible.model.record import Checkpoint, Progress
from crucible.model.sweep import Curve, Goal, Tried
from crucible.model.task import Task, TaskPhase, Verdict

MOST_TASKS_OF_A_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskQuery:
    job_id: JobId
    best_first: Goal | None = None  # in the order of `core.sweep.standing`; None: by index
    phases: frozenset[TaskPhase] = frozenset()  # empty: any
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt runs or ran."""

    target: Target
    instance_type: str
    is_spot: bool


@dataclass(frozen=True, slots=True)
class LastAttempt:
    """Of a task, the newest."""

    number: int
    phase: AttemptPhase
    started_at: datetime | None
    ended_at: datetime | None
    place: Place | None


@dataclass(frozen=True, slots=True)
class TaskRow:
    task: Task
    progress: Progress | None
    attempt: LastAttempt | None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Crews are none of a job's tasks."""

    items: tuple[TaskRow, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class TrialCount:
    phase: TaskPhase
    verdict: Verdict | None
    has_value: bool
    count: int


@dataclass(frozen=True, slots=True)
class NewCurves:
    """Of trials that have reported since; `until` is where to go on."""

    curves: Mapping[TaskId, Curve]
    until: datetime | None


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Of the attempts of a job: how long those that have ended ran, and since when the others run."""

    ended: int
    ended_s: float
    live_since: tuple[datetime, ...]


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far the tasks of a job are, together."""

    tasks: int
    done: float  # of their shares, added up; one that has said nothing has done nothing
    newest: Progress  # without its curve


@dataclass(frozen=True, slots=True)
class Tries:
    """Of all tasks of a job together."""

    started: int = 0
    failures: int = 0
    losses: int = 0


class TrialBook(Protocol):
    async def job_progress(self, job_id: JobId) -> JobProgress | None:
        """None: no task has said anything yet. Cheap, however many they are."""
        ...

    async def tries(self, job_id: JobId) -> Tries: ...
    async def task_page(self, query: TaskQuery) -> TaskPage:
        """Raises InvalidRequest for a cursor or limit that is none."""
        ...

    async def tasks_between(self, job_id: JobId, first: int, end: int) -> Sequence[Task]:
        """Those with an index from `first` to below `end`, in order."""
        ...

    async def trial_counts(self, job_id: JobId) -> Sequence[TrialCount]: ...
    async def sweeping(self) -> Sequence[JobId]:
        """Searches and evaluations that are not over and want to run, oldest first."""
        ...

    async def tried(self, job_id: JobId, goal: Goal, limit: int) -> Sequence[Tried]:
        """What every trial that runs was given, and the best of those that have ended; one without a value comes
        last."""
        ...

    async def curves(self, job_id: JobId, since: datetime | None) -> NewCurves: ...
    async def running_trials(self, job_id: JobId) -> Collection[TaskId]:
        """Whose programs run, and that nobody has given up yet."""
        ...

    async def run_times(self, job_id: JobId) -> RunTimes: ...
    async def newest_checkpoint(self, lineage: JobId, task_index: int) -> Checkpoint | None: ...
