"""The entities and where they lie. Loading one raises NotFound."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from sqlalchemy import Select, bindparam, select

from crucible.model.attempt import Attempt, Rank
from crucible.model.errors import NotFound
from crucible.model.ids import AttemptId, JobId, LeaseId, NodeId, OrderId, TaskId
from crucible.model.job import Job
from crucible.model.lease import Lease, Node, Order
from crucible.model.task import Task
from crucible.store import tables as t
from crucible.store.mapping import Rows, moment
from crucible.store.sql import Row, Sql, Transaction

T = TypeVar("T")

JOBS = Rows(Job, t.jobs, kept={"cost_running_microusd": 0})
TASKS = Rows(Task, t.tasks)
ATTEMPTS = Rows(Attempt, t.attempts, apart=("ranks",))
RANKS = Rows(Rank, t.ranks)
ORDERS = Rows(Order, t.orders)
LEASES = Rows(Lease, t.leases)
NODES = Rows(Node, t.nodes)


@dataclass(frozen=True, slots=True)
class Kind:
    name: str  # in events and messages
    rows: Rows[Any]


# In the order in which new rows may refer to one another.
KINDS: dict[type, Kind] = {
    Job: Kind("job", JOBS),
    Task: Kind("task", TASKS),
    Order: Kind("order", ORDERS),
    Lease: Kind("lease", LEASES),
    Node: Kind("node", NODES),
    Attempt: Kind("attempt", ATTEMPTS),
}


def by_id(rows: Rows[Any]) -> Sql:
    return Sql(select(*rows.columns).where(rows.table.c.id == bindparam("id")))


_JOB = Sql(select(t.jobs.c.removed_at, *JOBS.columns).where(t.jobs.c.id == bindparam("id")))
_TASK, _ATTEMPT = by_id(TASKS), by_id(ATTEMPTS)
_ORDER, _LEASE, _NODE = by_id(ORDERS), by_id(LEASES), by_id(NODES)
_LEASES_OF_ORDER = Sql(
    select(*LEASES.columns).where(t.leases.c.order_id == bindparam("order_id")).order_by(t.leases.c.index)
)


def job(tx: Transaction, job_id: JobId) -> Job:
    row = tx.row(_JOB, id=job_id)
    if row is None:
        raise _missing("job", job_id)
    if row[0] is not None:
        raise NotFound(f"job {job_id} was removed on {moment(row[0]):%Y-%m-%d}; only what it cost is kept")
    return JOBS.unpack(row[1:])


def task(tx: Transaction, task_id: TaskId) -> Task:
    return _found(tx, _TASK, TASKS, "task", task_id)


def order(tx: Transaction, order_id: OrderId) -> tuple[Order, tuple[Lease, ...]]:
    found = _found(tx, _ORDER, ORDERS, "order", order_id)
    return found, LEASES.unpack_all(tx.rows(_LEASES_OF_ORDER, order_id=order_id))


def lease(tx: Transaction, lease_id: LeaseId) -> Lease:
    return _found(tx, _LEASE, LEASES, "lease", lease_id)


def node(tx: Transaction, node_id: NodeId) -> Node:
    return _found(tx, _NODE, NODES, "node", node_id)


def attempt(tx: Transaction, attempt_id: AttemptId) -> Attempt:
    row = tx.row(_ATTEMPT, id=attempt_id)
    if row is None:
        raise _missing("attempt", attempt_id)
    return with_ranks([row], tx.rows(_RANKS_OF_ATTEMPT, id=attempt_id))[0]


def _found(tx: Transaction, sql: Sql, rows: Rows[T], kind: str, id_: str) -> T:
    row = tx.row(sql, id=id_)
    if row is None:
        raise _missing(kind, id_)
    return rows.unpack(row)


def _missing(kind: str, id_: str) -> NotFound:
    return NotFound(f"there is no {kind} {id_}")


# --- ranks: the members of an attempt in its present generation ------------------------------------------


def ranks_of(attempts: Select[Any]) -> Select[Any]:
    """The ranks of `attempts`, a selection of attempts' columns; the attempt's id comes first."""
    return (
        attempts.with_only_columns(t.ranks.c.attempt_id, *RANKS.columns)
        .join(t.ranks, (t.ranks.c.attempt_id == t.attempts.c.id) & (t.ranks.c.generation == t.attempts.c.generation))
        .order_by(None)
        .order_by(t.ranks.c.attempt_id, t.ranks.c.rank)
    )


_RANKS_OF_ATTEMPT = Sql(ranks_of(select(*ATTEMPTS.columns).where(t.attempts.c.id == bindparam("id"))))


def with_ranks(attempts: Sequence[Row], ranks: Sequence[Row]) -> list[Attempt]:
    """Attempts from their rows and the rows of `ranks_of` them."""
    members = {of: tuple(RANKS.unpack(row[1:]) for row in rows) for of, rows in groupby(ranks, key=lambda r: r[0])}
    return [ATTEMPTS.unpack(row, ranks=members.get(row[0], ())) for row in attempts]
