"""What a decision about one task, or one job, looks at."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from crucible.model.attempt import Attempt
from crucible.model.ids import NodeId
from crucible.model.job import Job
from crucible.model.lease import Lease, Node, Order
from crucible.model.task import Task, TaskPhase


@dataclass(frozen=True, slots=True)
class TaskTree:
    """A task with all that hangs on it: what one step decides about."""

    job: Job
    task: Task
    attempt: Attempt | None  # the live one, or the newest if none lives
    orders: tuple[Order, ...]  # those not settled, and those of open leases
    leases: tuple[Lease, ...]  # not closed, and those of the attempt
    nodes: tuple[Node, ...]  # of those leases
    heard: Mapping[NodeId, datetime]  # when each node last spoke


@dataclass(frozen=True, slots=True)
class Tally:
    """A job's tasks, counted by phase, and the reason of the first that ended badly or still waits."""

    counts: Mapping[TaskPhase, int]
    reason: str | None = None
    ever_placed: bool = False  # some task has had an attempt
