"""Facts that are written once beside the state they explain: allocations, artifacts, checkpoints."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from crucible.model.audit import AuditEntry
from crucible.model.dataset import DatasetCopy
from crucible.model.health import Finding, JobHealth, PlaceHealth
from crucible.model.ids import AttemptId, Digest, JobId, NodeId, OrderId, TaskId, UserId
from crucible.model.ledger import Cooldown, Posting, Usage
from crucible.model.notice import Notice
from crucible.model.offer import Target
from crucible.model.outputs import Output
from crucible.model.retention import Source
from crucible.model.shards import Shard
from crucible.model.sweep import Curve
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What was decided and the price at that moment. Never changed."""

    job_id: JobId
    task_id: TaskId
    attempt_id: AttemptId
    order_id: OrderId
    target: Target
    instance_type: str
    count: int
    is_spot: bool
    price_per_hour: MicroUsd
    estimated_hours: float | None
    estimated_cost: MicroUsd
    created_at: datetime


class ArtifactType(StrEnum):
    CHECKPOINT = "checkpoint"
    LOG = "log"
    OUTPUT = "output"
    METRICS = "metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """(job, type, uri) is unique: writing it twice is writing it once."""

    job_id: JobId
    type: ArtifactType
    uri: str
    created_at: datetime
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A committed checkpoint as its node reported it; the manifest beside the data is the truth."""

    lineage: JobId
    job_id: JobId
    attempt_id: AttemptId
    step: int
    uri: str
    size_bytes: int
    manifest_sha256: Digest
    created_at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    task_index: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What was expected of a job and what came of it: estimates when it is planned, the rest when it has ended. Written
    again, what is None is left as it was."""

    job_id: JobId
    framework: str | None = None
    model_class: str | None = None  # "llm", "llm/inference" where it serves
    team: str | None = None
    planned_on: str | None = None  # machines: "2 × aws/p4d.24xlarge"
    gpu: str | None = None
    gpus: int | None = None  # of all machines
    nodes: int | None = None
    estimated_hours: float | None = None  # in which ranks run: without the start, with what interruptions cost
    estimated_cost: MicroUsd | None = None
    origin: str | None = None  # of the hours: an Origin of core.perf
    book_hours: float | None = None  # of the work, by the shipped speeds alone
    status: str | None = None  # how it ended
    ran_on: str | None = None  # as planned_on
    attempts: int | None = None  # that ran
    actual_hours: float | None = None
    actual_cost: MicroUsd | None = None
    steps: int | None = None
    rate: float | None = None  # steps per second
    ended_at: datetime | None = None
    estimated_hours_high: float | None = None  # nine of ten such jobs are done by then
    estimated_cost_high: MicroUsd | None = None
    provider: str | None = None  # where it was to run
    paid_hours: float | None = None  # of one of its machines, until the job had ended


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What stands for a step that depends on the same: its key says on what."""

    cache_key: Digest
    user_id: UserId
    job_id: JobId  # that worked for it
    outputs: Digest | None  # of its only task
    created_at: datetime


Record = (
    Allocation
    | Artifact
    | Checkpoint
    | Prediction
    | Usage
    | Posting
    | Cooldown
    | DatasetCopy
    | Output
    | Shard
    | StepResult
    | Source
    | AuditEntry
    | Notice
    | JobHealth
    | Finding
    | PlaceHealth
)


# --- not events: they bump no version and may be written late or together -------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A node was heard. Usage is what `top` and the job page show."""

    node_id: NodeId
    at: datetime
    usage: Mapping[str, float] = field(default_factory=dict)  # cpu_percent, memory_bytes, gpu0_percent …


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The newest progress of a task; the last writer wins."""

    task_id: TaskId
    job_id: JobId
    attempt_id: AttemptId
    at: datetime
    step: int | None = None
    total_steps: int | None = None
    fraction: float | None = None  # 0 … 1
    metrics: Mapping[str, float] = field(default_factory=dict)
    curve: Curve | None = None  # of a trial's objective
