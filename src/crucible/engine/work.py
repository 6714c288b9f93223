"""What one node should be doing now, derived from state: nothing is queued, so nothing can be lost."""

import hashlib
import json

from crucible.core.launch import recipe
from crucible.engine.context import Context
from crucible.model.attempt import Attempt, AttemptPhase, Rank, RankState
from crucible.model.encoding import encode
from crucible.model.ids import NodeId
from crucible.model.job import Job
from crucible.model.launch import RankWork, Work
from crucible.model.lease import Lease, LeasePhase, Node

_LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING, AttemptPhase.STOPPING)


def work_of(context: Context, node: Node, lease: Lease, job: Job, task_index: int, attempt: Attempt | None) -> Work:
    """A rank that has exited, or whose attempt is over, is not in it: whatever is left of it must not run."""
    retire = lease.phase in (LeasePhase.CLOSING, LeasePhase.CLOSED)
    ranks: tuple[RankWork, ...] = ()
    if attempt is not None and attempt.phase in _LIVE and not retire:
        ranks = tuple(
            rank_work(context, job, task_index, attempt, rank) for rank in attempt.ranks if runs_on(rank, node.id)
        )
    body = json.dumps(encode((ranks, retire)), sort_keys=True)
    return Work(version=hashlib.sha256(body.encode()).hexdigest()[:16], ranks=ranks, retire=retire)


def runs_on(rank: Rank, node_id: NodeId) -> bool:
    return rank.node_id == node_id and rank.state is not RankState.EXITED


def rank_work(context: Context, job: Job, task_index: int, attempt: Attempt, rank: Rank) -> RankWork:
    spec = context.spec_of(job)
    is_stopping = attempt.phase is AttemptPhase.STOPPING
    return RankWork(
        launch=recipe(job, spec, attempt, rank, context.checkpoints_of(job, task_index), context.policy),
        stop=is_stopping,
        stop_reason=attempt.reason if is_stopping else None,
        token=context.keys.attempt(attempt.id),
    )
