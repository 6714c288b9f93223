"""Whole trees: a task with all that hangs on it. One tree or a thousand take the same number of statements."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, bindparam, func, or_, select

from crucible.model.attempt import Attempt
from crucible.model.errors import NotFound
from crucible.model.ids import JobId, LeaseId, NodeId, TaskId
from crucible.model.job import Desired, Job
from crucible.model.lease import Lease, LeasePhase, Node, Order
from crucible.model.task import Task, TaskPhase
from crucible.model.tree import Tally, TaskTree
from crucible.store import entities
from crucible.store import tables as t
from crucible.store.entities import ATTEMPTS, JOBS, LEASES, NODES, ORDERS, TASKS, ranks_of, with_ranks
from crucible.store.mapping import micros, moment
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


_HEAD = select(*JOBS.columns, *TASKS.columns).join(t.tasks, t.tasks.c.job_id == t.jobs.c.id)
_ONE = Sql(_HEAD.where(t.tasks.c.id == bindparam("task_id")))
_TURN = (t.jobs.c.priority.desc(), t.jobs.c.created_at, t.jobs.c.id, t.tasks.c.index)
# Thousands may wait: they are sorted by these few columns, and only the first are read whole.
_NEXT = (
    select(t.tasks.c.id)
    .join(t.jobs, t.jobs.c.id == t.tasks.c.job_id)
    .where(
        t.tasks.c.phase == fixed(TaskPhase.WAITING),
        or_(t.tasks.c.not_before.is_(None), t.tasks.c.not_before <= bindparam("now")),
        t.jobs.c.desired == fixed(Desired.RUN),
        t.jobs.c.status.not_in(fixed_set(t.FINISHED_JOBS)),
        ~Among(t.tasks.c.id, "without"),
    )
    .order_by(*_TURN)
    .limit(bindparam("limit"))
)
_WAITING = Sql(_HEAD.where(t.tasks.c.id.in_(_NEXT)).order_by(*_TURN))
_BELOW_ONE = Branches(lambda column: column == bindparam("task_id"))
_BELOW_SOME = Branches(lambda column: Among(column, "task_ids"))
_LEASES_BY_ID = Sql(select(*LEASES.columns).where(Among(t.leases.c.id, "lease_ids")))
_NODES_BY_LEASE = Sql(_nodes_with_beats().where(Among(t.nodes.c.lease_id, "lease_ids")))


def tree(tx: Transaction, task_id: TaskId) -> TaskTree:
    heads = _heads(tx.rows(_ONE, task_id=task_id))
    if not heads:
        raise NotFound(f"there is no task {task_id}")
    return _grow(tx, heads, _BELOW_ONE, task_id=task_id)[0]


def waiting(tx: Transaction, now: datetime, limit: int, without: Collection[TaskId]) -> list[TaskTree]:
    heads = _heads(tx.rows(_WAITING, now=micros(now), limit=limit, without=as_list(without)))
    if not heads:
        return []
    return _grow(tx, heads, _BELOW_SOME, task_ids=as_list(task.id for _, task in heads))


def _heads(rows: Iterable[Row]) -> Heads:
    width = len(JOBS)
    jobs: dict[str, Job] = {}  # tasks of one job share it
    heads: Heads = []
    for row in rows:
        job = jobs.get(row[0]) or jobs.setdefault(row[0], JOBS.unpack(row[:width]))
        heads.append((job, TASKS.unpack(row[width:])))
    return heads


def _grow(tx: Transaction, heads: Heads, below: Branches, **chosen: str) -> list[TaskTree]:
    attempts = with_ranks(tx.rows(below.attempts, **chosen), tx.rows(below.ranks, **chosen))
    leases = LEASES.unpack_all(tx.rows(below.leases, **chosen))
    nodes = tx.rows(below.nodes, **chosen)
    gone = _ids_of_gone(attempts, leases)
    if gone:
        leases += LEASES.unpack_all(tx.rows(_LEASES_BY_ID, lease_ids=gone))
        nodes += tx.rows(_NODES_BY_LEASE, lease_ids=gone)
    orders = ORDERS.unpack_all(tx.rows(below.orders, **chosen))
    return _assemble(heads, attempts, orders, leases, nodes)


def _ids_of_gone(attempts: Iterable[Attempt], leases: Iterable[Lease]) -> str | None:
    """Leases of the attempts that are closed: the step still has to learn that."""
    found = {lease.id for lease in leases}
    missing: list[LeaseId] = [one for attempt in attempts for one in attempt.leases if one not in found]
    return as_list(missing) if missing else None


def _assemble(
    heads: Heads, attempts: Iterable[Attempt], orders: Iterable[Order], leases: Iterable[Lease], nodes: list[Row]
) -> list[TaskTree]:
    attempt_of = {attempt.task_id: attempt for attempt in attempts}
    orders_of = _by_task(orders)
    leases_of = _by_task(leases)
    nodes_of = _by_task(NODES.unpack(row[:-1]) for row in nodes)
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


def _by_task(leaves: Iterable[L]) -> dict[TaskId, list[L]]:
    found: dict[TaskId, list[L]] = defaultdict(list)
    for leaf in leaves:
        found[leaf.task_id].append(leaf)
    return found


def _heard(nodes: Iterable[Node], heard: dict[str, datetime]) -> dict[NodeId, datetime]:
    return {node.id: heard[node.id] for node in nodes if node.id in heard}


# --- what one node works on -------------------------------------------------------------------------------

_NODE_HEAD = Sql(
    select(*NODES.columns, *LEASES.columns, *JOBS.columns, t.tasks.c.attempt_id)
    .join(t.leases, t.leases.c.id == t.nodes.c.lease_id)
    .join(t.tasks, t.tasks.c.id == t.nodes.c.task_id)
    .join(t.jobs, t.jobs.c.id == t.tasks.c.job_id)
    .where(t.nodes.c.id == bindparam("node_id"))
)


def node_work(tx: Transaction, node_id: NodeId) -> tuple[Node, Lease, Job, Attempt | None]:
    row = tx.row(_NODE_HEAD, node_id=node_id)
    if row is None:
        raise NotFound(f"there is no node {node_id}")
    a, b = len(NODES), len(NODES) + len(LEASES)
    attempt = None if row[-1] is None else entities.attempt(tx, row[-1])
    return NODES.unpack(row[:a]), LEASES.unpack(row[a:b]), JOBS.unpack(row[b:-1]), attempt


# --- a job's tasks, counted --------------------------------------------------------------------------------

_COUNTS = Sql(
    select(t.tasks.c.phase, func.count(), func.max(t.tasks.c.attempts))
    .where(t.tasks.c.job_id == bindparam("job_id"))
    .group_by(t.tasks.c.phase)
)
_REASON = Sql(
    select(t.tasks.c.reason)
    .where(
        t.tasks.c.job_id == bindparam("job_id"),
        t.tasks.c.phase == bindparam("phase"),
        t.tasks.c.reason.is_not(None),
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
    counts = {TaskPhase(phase): n for phase, n, _ in rows}
    reason = next((found for phase in _TELLING if phase in counts and (found := _reason(tx, job_id, phase))), None)
    return Tally(counts, reason, ever_placed=any(attempts > 0 for _, _, attempts in rows))


def _reason(tx: Transaction, job_id: JobId, phase: TaskPhase) -> str | None:
    row = tx.row(_REASON, job_id=job_id, phase=phase.value, limit=1)
    return None if row is None else str(row[0])
