"""One look at one task and everything that hangs on it: leases, nodes, attempt, task. Pure composition of the
lifecycles; what it returns is committed whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from crucible.core import attempt as attempts
from crucible.core import lease as leases
from crucible.core import scale
from crucible.core import sweep as sweeps
from crucible.core import task as tasks
from crucible.core.launch import assign_ranks, ranks_per_node
from crucible.model.attempt import Attempt, AttemptEvent, AttemptPhase, Outcome, RankState
from crucible.model.change import Change, changed
from crucible.model.ids import LeaseId, NodeId
from crucible.model.job import Desired
from crucible.model.lease import Lease, LeasePhase, Node, SellerFacts
from crucible.model.policy import Policy
from crucible.model.record import Progress
from crucible.model.spec import JobSpec
from crucible.model.task import Task, TaskEnded, TaskEvent, TaskPhase, Verdict
from crucible.model.tree import TaskTree


@dataclass(frozen=True, slots=True)
class View:
    """What a step knows besides the tree. `watching_since`: silence before we listened is not the node's."""

    spec: JobSpec
    facts: SellerFacts
    policy: Policy
    now: datetime
    watching_since: datetime
    last_words: Mapping[LeaseId, str] = field(default_factory=dict)  # of machines whose agents are late


def advance(tree: TaskTree, view: View) -> tuple[Change, ...]:
    """Everything that has become true about `tree` by `view.now`."""
    attempt = tree.attempt
    changes: list[Change] = []
    if attempt is not None and attempt.id == tree.task.attempt_id:
        attempt, more = advance_attempt(tree, attempt, view)
        changes += more
    task, more = advance_task(tree, attempt, view)
    changes += more
    for lease in tree.leases:
        if lease.task_id != task.id:
            changes += given_up(lease, attempt, tree, view)
            continue
        reason = close_reason(lease, task, attempt, tree, view)
        if reason is not None:
            changes += observed(lease, leases.CloseWanted(reason, is_taken(lease, attempt, tree)), view)
        elif view.now - view.watching_since >= view.policy.enrol_patience:
            changes += observed(lease, leases.TimePassed(view.last_words.get(lease.id)), view)
    return (*changes, *retire_nodes(tree, view))


def observed(lease: Lease, seen: leases.Observation, view: View) -> tuple[Change, ...]:
    return changed(lease, leases.decide(lease, seen, view.now, view.policy, view.facts), leases.evolve)[1]


# --- the attempt ------------------------------------------------------------------------------------


def advance_attempt(tree: TaskTree, attempt: Attempt, view: View) -> tuple[Attempt, tuple[Change, ...]]:
    limits = attempts.Limits(view.spec.timeout, view.policy, scale.least_nodes(view.spec))
    events: list[AttemptEvent] = []
    now_attempt = attempt
    for seen in observations(tree, attempt, view):
        news = attempts.decide(now_attempt, seen, view.now, limits)
        for event in news:
            now_attempt = attempts.evolve(now_attempt, event)
        events += news
    return changed(attempt, events, attempts.evolve)


def observations(tree: TaskTree, attempt: Attempt, view: View) -> Sequence[attempts.Observation]:
    """In this order: bad news of machines, what people want, good news, the clock."""
    seen: list[attempts.Observation] = []
    seen += losses(tree, attempt, view)
    if tree.job.desired is Desired.CANCEL:
        seen.append(attempts.StopWanted(Outcome.CANCELLED, tree.job.reason or "cancelled"))
    if tree.job.desired is Desired.HOLD:
        seen.append(attempts.StopWanted(Outcome.HELD, tree.job.reason or "held"))
    if tree.task.verdict is Verdict.PRUNED:
        seen.append(attempts.StopWanted(Outcome.CANCELLED, tree.task.reason or "stopped early"))
    gang = gang_ready(tree, attempt, view)
    if gang is not None:
        seen.append(gang)
    seen += newcomers(tree, attempt, view)
    seen.append(attempts.TimePassed())
    return seen


