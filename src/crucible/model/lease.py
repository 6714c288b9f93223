"""Orders and leases. An order is one purchase call for n machines, all or none; a lease is our right to one
machine and our duty to pay for it. A lease is held by a task, never by an attempt: a healthy node outlives a
failed attempt."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from crucible.model.ids import JobId, LeaseId, MachineId, NodeId, OfferId, OrderId, TaskId
from crucible.model.ledger import PriceSince, Rate, Terms
from crucible.model.offer import Target
from crucible.model.units import NOTHING, MicroUsd


class OrderPhase(StrEnum):
    PENDING = "pending"  # intent is stored; create may be called (again) with the order's id as token
    UNKNOWN = "unknown"  # create was called and nobody knows what came of it: look before trying again
    FILLED = "filled"
    REFUSED = "refused"
    ABANDONED = "abandoned"  # given up before anything was bought, or everything bought was given back


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    id: OrderId  # also the idempotency token of the call, and the tag on every object it creates
    job_id: JobId
    task_id: TaskId
    target: Target
    offer: OfferId
    zone: str  # "" where the seller has none, or any will do
    instance_type: str
    count: int
    gpus: int  # per machine
    is_spot: bool
    price_per_hour: MicroUsd  # frozen at the decision
    # The exact request, as the seller prepared it: stored before the first call, never changed after. Empty until then.
    body: Mapping[str, Any]
    created_at: datetime
    deadline_at: datetime
    phase: OrderPhase = OrderPhase.PENDING
    called_at: datetime | None = None  # the last create call
    reason: str | None = None
    version: int = 0
    hazard_per_hour: float | None = None  # spot: interruptions of one machine, as it was planned
    gpu: str | None = None  # its name; None without GPUs
    on_demand_per_hour: MicroUsd | None = None  # of the same machine at the decision; None: nobody knew

    @property
    def is_settled(self) -> bool:
        return self.phase in (OrderPhase.FILLED, OrderPhase.REFUSED, OrderPhase.ABANDONED)


class LeasePhase(StrEnum):
    REQUESTED = "requested"
    ACTIVE = "active"
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    id: LeaseId
    order_id: OrderId
    job_id: JobId
    task_id: TaskId
    target: Target
    index: int  # within the order
    gpus: int
    price_per_hour: MicroUsd
    created_at: datetime
    deadline_at: datetime | None
    phase: LeasePhase = LeasePhase.REQUESTED
    machine_id: MachineId | None = None
    node_id: NodeId | None = None
    devices: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    missing_since: datetime | None = None
    delete_tries: int = 0
    reason: str | None = None
    version: int = 0
    was_taken: bool = False  # its seller wanted the machine back, or it vanished


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotLives:
    """What spot machines of one kind lived through with us."""

    provider: str
    region: str
    instance_type: str
    hours: float  # of all of them together
    taken: int  # so many of them went because their seller wanted them back


class MachineState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"  # ended, and listed as such; absence from a listing is only a suspicion


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Theirs: what a seller lists."""

    id: MachineId
    order_id: OrderId
    index: int
    state: MachineState
    devices: tuple[str, ...] = ()
    address: str | None = None
    reason: str | None = None  # why it is gone, where the seller says
    # --- what it costs, as the seller says. A machine without a start is not charged for.
    started_at: datetime | None = None  # whole seconds, by the seller's clock
    ended_at: datetime | None = None
    was_taken: bool = False  # spot: the seller ended it
    prices: tuple[PriceSince, ...] = ()  # since its start, where they move; empty: the order's price holds
    extras: tuple[Rate, ...] = ()  # what is charged beside the machine as long as it lives: disks, addresses


class LeftoverKind(StrEnum):
    VOLUME = "volume"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something of ours that costs money and belongs to no machine."""

    kind: LeftoverKind
    id: str
    order_id: OrderId | None


@dataclass(frozen=True, slots=True)
class Boot:
    """What a new machine needs to phone home. The addresses and the digest are stored with the order; the token is
    derived from the order and the server's key: the same order always boots the same way, and no secret is stored."""

    servers: tuple[str, ...]
    enrolment_token: str
    agent_sha256: str = ""  # of the agent that the servers hand out at /v1/agent/<digest>


