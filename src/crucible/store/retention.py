"""How long things are kept, what somebody wants to keep, and which jobs are old enough to go. Nothing is removed here:
that it will be is decided, in the transaction that makes it so for everybody who looks."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    null,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.audit import AuditEntry
from crucible.model.errors import InvariantBroken
from crucible.model.ids import JobId, UserId
from crucible.model.retention import Kept, KeptJob, Retained
from crucible.store import entities
from crucible.store import tables as t
from crucible.store.account_tables import audit, notices
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows, micros, moment
from crucible.store.money_tables import usage
from crucible.store.record_tables import plans
from crucible.store.retention_tables import job_sources, kept_jobs, removals, retention
from crucible.store.sql import Among, Sql, Transaction, as_list
from crucible.store.trees import OPEN_LEASE

RETAINED = Rows(Retained, retention)
KEPT = Rows(KeptJob, kept_jobs)

_R, _J, _K = retention.c, t.jobs.c, kept_jobs.c

# --- the policy -----------------------------------------------------------------------------------------------------

_ALL = Sql(select(*RETAINED.columns).order_by(_R.what))


def _upserting(*columns: str) -> Sql:
    new = upsert(retention).values({name: bindparam(name) for name in ("what", *columns)})
    return Sql(new.on_conflict_do_update(index_elements=["what"], set_={name: new.excluded[name] for name in columns}))


_SET = _upserting("days")
_NEW_HORIZON = upsert(retention).values(what=bindparam("what"), horizon=bindparam("horizon"))
_OPEN = Sql(
    _NEW_HORIZON.on_conflict_do_update(
        index_elements=["what"],
        set_={"horizon": _NEW_HORIZON.excluded.horizon},
        where=or_(_R.horizon.is_(None), _R.horizon < _NEW_HORIZON.excluded.horizon),
    )
)
_NEW_RUN = upsert(retention).values(what=bindparam("what"), ran_at=bindparam("ran_at"), removed=bindparam("more"))
_RAN = Sql(
    _NEW_RUN.on_conflict_do_update(
        index_elements=["what"],
        set_={"ran_at": _NEW_RUN.excluded.ran_at, "removed": _R.removed + _NEW_RUN.excluded.removed},
    )
)


def retained(tx: Transaction) -> Sequence[Retained]:
    return RETAINED.unpack_all(tx.rows(_ALL))


def set_days(tx: Transaction, what: Kept, days: int | None, entry: AuditEntry) -> None:
    tx.run(_SET, {"what": what.value, "days": days})
    write_audit(tx, entry)


def open_horizon(tx: Transaction, horizons: Mapping[Kept, datetime]) -> None:
    for what, horizon in horizons.items():
        tx.run(_OPEN, {"what": what.value, "horizon": micros(horizon)})


def count(tx: Transaction, removed: Mapping[Kept, int], now: datetime) -> None:
    for what, more in removed.items():
        tx.run(_RAN, {"what": what.value, "ran_at": micros(now), "more": more})


# --- what somebody wants to keep -------------------------------------------------------------------------------------

_KEEP = Sql(upsert(kept_jobs).values(KEPT.parameters()).on_conflict_do_nothing(index_elements=["job_id"]))
_UNKEEP = Sql(delete(kept_jobs).where(_K.job_id == bindparam("old_id")))
_KEPT = select(*KEPT.columns).order_by(_K.at.desc(), _K.job_id).limit(bindparam("limit"))
_ALL_KEPT, _KEPT_OF = Sql(_KEPT), Sql(_KEPT.where(_K.user_id == bindparam("user_id")))
_GONE = Sql(select(_J.logs_removed_at, _J.events_removed_at).where(_J.id == bindparam("id")))
_LOCK = Sql(select(_J.id).where(_J.id == bindparam("id")).with_for_update())


def keep(tx: Transaction, kept: KeptJob, entry: AuditEntry) -> None:
    tx.rows(_LOCK, id=kept.job_id)  # whoever removes it waits for us, or we for them
    entities.job(tx, kept.job_id)
    if tx.run(_KEEP, KEPT.pack(kept)):
        write_audit(tx, entry)


def unkeep(tx: Transaction, job_id: JobId, entry: AuditEntry) -> None:
    if tx.run(_UNKEEP, {"old_id": job_id}):
        write_audit(tx, entry)


def kept_by(tx: Transaction, user_id: UserId | None, limit: int) -> Sequence[KeptJob]:
    if user_id is None:
        return KEPT.unpack_all(tx.rows(_ALL_KEPT, limit=limit))
    return KEPT.unpack_all(tx.rows(_KEPT_OF, user_id=user_id, limit=limit))


def when_removed(tx: Transaction, job_id: JobId) -> Mapping[Kept, datetime]:
    row = tx.row(_GONE, id=job_id)
    if row is None:
        return {}
    return {what: moment(at) for what, at in zip((Kept.LOGS, Kept.EVENTS), row, strict=True) if at is not None}


# --- which jobs are old enough ---------------------------------------------------------------------------------------

_BEFORE: ColumnElement[int] = bindparam("before")
# Its column: set when it was decided that this of a job goes.
_MARKS = {Kept.LOGS: _J.logs_removed_at, Kept.EVENTS: _J.events_removed_at, Kept.JOBS: _J.removed_at}


def _is_kept(jobs: Any) -> ColumnElement[bool]:
    return exists().where(_K.job_id == jobs.c.id)


def _is_asked_for(other: Any) -> ColumnElement[bool]:
    """Whether a job may still want something of another one: it is there, and neither old nor forgotten."""
    is_young = or_(other.c.finished_at.is_(None), other.c.finished_at >= _BEFORE, _is_kept(other))
    return and_(other.c.removed_at.is_(None), is_young)


def _is_needed() -> ColumnElement[bool]:
    """By a job that goes on from it, by its workflow, or by a job that was given what it left; and while anything of it
    is still paid for."""
    later, above, given = t.jobs.alias("later"), t.jobs.alias("above"), t.jobs.alias("given")
    has_its = job_sources.join(given, given.c.id == job_sources.c.job_id)
    return or_(
        exists().where(later.c.origin == _J.id, later.c.origin.is_not(None), _is_asked_for(later)),
        exists().where(above.c.id == _J.parent, _is_asked_for(above)),
        exists().select_from(has_its).where(job_sources.c.source == _J.id, _is_asked_for(given)),
        exists().where(t.leases.c.job_id == _J.id, OPEN_LEASE),
        exists().where(usage.c.job_id == _J.id, usage.c.to_at.is_(None)),
    )


def _due(what: Kept) -> Select[Any]:
    """Each condition is one of the index that it is read by."""
    found = select(_J.id).where(
        _J.finished_at.is_not(None),
        _J.removed_at.is_(None),
        _MARKS[what].is_(None),
        _J.finished_at < _BEFORE,
        ~_is_kept(t.jobs),
    )
    return found.where(~_is_needed()) if what is Kept.JOBS else found


_OLDEST = {
    what: Sql(_due(what).order_by(_J.finished_at, _J.id).limit(bindparam("limit")).with_for_update()) for what in _MARKS
}
# Asked again when the rows are ours: until then somebody may have begun to need one.
_STILL = {what: Sql(_due(what).where(Among(_J.id, "ids"))) for what in _MARKS}
_WITHOUT_LOGS: dict[str, Any] = {"logs_removed_at": bindparam("now")}
_WITHOUT_EVENTS: dict[str, Any] = {"events_removed_at": bindparam("now")}
# What a report of costs needs stays: whose it was, what it was, where it ran, when, and what it cost.
_STUB: dict[str, Any] = {
    **_WITHOUT_LOGS,
    **_WITHOUT_EVENTS,
    "removed_at": bindparam("now"),
    "spec_yaml": "",
    "entrypoint_uri": null(),
    "dataset_uri": null(),
    "code_digest": null(),
    "inputs": "[]",
    "reason": null(),
}
_WRITES = {Kept.LOGS: _WITHOUT_LOGS, Kept.EVENTS: _WITHOUT_EVENTS, Kept.JOBS: _STUB}
_MARK = {what: Sql(update(t.jobs).where(Among(_J.id, "ids")).values(values)) for what, values in _WRITES.items()}
_DECIDE = Sql(
    upsert(removals)
    .values(job_id=bindparam("job_id"), what=bindparam("what"), at=bindparam("at"))
    .on_conflict_do_nothing(index_elements=["job_id", "what"])
)


def mark_old(tx: Transaction, what: Kept, before: datetime, now: datetime, limit: int) -> int:
    found = tx.rows(_OLDEST[what], before=micros(before), limit=limit)
    if found and tx.is_shared:
        found = tx.rows(_STILL[what], before=micros(before), ids=as_list(row[0] for row in found))
    mark(tx, what, [JobId(row[0]) for row in found], now)
    return len(found)


def mark(tx: Transaction, what: Kept, job_ids: Sequence[JobId], now: datetime) -> None:
    """From now on nobody finds it; what is left to do follows from the rows that are written here."""
    if job_ids:
        tx.run(_MARK[what], {"ids": as_list(job_ids), "now": micros(now)})
        tx.run_many(_DECIDE, [{"job_id": job_id, "what": what.value, "at": micros(now)} for job_id in job_ids])


# --- what is due, counted --------------------------------------------------------------------------------------------

_LINES = {Kept.PLANS: plans.c.created_at, Kept.NOTICES: notices.c.at}
_SOME = {what: _due(what).limit(bindparam("limit")) for what in _MARKS} | {
    what: select(at).where(at < _BEFORE).limit(bindparam("limit")) for what, at in _LINES.items()
}
# Lines of the audit log are in the order of their writing.
_FIRST_LINES = select(audit.c.at).order_by(audit.c.seq).limit(bindparam("limit")).subquery()
_COUNTS = {what: Sql(select(func.count()).select_from(some.subquery())) for what, some in _SOME.items()} | {
    Kept.AUDIT: Sql(select(func.count()).select_from(_FIRST_LINES).where(_FIRST_LINES.c.at < _BEFORE))
}


def old(tx: Transaction, what: Kept, before: datetime, limit: int) -> int:
    if what not in _COUNTS:
        raise InvariantBroken(f"{what} are not in the database")
    return int(tx.rows(_COUNTS[what], before=micros(before), limit=limit)[0][0])


_OF_LINEAGE = union_all(
    select(_J.id).where(_J.id == bindparam("lineage"), _J.removed_at.is_(None)),
    select(_J.id).where(_J.lineage == bindparam("lineage"), _J.origin.is_not(None), _J.removed_at.is_(None)),
).subquery("there")
_LINEAGE = Sql(select(_OF_LINEAGE.c.id).limit(1))
_GIVEN = t.jobs.alias("given")
_SOURCE = Sql(
    select(_GIVEN.c.id)
    .join(job_sources, job_sources.c.job_id == _GIVEN.c.id)
    .where(job_sources.c.source == bindparam("source"), _GIVEN.c.finished_at.is_(None))
    .limit(1)
)


def is_lineage_needed(tx: Transaction, lineage: JobId) -> bool:
    return tx.row(_LINEAGE, lineage=lineage) is not None


def is_source_needed(tx: Transaction, job_id: JobId) -> bool:
    return tx.row(_SOURCE, source=job_id) is not None
