"""An attempt: one try of one task. Its ranks start together, stop together, and are never reused."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from crucible.model.ids import AttemptId, Digest, JobId, LeaseId, NodeId, TaskId


class AttemptPhase(StrEnum):
    PROVISIONING = "provisioning"  # waits until every lease has a node: the gang barrier
    STARTING = "starting"  # ranks are assigned, nodes were told
    RUNNING = "running"  # every rank has started
    STOPPING = "stopping"  # the ranks were told to stop
    ENDED = "ended"


class Outcome(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the user's code
    TIMED_OUT = "timed_out"  # the user's timeout
    LOST = "lost"  # a machine
    UNPLACED = "unplaced"  # the order was refused: no machine ever came
    CANCELLED = "cancelled"
    HELD = "held"


class RankState(StrEnum):
    ASSIGNED = "assigned"
    STARTED = "started"
    EXITED = "exited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    rank: int
    node_id: NodeId
    node_rank: int
    local_rank: int
    devices: tuple[str, ...]
    address: str = ""  # of its node, where the others reach it
    port: int = 0  # of its node, kept free for its ranks
    state: RankState = RankState.ASSIGNED
    exit_code: int | None = None  # None with EXITED: killed by `signal`, or the agent says why in `reason`
    signal: int | None = None
    reason: str | None = None
    is_evicted: bool = False  # it went because its machine goes: nobody may run there again
    started_at: datetime | None = None
    ended_at: datetime | None = None
    outputs: Digest | None = None  # the tree that it left in $CRUCIBLE_OUTPUT, whole in storage

    @property
    def succeeded(self) -> bool:
        return self.state is RankState.EXITED and self.exit_code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    id: AttemptId
    task_id: TaskId
    job_id: JobId
    number: int  # 0, 1, 2 … within the task
    leases: tuple[LeaseId, ...]
    created_at: datetime
    deadline_at: datetime
    phase: AttemptPhase = AttemptPhase.PROVISIONING
    is_checkpointing: bool = False
    generation: int = 0  # of the membership; 1 after the barrier. Members of an elastic attempt come and go within it
    ranks: tuple[Rank, ...] = ()
    master_addr: str | None = None
    master_port: int | None = None
    resume_step: int | None = None  # the newest checkpoint known when it was made; the node looks again
    saved_step: int | None = None  # the newest checkpoint that it committed itself
    mean_life_s: float | None = None  # between interruptions of the gang, as it was bought; None: it stays
    stop_outcome: Outcome | None = None  # why it is being stopped, and how it will then have ended
    outcome: Outcome | None = None
    reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    version: int = 0

    @property
    def outputs(self) -> Digest | None:
        """What its first rank left; the others' are theirs."""
        return next((rank.outputs for rank in self.ranks if rank.rank == 0), None)


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AttemptCreated:
    at: datetime


@dataclass(frozen=True, slots=True)
class RanksAssigned:
    at: datetime
    generation: int
    ranks: tuple[Rank, ...]
    master_addr: str
    master_port: int
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class RankStarted:
    at: datetime
    rank: int
    started_at: datetime


@dataclass(frozen=True, slots=True)
class RankExited:
    at: datetime
    rank: int
    exit_code: int | None
    signal: int | None
    reason: str | None
    ended_at: datetime
    is_evicted: bool = False
    outputs: Digest | None = None


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    """Every rank has started."""

    at: datetime
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class CheckpointBegan:
    at: datetime


@dataclass(frozen=True, slots=True)
class CheckpointCommitted:
    at: datetime
    step: int | None  # None: the attempt stopped checkpointing without a new checkpoint


@dataclass(frozen=True, slots=True)
class AttemptStopping:
    at: datetime
    outcome: Outcome
    reason: str
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    at: datetime
    outcome: Outcome
    reason: str | None


@dataclass(frozen=True, slots=True)
class AttemptGrown:
    """Elastic: more machines were ordered while it runs."""

    at: datetime
    leases: tuple[LeaseId, ...]


@dataclass(frozen=True, slots=True)
class MemberJoined:
    """Elastic: such a machine is there, and its ranks may start."""

    at: datetime
    ranks: tuple[Rank, ...]


@dataclass(frozen=True, slots=True)
class MemberLost:
    """Elastic: a machine is gone, or as good as gone, and the others go on without it."""

    at: datetime
    lease_id: LeaseId
    ranks: tuple[int, ...]  # that had not ended
    reason: str


AttemptEvent = (
    AttemptCreated
    | RanksAssigned
    | RankStarted
    | RankExited
    | AttemptStarted
    | CheckpointBegan
    | CheckpointCommitted
    | AttemptStopping
    | AttemptEnded
    | AttemptGrown
    | MemberJoined
    | MemberLost
)
