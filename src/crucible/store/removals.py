"""Carrying out what was decided: the rows of jobs go, a bounded number at a time, children before parents. What was
charged stays, and so do the rows that say for what: the job, its orders and leases, and the tasks and attempts that
those and its allocations name, emptied of everything else."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import takewhile
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    null,
    or_,
    select,
    tuple_,
    update,
)

from crucible.model.alert import DeliveryState
from crucible.model.budget import Scope
from crucible.model.ids import Digest, JobId, TaskId
from crucible.model.retention import Kept, Removal
from crucible.ports.streams import CHANNELS
from crucible.store import record_tables as r
from crucible.store import tables as t
from crucible.store.account_tables import audit, notices
from crucible.store.alert_tables import deliveries, delivery_notices
from crucible.store.budget_tables import budgets
from crucible.store.health_tables import findings, job_health
from crucible.store.mapping import Rows, micros
from crucible.store.retention import count
from crucible.store.retention_tables import job_sources, kept_jobs, removals, retention
from crucible.store.sql import Among, Sql, Transaction, as_list, fixed

_J, _T, _A = t.jobs.c, t.tasks.c, t.attempts.c

# --- what was decided ------------------------------------------------------------------------------------------------

REMOVALS = Rows(Removal, removals, apart=("lineage",))
_DECIDED = (
    select(*REMOVALS.columns, _J.lineage)
    .join(t.jobs, _J.id == removals.c.job_id)
    .order_by(removals.c.job_id, removals.c.what)
    .limit(bindparam("limit"))
)
_FIRST, _NEXT = Sql(_DECIDED), Sql(_DECIDED.where(removals.c.job_id > bindparam("after")))
_TASKS = (
    select(_T.job_id, _T.index, _T.id)
    .where(Among(_T.job_id, "ids"))
    .order_by(_T.job_id, _T.index)
    .limit(bindparam("limit"))
)
_ABOVE = tuple_(_T.job_id, _T.index) > tuple_(bindparam("after_job"), bindparam("after_index"))
_ALL_TASKS, _MORE_TASKS = Sql(_TASKS), Sql(_TASKS.where(_ABOVE))
_END = Sql(delete(removals).where(Among(removals.c.job_id, "ids"), removals.c.what == bindparam("of_what")))


def decided(tx: Transaction, after: JobId | None, limit: int) -> Sequence[Removal]:
    rows = tx.rows(_FIRST, limit=limit) if after is None else tx.rows(_NEXT, after=after, limit=limit)
    return tuple(REMOVALS.unpack(row[:-1], lineage=JobId(row[-1])) for row in rows)


def tasks_of(
    tx: Transaction, job_ids: Sequence[JobId], after: tuple[JobId, int] | None, limit: int
) -> Sequence[tuple[JobId, int, TaskId]]:
    values: dict[str, Any] = {"ids": as_list(job_ids), "limit": limit}
    if after is None:
        rows = tx.rows(_ALL_TASKS, **values)
    else:
        rows = tx.rows(_MORE_TASKS, **values, after_job=after[0], after_index=after[1])
    return [(JobId(job_id), index, TaskId(task_id)) for job_id, index, task_id in rows]


# --- rows of jobs ----------------------------------------------------------------------------------------------------


_SEGMENTS = Sql(delete(r.stream_segments).where(Among(r.stream_segments.c.stream, "streams")))


def forget_streams(tx: Transaction, tasks: Collection[TaskId]) -> None:
    tx.run(_SEGMENTS, {"streams": as_list(f"{task}/{channel}" for task in tasks for channel in CHANNELS)})


def _of_jobs(column: Any) -> ColumnElement[bool]:
    return Among(column, "ids")


def _some(table: Table, condition: ColumnElement[bool], key: Sequence[Column[Any]] = ()) -> Sql:
    """A delete of at most `limit` rows."""
    columns = list(key or table.primary_key.columns)
    found: Select[Any] = select(*columns).where(condition).limit(bindparam("limit"))
    return Sql(delete(table).where(tuple_(*columns).in_(found) if len(columns) > 1 else columns[0].in_(found)))


_THEIR_TASKS = select(_T.id).where(_of_jobs(_T.job_id))
_THEIR_ATTEMPTS = select(_A.id).where(_of_jobs(_A.job_id))
_THEIR_NODES = select(t.nodes.c.id).where(t.nodes.c.task_id.in_(_THEIR_TASKS))
# Whoever has a column `job_id` and is not here is named in `personal.STAYS`; a test sees to that.
OF_JOBS = (
    t.job_events,
    t.events,
    t.progress,
    r.job_artifacts,
    r.shards,
    r.outputs,
    r.plans,
    r.step_results,
    t.idempotency_keys,
    kept_jobs,
    job_sources,
    findings,
    job_health,
)
_HISTORY = tuple(_some(table, _of_jobs(table.c.job_id)) for table in (t.job_events, t.events))
_NO_ALLOCATION = ~exists().where(r.allocations.c.attempt_id == _A.id)
_NO_TRACE = ~or_(
    exists().where(_A.task_id == _T.id),
    exists().where(t.orders.c.task_id == _T.id),
    exists().where(t.leases.c.task_id == _T.id),
    exists().where(r.allocations.c.task_id == _T.id),
)
_EVERYTHING = (
    *(_some(table, _of_jobs(table.c.job_id)) for table in OF_JOBS),
    _some(budgets, (budgets.c.scope == fixed(Scope.JOB)) & _of_jobs(budgets.c.name)),
    _some(t.ranks, t.ranks.c.attempt_id.in_(_THEIR_ATTEMPTS)),
    _some(t.heartbeats, t.heartbeats.c.node_id.in_(_THEIR_NODES)),
    _some(t.nodes, t.nodes.c.id.in_(_THEIR_NODES)),
    _some(t.attempts, _of_jobs(_A.job_id) & _NO_ALLOCATION),
    _some(t.tasks, _of_jobs(_T.job_id) & _NO_TRACE),
)


def _emptied(table: Table, is_full: ColumnElement[bool], values: dict[str, Any]) -> Sql:
    found = select(table.c.id).where(_of_jobs(table.c.job_id), is_full).limit(bindparam("limit"))
    return Sql(update(table).where(table.c.id.in_(found)).values(values))


_EMPTY_TASK = {"params": null(), "metrics": "{}", "outputs": null(), "reason": null()}
_EMPTY = (
    _emptied(
        t.tasks,
        or_(_T.params.is_not(None), _T.metrics != "{}", _T.outputs.is_not(None), _T.reason.is_not(None)),
        _EMPTY_TASK,
    ),
    _emptied(t.orders, or_(t.orders.c.body != "{}", t.orders.c.reason.is_not(None)), {"body": "{}", "reason": null()}),
    _emptied(t.attempts, _A.reason.is_not(None), {"reason": null()}),
    _emptied(t.leases, t.leases.c.reason.is_not(None), {"reason": null()}),
)
_STEPS = {Kept.LOGS: (), Kept.EVENTS: _HISTORY, Kept.JOBS: (*_EVERYTHING, *_EMPTY)}
# A lineage keeps its checkpoints as long as anybody may go on from them.
_CHECKPOINTS = _some(r.checkpoints, _of_jobs(r.checkpoints.c.lineage))


def remove_rows(tx: Transaction, what: Kept, job_ids: Sequence[JobId], now: datetime, limit: int) -> bool:
    """Parents are tried only when their children are gone: a step that was cut short ends the turn. With the last rows
    the decision goes too."""
    values = {"ids": as_list(job_ids), "limit": limit}
    is_done = all(tx.run(step, values) < limit for step in _STEPS[what])
    if is_done:
        count(tx, {what: tx.run(_END, {"ids": as_list(job_ids), "of_what": what.value})}, now)
    return is_done


def forget_checkpoints(tx: Transaction, lineages: Sequence[JobId], limit: int) -> bool:
    return tx.run(_CHECKPOINTS, {"ids": as_list(lineages), "limit": limit}) < limit


# --- lines of their own ----------------------------------------------------------------------------------------------


def _oldest(table: Table, at: Column[Any]) -> Sql:
    key = next(iter(table.primary_key.columns))
    found = select(key).where(at < bindparam("before")).order_by(at).limit(bindparam("limit"))
    return Sql(delete(table).where(key.in_(found)))


_OLD_MESSAGES = (
    select(deliveries.c.id)
    .where(deliveries.c.created_at < bindparam("before"), deliveries.c.state != fixed(DeliveryState.WAITING))
    .order_by(deliveries.c.created_at)
    .limit(bindparam("limit"))
)
_PRUNE = {
    Kept.PLANS: (_oldest(r.plans, r.plans.c.created_at),),
    Kept.NOTICES: (
        Sql(delete(delivery_notices).where(delivery_notices.c.delivery_id.in_(_OLD_MESSAGES))),
        Sql(delete(deliveries).where(deliveries.c.id.in_(_OLD_MESSAGES))),
        _oldest(notices, notices.c.at),
    ),
}
_FIRST_LINES = Sql(select(audit.c.seq, audit.c.at, audit.c.digest).order_by(audit.c.seq).limit(bindparam("limit")))
_DROP_LINES = Sql(delete(audit).where(audit.c.seq <= bindparam("last")))
_ANCHOR = Sql(update(retention).where(retention.c.what == Kept.AUDIT.value).values(anchor=bindparam("digest")))


def prune(tx: Transaction, what: Kept, before: datetime, now: datetime, limit: int) -> int:
    if what is Kept.AUDIT:
        gone = _prune_audit(tx, micros(before), limit)
    else:
        gone = max(tx.run(step, {"before": micros(before), "limit": limit}) for step in _PRUNE[what])
    count(tx, {what: gone}, now)
    return gone


def _prune_audit(tx: Transaction, before: int, limit: int) -> int:
    """From its beginning, without a gap: what the first line that is left seals is remembered."""
    gone = list(takewhile(lambda row: row[1] < before, tx.rows(_FIRST_LINES, limit=limit)))
    if gone:
        tx.run(_ANCHOR, {"digest": gone[-1][2]})
        tx.run(_DROP_LINES, {"last": gone[-1][0]})
    return len(gone)


# --- code ------------------------------------------------------------------------------------------------------------

_PACKAGES = Sql(select(_J.code_digest).where(Among(_J.code_digest, "digests"), _J.code_digest.is_not(None)).distinct())


def needed_packages(tx: Transaction, digests: Collection[Digest]) -> frozenset[Digest]:
    return frozenset(Digest(row[0]) for row in tx.rows(_PACKAGES, digests=as_list(digests)))