def losses(tree: TaskTree, attempt: Attempt, view: View) -> list[attempts.Observation]:
    seen: list[attempts.Observation] = []
    by_id = {lease.id: lease for lease in tree.leases}
    for lease_id in attempt.leases:
        lease = by_id.get(lease_id)
        if lease is None or lease.phase is LeasePhase.CLOSED:
            seen.append(ended_lease(lease, attempt))
        elif (reason := farewell(lease, attempt, tree, view)) is not None:
            seen.append(attempts.MachineLost(lease.node_id, reason, is_certain=False, lease_id=lease.id))
    return seen


def farewell(lease: Lease, attempt: Attempt, tree: TaskTree, view: View) -> str | None:
    """Why an open lease is as good as lost; None: it is not."""
    if lease.phase is LeasePhase.CLOSING:
        return lease.reason or "the machine is leaving"
    if is_silent(lease.node_id, tree, view):
        return "the node fell silent"
    return eviction(lease, attempt)


def ended_lease(lease: Lease | None, attempt: Attempt) -> attempts.Observation:
    if lease is None:
        return attempts.MachineLost(None, "the machine is gone", is_certain=True)
    reason = lease.reason or "the machine is gone"
    if lease.machine_id is None and attempt.phase is AttemptPhase.PROVISIONING:
        return attempts.StopWanted(Outcome.UNPLACED, reason)
    return attempts.MachineLost(lease.node_id, reason, is_certain=True, lease_id=lease.id)


def is_silent(node_id: NodeId | None, tree: TaskTree, view: View) -> bool:
    node = next((n for n in tree.nodes if n.id == node_id), None)
    if node is None:
        return False
    heard = max(tree.heard.get(node.id, node.enrolled_at), view.watching_since)
    return view.now - heard > view.policy.silence


def gang_ready(tree: TaskTree, attempt: Attempt, view: View) -> attempts.GangReady | None:
    """The barrier: every lease has a node, and no machine of an earlier attempt is left, for it could still run the old
    ranks beside the new ones."""
    if attempt.phase is not AttemptPhase.PROVISIONING:
        return None
    by_id = {lease.id: lease for lease in tree.leases}
    gang = [by_id.get(lease_id) for lease_id in attempt.leases]
    ready = [lease for lease in gang if lease and is_ready(lease)]
    leaving = any(lease.phase is not LeasePhase.CLOSED for lease in tree.leases if lease.id not in attempt.leases)
    nodes = {node.lease_id: node for node in tree.nodes}
    if leaving or len(ready) != len(gang) or any(lease.id not in nodes for lease in ready):
        return None
    master = nodes[ready[0].id]
    ranks = assign_ranks(ready, tree.nodes, ranks_per_node(view.spec))
    return attempts.GangReady(ranks, master.address, master.rendezvous_port)


def newcomers(tree: TaskTree, attempt: Attempt, view: View) -> list[attempts.Observation]:
    """Machines that an elastic attempt ordered while it ran, and that are there now."""
    if attempt.phase is not AttemptPhase.RUNNING or scale.least_nodes(view.spec) is None:
        return []
    members = {rank.node_id for rank in attempt.ranks}
    new = [le for le in tree.leases if le.id in attempt.leases and is_ready(le) and le.node_id not in members]
    if not new:
        return []
    ranks = assign_ranks(new, tree.nodes, ranks_per_node(view.spec))
    first = max(rank.rank for rank in attempt.ranks) + 1
    first_node = max(rank.node_rank for rank in attempt.ranks) + 1
    joined = tuple(replace(r, rank=r.rank + first, node_rank=r.node_rank + first_node) for r in ranks)
    return [attempts.MemberReady(joined)]


def is_ready(lease: Lease) -> bool:
    return lease.phase is LeasePhase.ACTIVE and lease.node_id is not None


# --- the task, the leases, the nodes ------------------------------------------------------------------


def advance_task(tree: TaskTree, attempt: Attempt | None, view: View) -> tuple[Task, tuple[Change, ...]]:
    events = tasks.decide(tree.task, attempt, tree.job.desired, view.spec.retry, view.now, view.policy)
    return changed(tree.task, [with_result(event, tree.progress, view.spec) for event in events], tasks.evolve)


