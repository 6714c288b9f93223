"""A job: what was submitted, what is wanted of it, and what it is seen to do."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from crucible.model.ids import Digest, JobId, UserId
from crucible.model.outputs import Input
from crucible.model.spec import Framework, JobType, Locality, Mode, Replication, WhenSpent
from crucible.model.units import MicroUsd


class JobStatus(StrEnum):
    PENDING = "pending"
    SCHEDULED = "scheduled"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)


class Desired(StrEnum):
    """What people want; what is so is the status."""

    RUN = "run"
    HOLD = "hold"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Seed 000's columns keep their names; everything but status and the times derives from `spec_yaml`."""

    id: JobId
    user_id: UserId
    team: str | None
    project: str | None
    name: str
    job_type: JobType
    framework: Framework
    entrypoint_uri: str | None
    dataset_uri: str | None
    execution_mode: Mode
    gpus: int
    max_gpus_per_node: int | None
    requires_multi_node: bool
    gpu_memory_gb: float
    cpu_memory_gb: float
    storage_gb: float
    estimated_hours: float | None
    locality: Locality
    replication: Replication
    budget_microusd: MicroUsd | None
    deadline_at: datetime | None  # the user's deadline
    allow_spot: bool
    min_reliability: float
    performance_weight: float
    priority: int
    spec_yaml: str
    code_digest: Digest | None
    origin: JobId | None  # the job this one resumes or retries
    lineage: JobId  # the first job of that chain; checkpoints belong to it
    created_at: datetime
    parent: JobId | None = None  # the workflow that it works for,
    step: int | None = None  # and the index of the step there
    inputs: tuple[Input, ...] = ()  # trees of earlier work that it was given
    when_spent: WhenSpent = WhenSpent.STOP  # what becomes of it when its own budget is spent

    status: JobStatus = JobStatus.PENDING
    desired: Desired = Desired.RUN
    reason: str | None = None
    selected_provider: str | None = None
    selected_region: str | None = None
    selected_backend: str | None = None
    selected_instance_type: str | None = None
    selected_count: int | None = None
    selected_spot: bool | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    cost_estimated_microusd: MicroUsd | None = None
    updated_at: datetime | None = None
    drained: str | None = None  # why no further task of it is started; None: they are
    desired_by: UserId | None = None  # who said what is wanted, and when; None: nobody since it was submitted
    desired_at: datetime | None = None
    version: int = 0


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    at: datetime
    accepted_at: datetime | None = None  # planned, and about to be stored
    traceparent: str | None = None  # what whoever submitted it says it is part of: W3C trace context


@dataclass(frozen=True, slots=True)
class JobStatusChanged:
    at: datetime
    status: JobStatus
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class JobReasonChanged:
    """The status is the same, the explanation is new (what `crucible why` shows)."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class JobDesired:
    at: datetime
    desired: Desired
    by: UserId
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class JobAllocated:
    """The first placement, or a placement elsewhere, filled in the `selected_*` fields."""

    at: datetime
    provider: str
    region: str
    backend: str
    instance_type: str
    count: int
    is_spot: bool


@dataclass(frozen=True, slots=True)
class JobDrained:
    """No further task is started; those that run go on, those that wait are skipped."""

    at: datetime
    reason: str


JobEvent = JobSubmitted | JobStatusChanged | JobReasonChanged | JobDesired | JobAllocated | JobDrained
