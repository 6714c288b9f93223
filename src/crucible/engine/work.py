"""What one node should be doing now, derived from state: nothing is queued, so nothing can be lost."""

from crucible.core.launch import recipe
from crucible.engine.context import Context
from crucible.model.attempt import Attempt, AttemptPhase, Rank, RankState
from crucible.model.ids import NodeId
from crucible.model.job import Job
from crucible.model.launch import RankWork, Work
from crucible.model.lease import Lease, LeasePhase, Node

_LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING, AttemptPhase.STOPPING)


def ranks_here(node: Node, lease: Lease, attempt: Attempt | None) -> tuple[Rank, ...]:
    """A rank that has exited, or whose attempt is over, is not among them: whatever is left of it must not run."""
    if attempt is None or attempt.phase not in _LIVE or is_leaving(lease):
        return ()
    return tuple(rank for rank in attempt.ranks if runs_on(rank, node.id))


def work_version(node: Node, lease: Lease, attempt: Attempt | None) -> str:
    """Two pictures with the same version are the same: a launch follows from the job, the generation and the rank."""
    ranks = ranks_here(node, lease, attempt)
    if not ranks or attempt is None:
        return "leave" if is_leaving(lease) else "idle"
    numbers = ",".join(str(rank.rank) for rank in ranks)
    verb = "stop" if attempt.phase is AttemptPhase.STOPPING else "run"
    return f"{verb}:{attempt.id}:{attempt.generation}:{numbers}"


def work_of(
    context: Context, node: Node, lease: Lease, job: Job, task_index: int, attempt: Attempt | None, carries: bool
) -> Work:
    """`carries`: its agents carry checkpoints to storage."""
    ranks = ranks_here(node, lease, attempt)
    return Work(
        version=work_version(node, lease, attempt),
        ranks=tuple(
            rank_work(context, job, task_index, attempt, rank, carries) for rank in ranks if attempt is not None
        ),
        retire=is_leaving(lease),
    )


def is_leaving(lease: Lease) -> bool:
    return lease.phase in (LeasePhase.CLOSING, LeasePhase.CLOSED)


def runs_on(rank: Rank, node_id: NodeId) -> bool:
    return rank.node_id == node_id and rank.state is not RankState.EXITED


def rank_work(context: Context, job: Job, task_index: int, attempt: Attempt, rank: Rank, carries: bool) -> RankWork:
    spec = context.spec_of(job)
    place = context.storage_of(job, task_index).uri if carries else context.folder_of(job, task_index)
    is_stopping = attempt.phase is AttemptPhase.STOPPING
    return RankWork(
        launch=recipe(job, spec, attempt, rank, place, carries, context.policy),
        stop=is_stopping,
        stop_reason=attempt.reason if is_stopping else None,
        token=context.keys.attempt(attempt.id),
    )
