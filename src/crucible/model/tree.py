"""What a decision about one task, or one job, looks at."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from crucible.model.attempt import Attempt, AttemptPhase, RankState
from crucible.model.ids import AttemptId, NodeId
from crucible.model.job import Job
from crucible.model.lease import Lease, LeasePhase, Node, Order
from crucible.model.record import Progress
from crucible.model.task import Task, TaskPhase


@dataclass(frozen=True, slots=True)
class TaskTree:
    """A task with all that hangs on it: what one step decides about."""

    job: Job
    task: Task
    attempt: Attempt | None  # the live one, or the newest if none lives
    orders: tuple[Order, ...]  # those not settled, and those of open leases
    leases: tuple[Lease, ...]  # its own that are not closed, and those of the attempt
    nodes: tuple[Node, ...]  # of those leases
    heard: Mapping[NodeId, datetime]  # when each node last spoke
    progress: Progress | None = None  # what the task has reported


class PlacedRank(NamedTuple):
    """A rank that runs on a node, or should, with what its attempt is at."""

    phase: AttemptPhase
    attempt_id: AttemptId
    generation: int
    rank: int


@dataclass(frozen=True, slots=True)
class NodeGlance:
    """What tells a node's work from any other: a thousand nodes ask all the time whether it is still the same."""

    phase: LeasePhase
    ranks: tuple[PlacedRank, ...]  # of live attempts, in their order


@dataclass(frozen=True, slots=True)
class NodeWork:
    """What a node needs to know: its lease, its job, and the live attempts on it with their tasks."""

    node: Node
    lease: Lease
    job: Job
    at_work: tuple[tuple[Task, Attempt], ...]

    @property
    def glance(self) -> NodeGlance:
        ranks = (
            PlacedRank(attempt.phase, attempt.id, attempt.generation, rank.rank)
            for _, attempt in self.at_work
            for rank in attempt.ranks
            if rank.node_id == self.node.id and rank.state is not RankState.EXITED
        )
        return NodeGlance(self.lease.phase, tuple(ranks))


@dataclass(frozen=True, slots=True)
class Crewed:
    """A job whose tasks share machines, and how many of those tasks wait: for a seat, or for their time."""

    job: Job
    ready: int
    later: int
    last_crew: int  # the least index of its crews so far; they count down from -1


@dataclass(frozen=True, slots=True)
class Crews:
    """The machines that a job holds for its tasks, and who runs on them."""

    trees: tuple[TaskTree, ...]  # of its crews that have not ended
    at_work: tuple[Attempt, ...]  # live attempts of its tasks


@dataclass(frozen=True, slots=True)
class Tally:
    """A job's tasks but its crews, counted by phase, and the reason of the first that ended badly or still waits."""

    counts: Mapping[TaskPhase, int]
    reason: str | None = None
    ever_placed: bool = False  # some task has had an attempt
    skipped: int = 0  # among the cancelled: nobody needs them any more
    crews: int = 0  # that hold machines, or will
    steps: int = 0  # of a workflow, that have not ended

    @property
    def at_work(self) -> int:
        """Tasks that have begun and not ended."""
        return sum(n for phase, n in self.counts.items() if phase is not TaskPhase.WAITING and not phase.is_terminal)