def with_result(event: TaskEvent, progress: Progress | None, spec: JobSpec) -> TaskEvent:
    """The end of a task tells what came of it. A value is that of a task which succeeded."""
    if not isinstance(event, TaskEnded):
        return event
    event = replace(event, metrics=sweeps.finite(progress.metrics if progress is not None else {}))
    objective = spec.sweep.objective if spec.sweep is not None else None
    if objective is None or event.phase is not TaskPhase.SUCCEEDED:
        return event
    curve = progress.curve if progress is not None else None
    value = sweeps.worth(curve, objective)
    if value is None and event.reason is None:
        event = replace(event, reason=sweeps.why_worthless(curve, objective))
    return replace(event, value=value)


def close_reason(lease: Lease, task: Task, attempt: Attempt | None, tree: TaskTree, view: View) -> str | None:
    """Why this lease is to be given back, or None to keep it: a healthy node outlives a failed attempt."""
    if lease.phase not in (LeasePhase.REQUESTED, LeasePhase.ACTIVE):
        return None
    if task.phase.is_terminal:
        return f"the task {task.phase}"
    if is_silent(lease.node_id, tree, view):
        return "the node fell silent"
    if task.attempt_id is not None:
        if not is_left_out(lease, task, attempt):
            return None
        return eviction(lease, attempt) or "the task runs on other machines"
    if lease.phase is LeasePhase.REQUESTED:
        return "the attempt ended before the machine came"
    leaving = eviction(lease, attempt)
    if leaving is not None:
        return leaving
    if tree.job.desired is Desired.HOLD:
        return "the job is held"
    if has_unaccounted_ranks(lease, attempt):
        return "its ranks did not stop in time"
    if task.not_before and task.not_before - view.now > view.policy.keep_for_retry:
        return "the next attempt is far off"
    return None


def given_up(lease: Lease, attempt: Attempt | None, tree: TaskTree, view: View) -> tuple[Change, ...]:
    """A machine that a crew holds, and that goes by its own account: nobody else may be seated there."""
    reason = eviction(lease, attempt) if lease.phase is LeasePhase.ACTIVE else None
    return () if reason is None else observed(lease, leases.CloseWanted(reason, is_taken(lease, attempt, tree)), view)


def is_left_out(lease: Lease, task: Task, attempt: Attempt | None) -> bool:
    return attempt is not None and attempt.id == task.attempt_id and lease.id not in attempt.leases


def eviction(lease: Lease, attempt: Attempt | None) -> str | None:
    """Why the machine goes, as its node said when it gave up its ranks: no next attempt may begin there."""
    evicted = [r for r in attempt.ranks if r.node_id == lease.node_id and r.is_evicted] if attempt is not None else []
    return evicted[0].reason or "the machine is going" if evicted else None


def is_taken(lease: Lease, attempt: Attempt | None, tree: TaskTree) -> bool:
    """A spot machine that goes by its own account: its seller wants it back."""
    is_spot = any(order.id == lease.order_id and order.is_spot for order in tree.orders)
    return is_spot and eviction(lease, attempt) is not None


def has_unaccounted_ranks(lease: Lease, attempt: Attempt | None) -> bool:
    """The attempt ended by its deadline; something of it may live on there. Only the end of the machine is proof."""
    if attempt is None or lease.id not in attempt.leases:
        return False
    return any(r.node_id == lease.node_id and r.state is not RankState.EXITED for r in attempt.ranks)


def retire_nodes(tree: TaskTree, view: View) -> tuple[Change, ...]:
    closed: dict[LeaseId, Lease] = {le.id: le for le in tree.leases if le.phase is LeasePhase.CLOSED}
    changes: list[Change] = []
    for node in tree.nodes:
        if node.task_id == tree.task.id and node.lease_id in closed:
            changes += retire(node, closed[node.lease_id].reason or "the lease is closed", view.now)
    return tuple(changes)


def retire(node: Node, reason: str, now: datetime) -> tuple[Change, ...]:
    return changed(node, leases.retired(node, reason, now), leases.evolve_node)[1]


def held_leases(tree: TaskTree) -> tuple[Lease, ...]:
    """Leases the next attempt can use: their machines are up and their agents known."""
    return tuple(le for le in tree.leases if le.task_id == tree.task.id and is_ready(le))
