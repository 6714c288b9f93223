"""A task: the independent unit of a job (a trial, a shard, a step); a single_cluster job has one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from crucible.model.ids import AttemptId, Digest, JobId, TaskId


class TaskPhase(StrEnum):
    """The words of the job's status, so that a job's status is a function of its tasks' counts."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in (TaskPhase.SUCCEEDED, TaskPhase.FAILED, TaskPhase.CANCELLED)


class TaskKind(StrEnum):
    """Who gives it machines."""

    ALONE = "alone"  # itself: it holds leases of its own
    SEATED = "seated"  # the crews of its job: it runs on a seat of one of their machines
    CREW = "crew"  # holds machines for the seated tasks of its job; nothing of the user's runs in its name
    STEP = "step"  # of a workflow: another job works for it


class Verdict(StrEnum):
    """How a task ended beside what its phase says, or how it will."""

    PRUNED = "pruned"  # a trial that was stopped early: it counts as done
    SKIPPED = "skipped"  # nobody needs it any more; it never failed
    REUSED = "reused"  # a step whose result was there already


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    id: TaskId
    job_id: JobId
    index: int  # crews count down from -1
    created_at: datetime
    kind: TaskKind = TaskKind.ALONE
    params: Mapping[str, Any] | None = None  # what it was given; None: nothing, or not yet
    phase: TaskPhase = TaskPhase.WAITING
    reason: str | None = None
    attempts: int = 0  # started so far; the next one has this number
    failures: int = 0  # of the user's code: what `retry.limit` counts
    losses: int = 0  # machines lost since it last got anywhere: never counted against the user
    boots_failed: int = 0  # machines that were bought and never came up: they cost money for nothing
    attempt_id: AttemptId | None = None  # the live one
    not_before: datetime | None = None  # a retry waits until then
    deadline_at: datetime | None = None  # when somebody must look again at the latest
    verdict: Verdict | None = None
    value: float | None = None  # of the objective, when it has ended
    metrics: Mapping[str, float] = field(default_factory=dict)  # the last of each, when it has ended
    outputs: Digest | None = None  # the tree that it left behind
    version: int = 0


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskCreated:
    at: datetime


@dataclass(frozen=True, slots=True)
class TaskPlaced:
    at: datetime
    attempt_id: AttemptId
    deadline_at: datetime
    reason: str | None = None  # what is worth saying of the place: a limit that it cannot keep any more


@dataclass(frozen=True, slots=True)
class TaskAdvanced:
    """The live attempt went on: scheduled, provisioning, running, checkpointing and back."""

    at: datetime
    phase: TaskPhase
    deadline_at: datetime | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """The attempt is over and the task waits for the next one."""

    at: datetime
    reason: str
    not_before: datetime
    counts_as_failure: bool
    counts_as_loss: bool
    counts_as_failed_boot: bool = False
    made_progress: bool = False  # losses are counted from nothing again


@dataclass(frozen=True, slots=True)
class TaskExplained:
    """Still waiting; this is why."""

    at: datetime
    reason: str
    not_before: datetime | None


@dataclass(frozen=True, slots=True)
class TaskEnded:
    at: datetime
    phase: TaskPhase
    reason: str | None
    verdict: Verdict | None = None  # what came to its end before it was stopped was not stopped
    value: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    outputs: Digest | None = None


@dataclass(frozen=True, slots=True)
class TaskGiven:
    """An adaptive search has decided what this trial tries."""

    at: datetime
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskPruned:
    """Its attempt is to be stopped: nobody expects anything of it any more."""

    at: datetime
    reason: str


TaskEvent = TaskCreated | TaskPlaced | TaskAdvanced | TaskRetried | TaskExplained | TaskEnded | TaskGiven | TaskPruned
