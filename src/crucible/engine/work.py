"""What one node should be doing now, derived from state: nothing is queued, so nothing can be lost."""

from dataclasses import replace

from crucible.core.attempt import stop_grace
from crucible.core.launch import recipe
from crucible.core.outputs import are_kept
from crucible.core.trace import traceparent
from crucible.engine.context import Context
from crucible.model.attempt import Attempt, AttemptPhase, Rank, RankState
from crucible.model.ids import NodeId
from crucible.model.job import Job
from crucible.model.launch import RankWork, Work
from crucible.model.lease import Lease, LeasePhase
from crucible.model.task import Task
from crucible.model.tree import NodeGlance, NodeWork

_LIVE = (AttemptPhase.STARTING, AttemptPhase.RUNNING, AttemptPhase.STOPPING)
_LEAVING = (LeasePhase.CLOSING, LeasePhase.CLOSED)


def ranks_here(known: NodeWork) -> tuple[tuple[Task, Attempt, Rank], ...]:
    """A rank that has exited, or whose attempt is over, is not among them: whatever is left of it must not run."""
    if is_leaving(known.lease):
        return ()
    return tuple(
        (task, attempt, rank)
        for task, attempt in known.at_work
        if attempt.phase in _LIVE
        for rank in attempt.ranks
        if runs_on(rank, known.node.id)
    )


def work_version(glance: NodeGlance) -> str:
    """Two pictures with the same version are the same: a launch follows from the job, the generation and the rank."""
    if glance.phase in _LEAVING:
        return "leave"
    found: dict[str, list[str]] = {}
    for one in glance.ranks:
        if one.phase in _LIVE:
            verb = "stop" if one.phase is AttemptPhase.STOPPING else "run"
            found.setdefault(f"{verb}:{one.attempt_id}:{one.generation}", []).append(str(one.rank))
    return ";".join(f"{name}:{','.join(numbers)}" for name, numbers in found.items()) or "idle"


def work_of(context: Context, known: NodeWork, carries: bool) -> Work:
    """`carries`: its agents carry checkpoints to storage."""
    return Work(
        version=work_version(known.glance),
        ranks=tuple(rank_work(context, known.job, *each, carries) for each in ranks_here(known)),
        retire=is_leaving(known.lease),
    )


def is_leaving(lease: Lease) -> bool:
    return lease.phase in _LEAVING


def runs_on(rank: Rank, node_id: NodeId) -> bool:
    return rank.node_id == node_id and rank.state is not RankState.EXITED


def rank_work(context: Context, job: Job, task: Task, attempt: Attempt, rank: Rank, carries: bool) -> RankWork:
    spec = context.spec_of(job)
    place = context.storage_of(job, task.index).uri if carries else context.folder_of(job, task.index)
    is_stopping = attempt.phase is AttemptPhase.STOPPING
    launch = recipe(job, task, spec, attempt, rank, place, carries, context.policy)
    if context.spans is not None:
        launch = replace(launch, env={"TRACEPARENT": traceparent(job.id, attempt.id), **launch.env})
    return RankWork(
        launch=launch,
        stop=is_stopping,
        stop_reason=attempt.reason if is_stopping else None,
        stop_grace_s=stop_grace(attempt, context.policy).total_seconds() if is_stopping else None,
        token=context.keys.attempt(attempt.id),
        keeps_outputs=is_stopping and are_kept(job, task),
    )
