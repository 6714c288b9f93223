"""How jobs and providers are. Findings open and close; what must be remembered from one look to the next is kept with
the job, so that any server can look next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from crucible.model.ids import JobId, NodeId, TaskId
from crucible.model.notice import Severity


class Health(StrEnum):
    OK = "ok"
    WARNING = "warning"
    CRITICAL = "critical"
    UNKNOWN = "unknown"  # nothing is heard that it could be judged by


class FindingCode(StrEnum):
    NO_PROGRESS = "no_progress"
    LOSS_NOT_A_NUMBER = "loss_not_a_number"
    LOSS_DIVERGED = "loss_diverged"
    GPUS_IDLE = "gpus_idle"
    GPU_MEMORY_FULL = "gpu_memory_full"
    STRAGGLER = "straggler"
    NODE_SILENT = "node_silent"
    CLOCK_SKEWED = "clock_skewed"
    CHECKPOINT_OVERDUE = "checkpoint_overdue"
    DISK_FULL = "disk_full"
    RESTART_LOOP = "restart_loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is wrong with a job since `opened_at`; of each code at most one is open. Its words stay the same
    while nothing changes: they say since when, not for how long."""

    job_id: JobId
    code: FindingCode
    opened_at: datetime
    severity: Severity
    words: str
    advice: str  # what to do about it
    closed_at: datetime | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMemory:
    """What was seen of one task's present attempt, and of the attempts before."""

    attempt: int = -1
    at: datetime | None = None  # of the last report that counted
    step: float | None = None  # or the share done, where no steps are told
    moved_at: datetime | None = None  # when it last got further, or was last busy with something else
    pace: tuple[float, ...] = ()  # seconds per step, the last ones
    starts: tuple[datetime, ...] = ()  # of its attempts
    saves: tuple[datetime, ...] = ()  # of checkpoints
    losses: tuple[float, ...] = ()  # the last ones that are numbers
    loss_began: float | None = None
    loss_best: float | None = None
    not_numbers: int = 0  # losses in a row that are none


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    tasks: Mapping[str, TaskMemory] = field(default_factory=dict)  # by id
    idle: Mapping[str, datetime] = field(default_factory=dict)  # "node/gpu" -> since when it does nothing
    seen: Mapping[str, int] = field(default_factory=dict)  # code -> looks in a row, of what is not open yet
    absent: Mapping[str, datetime] = field(default_factory=dict)  # code -> since when, of what is still open


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHealth:
    """As it was at the last look. Not part of the job's state: it has no version, and the newest look counts."""

    job_id: JobId
    status: Health
    looked_at: datetime
    why: str | None = None  # it is unknown
    memory: Memory = Memory()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceHealth:
    """A provider in a region, as whoever lists its machines has found it; the newest counts."""

    provider: str
    region: str
    looked_at: datetime
    last_good_at: datetime | None = None
    failing_since: datetime | None = None
    error: str | None = None
    latency_ms: int | None = None
    machines: int = 0
    removed: int = 0  # machines that nobody owned, ever
    noticed_at: datetime | None = None  # people were told that it fails

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.region}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """What the database says of the whole system at one moment."""

    waiting_tasks: int = 0
    oldest_waiting_at: datetime | None = None
    unsettled_orders: int = 0
    oldest_order_at: datetime | None = None
    closing_leases: int = 0  # machines on their way back
    nodes: int = 0  # of machines that are held
    silent_nodes: int = 0
    balance_microusd: int = 0  # of all accounts together: nothing
    open_stretches: int = 0  # of machines that cost money now
    stray_stretches: int = 0  # of them, of machines that nobody holds
    stretches: int = 0
    estimated_stretches: int = 0  # nobody told when the machine ended
    database_bytes: int = 0
    revision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldNode:
    """A node of a machine that a job holds now: its newest figures, and whose they are."""

    node_id: NodeId
    job_id: JobId
    task_id: TaskId
    index: int  # of its lease
    rank: int | None  # the lowest that runs there; None: none does
    gpus: int  # that were paid for
    devices: tuple[str, ...]
    heard_at: datetime | None
    usage: Mapping[str, float] = field(default_factory=dict)
