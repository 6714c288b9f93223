"""Whole trees: a task with all that hangs on it. One tree or a thousand take the same number of statements."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, bindparam, func, or_, select

from crucible.model.attempt import Attempt
from crucible.model.errors import NotFound
from crucible.model.ids import JobId, LeaseId, NodeId, TaskId
from crucible.model.job import Desired, Job
from crucible.model.lease import Lease, LeasePhase, Node, Order
from crucible.model.task import Task, TaskKind, TaskPhase, Verdict
from crucible.model.tree import Tally, TaskTree
from crucible.store import entities
from crucible.store import tables as t
from crucible.store.entities import ATTEMPTS, JOBS, LEASES, NODES, ORDERS, TASKS, ranks_of, with_ranks
from crucible.store.mapping import micros, moment
from crucible.store.records import task_progress
from crucible.store.sql import Among, Row, Sql, Transaction, as_list, fixed, fixed_set

T = TypeVar("T")

Choice = Callable[[ColumnElement[str]], ColumnElement[bool]]
Heads = list[tuple[Job, Task]]

OPEN_LEASE = t.leases.c.phase != fixed(LeasePhase.CLOSED)
UNSETTLED = t.orders.c.phase.in_(fixed_set(t.UNSETTLED_ORDERS))


class Branches:
    """The statements that read everything below the chosen tasks."""

    def __init__(self, chosen: Choice) -> None:
        newer = t.attempts.alias("newer")
        newest = select(func.max(newer.c.number)).where(newer.c.task_id == t.attempts.c.task_id).scalar_subquery()
        attempts = select(*ATTEMPTS.columns).where(chosen(t.attempts.c.task_id), t.attempts.c.number == newest)
        has_open = select(t.leases.c.id).where(t.leases.c.order_id == t.orders.c.id, OPEN_LEASE).exists()
        self.attempts = Sql(attempts)
        self.ranks = Sql(ranks_of(attempts))
        self.leases = Sql(select(*LEASES.columns).where(chosen(t.leases.c.task_id), OPEN_LEASE))
        self.orders = Sql(select(*ORDERS.columns).where(chosen(t.orders.c.task_id), or_(UNSETTLED, has_open)))
        self.nodes = Sql(_nodes_with_beats().where(chosen(t.leases.c.task_id), OPEN_LEASE))


def _nodes_with_beats() -> Any:
    return (
        select(*NODES.columns, t.heartbeats.c.at)
        .join(t.leases, t.leases.c.id == t.nodes.c.lease_id)
        .join(t.heartbeats, t.heartbeats.c.node_id == t.nodes.c.id, isouter=True)
    )


HEAD = select(*JOBS.columns, *TASKS.columns).join(t.tasks, t.tasks.c.job_id == t.jobs.c.id)
_ONE = Sql(HEAD.where(t.tasks.c.id == bindparam("task_id")))
TURN = (t.jobs.c.priority.desc(), t.jobs.c.created_at, t.jobs.c.id, t.tasks.c.index)
# Thousands may wait: they are sorted by these few columns, and only the first are read whole.
_NEXT = (
    select(t.tasks.c.id)
    .join(t.jobs, t.jobs.c.id == t.tasks.c.job_id)
    .where(
        t.tasks.c.phase == fixed(TaskPhase.WAITING),
        t.tasks.c.kind == fixed(TaskKind.ALONE),
        or_(t.tasks.c.not_before.is_(None), t.tasks.c.not_before <= bindparam("now")),
        t.jobs.c.desired == fixed(Desired.RUN),
        t.jobs.c.status.not_in(fixed_set(t.FINISHED_JOBS)),
        ~Among(t.tasks.c.id, "without"),
    )
    .order_by(*TURN)
    .limit(bindparam("limit"))
)
_WAITING = Sql(HEAD.where(t.tasks.c.id.in_(_NEXT)).order_by(*TURN))
_BELOW_ONE = Branches(lambda column: column == bindparam("task_id"))
BELOW_SOME = Branches(lambda column: Among(column, "task_ids"))
_LEASES_BY_ID = Sql(select(*LEASES.columns).where(Among(t.leases.c.id, "lease_ids")))
_NODES_BY_LEASE = Sql(_nodes_with_beats().where(Among(t.nodes.c.lease_id, "lease_ids")))
_ORDERS_BY_LEASE = Sql(
    select(*ORDERS.columns)
    .join(t.leases, t.leases.c.order_id == t.orders.c.id)
    .where(Among(t.leases.c.id, "lease_ids"))
    .distinct()
)


def tree(tx: Transaction, task_id: TaskId) -> TaskTree:
    heads = heads_of(tx.rows(_ONE, task_id=task_id))
    if not heads:
        raise NotFound(f"there is no task {task_id}")
    whole = grow(tx, heads, _BELOW_ONE, task_id=task_id)[0]
    return replace(whole, progress=task_progress(tx, task_id))


def waiting(tx: Transaction, now: datetime, limit: int, without: Collection[TaskId]) -> list[TaskTree]:
    heads = heads_of(tx.rows(_WAITING, now=micros(now), limit=limit, without=as_list(without)))
    if not heads:
        return []
    return grow(tx, heads, BELOW_SOME, task_ids=as_list(task.id for _, task in heads))


def heads_of(rows: Iterable[Row]) -> Heads:
    width = len(JOBS)
    jobs: dict[str, Job] = {}  # tasks of one job share it
    heads: Heads = []
    for row in rows:
        job = jobs.get(row[0]) or jobs.setdefault(row[0], JOBS.unpack(row[:width]))
        heads.append((job, TASKS.unpack(row[width:])))
    return heads


def grow(tx: Transaction, heads: Heads, below: Branches, **chosen: str) -> list[TaskTree]:
    attempts = with_ranks(tx.rows(below.attempts, **chosen), tx.rows(below.ranks, **chosen))
    leases: tuple[Lease, ...] = ()
    nodes: list[Row] = []
    orders: tuple[Order, ...] = ()
    if any(task.kind is not TaskKind.SEATED for _, task in heads):  # those buy nothing: it is all their crews'
        leases = LEASES.unpack_all(tx.rows(below.leases, **chosen))
        nodes = list(tx.rows(below.nodes, **chosen))
        orders = ORDERS.unpack_all(tx.rows(below.orders, **chosen))
    others = _ids_of_others(attempts, leases)
    if others:
        leases += LEASES.unpack_all(tx.rows(_LEASES_BY_ID, lease_ids=others))
        nodes += tx.rows(_NODES_BY_LEASE, lease_ids=others)
        orders += ORDERS.unpack_all(tx.rows(_ORDERS_BY_LEASE, lease_ids=others))
    return _assemble(heads, attempts, orders, leases, nodes)


def _ids_of_others(attempts: Iterable[Attempt], leases: Iterable[Lease]) -> str | None:
    """Leases of the attempts that are closed, which the step still has to learn, or that a crew holds."""
    found = {lease.id for lease in leases}
    missing: list[LeaseId] = [one for attempt in attempts for one in attempt.leases if one not in found]
    return as_list(missing) if missing else None


def _assemble(
    heads: Heads, attempts: Iterable[Attempt], orders: Iterable[Order], leases: Iterable[Lease], nodes: list[Row]
) -> list[TaskTree]:
    attempt_of = {attempt.task_id: attempt for attempt in attempts}
    leases = tuple(leases)
    users = _users_of(attempt_of.values(), leases)
    buyers: dict[str, set[TaskId]] = defaultdict(set)
    for lease in leases:
        buyers[lease.order_id] |= users[lease.id]
    orders_of = _by_task(orders, buyers)
    leases_of = _by_task(leases, users)
    made = [NODES.unpack(row[:-1]) for row in nodes]
    nodes_of = _by_task(made, {node.id: users[node.lease_id] for node in made})
    heard = {row[0]: moment(row[-1]) for row in nodes if row[-1] is not None}
    return [
        TaskTree(
            job=job,
            task=task,
            attempt=attempt_of.get(task.id),
            orders=tuple(sorted(orders_of[task.id], key=lambda order: (order.created_at, order.id))),
            leases=tuple(sorted(leases_of[task.id], key=lambda lease: (lease.created_at, lease.order_id, lease.index))),
            nodes=tuple(sorted(nodes_of[task.id], key=lambda node: (node.enrolled_at, node.id))),
            heard=_heard(nodes_of[task.id], heard),
        )
        for job, task in heads
    ]


L = TypeVar("L", Order, Lease, Node)


def _users_of(attempts: Iterable[Attempt], leases: Iterable[Lease]) -> dict[str, set[TaskId]]:
    """Tasks by lease: who holds it, and whose attempt is on it."""
    found: dict[str, set[TaskId]] = {lease.id: {lease.task_id} for lease in leases}
    for attempt in attempts:
        for lease_id in attempt.leases:
            found.setdefault(lease_id, set()).add(attempt.task_id)
    return found


def _by_task(leaves: Iterable[L], users: Mapping[str, set[TaskId]]) -> dict[TaskId, list[L]]:
    found: dict[TaskId, dict[str, L]] = defaultdict(dict)
    for leaf in leaves:
        for task_id in users.get(leaf.id, {leaf.task_id}):
            found[task_id][leaf.id] = leaf
    return defaultdict(list, {task_id: list(leaves.values()) for task_id, leaves in found.items()})


def _heard(nodes: Iterable[Node], heard: dict[str, datetime]) -> dict[NodeId, datetime]:
    return {node.id: heard[node.id] for node in nodes if node.id in heard}


# --- a job's tasks, counted --------------------------------------------------------------------------------

_COUNTS = Sql(
    select(t.tasks.c.phase, t.tasks.c.kind, t.tasks.c.verdict, func.count(), func.max(t.tasks.c.attempts))
    .where(t.tasks.c.job_id == bindparam("job_id"))
    .group_by(t.tasks.c.phase, t.tasks.c.kind, t.tasks.c.verdict)
)
_REASON = Sql(
    select(t.tasks.c.reason)
    .where(
        t.tasks.c.job_id == bindparam("job_id"),
        t.tasks.c.phase == bindparam("phase"),
        t.tasks.c.kind != fixed(TaskKind.CREW),
        t.tasks.c.reason.is_not(None),
        or_(t.tasks.c.verdict.is_(None), t.tasks.c.verdict != fixed(Verdict.SKIPPED)),
    )
    .order_by(t.tasks.c.index)
    .limit(bindparam("limit"))
)
# Whose reason is the job's: what went wrong before what is still missing.
_TELLING = (TaskPhase.FAILED, TaskPhase.CANCELLED, TaskPhase.WAITING)


def tally(tx: Transaction, job_id: JobId) -> Tally:
    rows = tx.rows(_COUNTS, job_id=job_id)
    if not rows:
        entities.job(tx, job_id)  # raises NotFound
    counts: Counter[TaskPhase] = Counter()
    skipped = crews = steps = 0
    for phase, kind, verdict, n, _ in rows:
        if kind == TaskKind.CREW:
            crews += 0 if TaskPhase(phase).is_terminal else n
            continue
        counts[TaskPhase(phase)] += n
        steps += n if kind == TaskKind.STEP and not TaskPhase(phase).is_terminal else 0
        skipped += n if verdict == Verdict.SKIPPED else 0
    reason = next((found for phase in _TELLING if phase in counts and (found := _reason(tx, job_id, phase))), None)
    return Tally(counts, reason, any(_has_begun(*row) for row in rows), skipped, crews, steps)


def _has_begun(phase: str, kind: str, verdict: str | None, n: int, attempts: int) -> bool:
    """A step has no attempts of its own."""
    is_step_at_work = kind == TaskKind.STEP and phase not in (TaskPhase.WAITING, TaskPhase.CANCELLED)
    return attempts > 0 or is_step_at_work


def _reason(tx: Transaction, job_id: JobId, phase: TaskPhase) -> str | None:
    row = tx.row(_REASON, job_id=job_id, phase=phase.value, limit=1)
    return None if row is None else str(row[0])