PLAIN_TERMS = Terms()


@dataclass(frozen=True, slots=True, kw_only=True)
class SellerFacts:
    idempotent_create: bool
    visibility: timedelta  # how long a created machine may be missing from the listing
    boot_time: timedelta  # from create to an enrolled agent, at worst
    counts_stock: bool = False  # True: it lists its own offers; False: it sells what the catalog says
    powers_off: bool = True  # False: the agent must never switch the machine off (this computer)
    shares_files: bool = False  # True: its machines see the files of the server,
    poll_every: timedelta = timedelta(seconds=0.5)  # how often it may be listed while something is changing
    orphan_after: timedelta = timedelta(hours=24)  # the dead-man switch: a node that hears nobody so long ends itself
    # A node of ours that hears no server for so long ends its ranks by itself: after that, and a margin, a machine that
    # nobody can reach runs nothing. None: only its seller's word is proof.
    fence: timedelta | None = None
    terms: Terms = PLAIN_TERMS
    # From a call to delete a machine to the end that is charged for, with a call or two that are lost.
    ends_within: timedelta = timedelta(seconds=30)
    beside_per_hour: MicroUsd = NOTHING  # what disks and addresses of one machine cost at most


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OrderPlaced:
    at: datetime


@dataclass(frozen=True, slots=True)
class OrderPrepared:
    """The exact request, before it is made for the first time."""

    at: datetime
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OrderCalled:
    """Written before the call is made: whatever happens next, we know that we asked."""

    at: datetime


@dataclass(frozen=True, slots=True)
class OrderUnanswered:
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class OrderReopened:
    """We looked, nothing is there, and nothing can still appear: the call may be made again."""

    at: datetime


@dataclass(frozen=True, slots=True)
class OrderFilled:
    at: datetime


@dataclass(frozen=True, slots=True)
class OrderRefused:
    at: datetime
    reason: str
    code: str


@dataclass(frozen=True, slots=True)
class OrderAbandoned:
    at: datetime
    reason: str


OrderEvent = (
    OrderPlaced
    | OrderPrepared
    | OrderCalled
    | OrderUnanswered
    | OrderReopened
    | OrderFilled
    | OrderRefused
    | OrderAbandoned
)


@dataclass(frozen=True, slots=True)
class LeaseRequested:
    at: datetime


@dataclass(frozen=True, slots=True)
class LeaseStarted:
    at: datetime
    machine_id: MachineId
    devices: tuple[str, ...]
    deadline_at: datetime | None  # for the node to enrol


@dataclass(frozen=True, slots=True)
class NodeBound:
    at: datetime
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class MachineMissed:
    at: datetime


@dataclass(frozen=True, slots=True)
class MachineSeenAgain:
    at: datetime


@dataclass(frozen=True, slots=True)
class LeaseClosing:
    at: datetime
    reason: str
    deadline_at: datetime
    was_taken: bool = False


@dataclass(frozen=True, slots=True)
class LeaseDeleteTried:
    """The delete call failed or is not confirmed yet; it is tried for ever, ever more slowly."""

    at: datetime
    reason: str
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class LeaseClosed:
    at: datetime
    reason: str
    was_taken: bool = False


LeaseEvent = (
    LeaseRequested
    | LeaseStarted
    | NodeBound
    | MachineMissed
    | MachineSeenAgain
    | LeaseClosing
    | LeaseDeleteTried
    | LeaseClosed
)


# --- nodes --------------------------------------------------------------------------------------


class NodePhase(StrEnum):
    ENROLLED = "enrolled"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Ours: a machine with an agent. Its identity is its key, never its address."""

    id: NodeId
    lease_id: LeaseId
    task_id: TaskId
    machine_id: MachineId
    agent_id: str  # random, made by the agent before it enrols: the same agent may ask again
    address: str
    rendezvous_port: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    enrolled_at: datetime
    phase: NodePhase = NodePhase.ENROLLED
    version: int = 0


@dataclass(frozen=True, slots=True)
class NodeEnrolled:
    at: datetime


@dataclass(frozen=True, slots=True)
class NodeRetired:
    at: datetime
    reason: str


NodeEvent = NodeEnrolled | NodeRetired
