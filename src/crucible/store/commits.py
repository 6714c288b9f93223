"""Writing what happened: rows guarded by version, the log, and the records beside them. State is the fold of its log,
so a change without an event, or with the wrong number of them, is refused."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.attempt import Attempt
from crucible.model.audit import AuditEntry
from crucible.model.change import Change, Entity
from crucible.model.dataset import DatasetCopy
from crucible.model.encoding import encode_event
from crucible.model.errors import InvariantBroken, StaleVersion
from crucible.model.health import Finding, JobHealth, PlaceHealth
from crucible.model.ids import JobId, LeaseId
from crucible.model.job import Job, JobStatus, JobStatusChanged, JobSubmitted
from crucible.model.lease import Node
from crucible.model.ledger import Cooldown, Posting, Usage
from crucible.model.notice import Notice
from crucible.model.outputs import Output
from crucible.model.record import Allocation, Artifact, Checkpoint, Prediction, Record, StepResult
from crucible.model.retention import Source
from crucible.model.shards import Shard
from crucible.store import record_tables as r
from crucible.store import tables as t
from crucible.store.audit import write_audit
from crucible.store.datasets import add_copy
from crucible.store.entities import KINDS, RANKS, Kind
from crucible.store.health import write_finding, write_job_health, write_place_health
from crucible.store.mapping import Rows, clean, micros, to_json
from crucible.store.money import write_cooldown, write_posting, write_usage
from crucible.store.notices import write_notice
from crucible.store.outputs import add as add_output
from crucible.store.outputs import add_source
from crucible.store.plans import save_prediction
from crucible.store.shards import add_shards
from crucible.store.sql import Sql, Transaction, UniqueViolated
from crucible.store.workflows import save_result

ALLOCATIONS = Rows(Allocation, r.allocations, columns={"is_spot": "spot"})
ARTIFACTS = Rows(Artifact, r.job_artifacts, columns={"meta": "meta_json"})
CHECKPOINTS = Rows(Checkpoint, r.checkpoints)

_KIND_ORDER = {kind: number for number, kind in enumerate(KINDS)}


def commit(
    tx: Transaction, changes: Sequence[Change], records: Sequence[Record], guard: Callable[[Transaction], None]
) -> None:
    """`guard` raises if this worker may no longer write."""
    for change in changes:
        _check(change)
    job_ids = [job_of(tx, change.after) for change in changes]
    serialise(tx, [*job_ids, *(record.job_id for record in records if isinstance(record, (Usage, Posting)))])
    guard(tx)
    for change in sorted(changes, key=_writing_order(changes)):
        write_row(tx, change)
    write_log(tx, changes, job_ids)
    write_records(tx, records)


def _check(change: Change) -> None:
    before, after = change.before, change.after
    expected = len(change.events) - 1 if before is None else before.version + len(change.events)
    if not change.events or after.version != expected or (before is not None and before.id != after.id):
        kind = KINDS[type(after)].name
        raise InvariantBroken(
            f"{kind} {after.id} went to version {after.version} by {len(change.events)} events, expected {expected}"
        )


def _writing_order(changes: Sequence[Change]) -> Callable[[Change], tuple[int, int, str]]:
    """Old rows first, always in the same order so that two writers never wait for each other; then new rows, parents
    first; then changes of rows that are new in this very commit."""
    born = {change.after.id for change in changes if change.before is None}

    def key(change: Change) -> tuple[int, int, str]:
        group = 1 if change.before is None else 2 if change.after.id in born else 0
        return group, _KIND_ORDER[type(change.after)], change.after.id

    return key


# --- one job's log has one order ---------------------------------------------------------------------------

_JOB_OF_LEASE = Sql(select(t.leases.c.job_id).where(t.leases.c.id == bindparam("id")))
_SERIALISE = Sql(select(func.pg_advisory_xact_lock(func.hashtextextended(bindparam("job_id"), 0))))


def job_of(tx: Transaction, entity: Entity) -> JobId:
    match entity:
        case Job():
            return entity.id
        case Node():
            return _job_of_lease(tx, entity.lease_id)
        case _:
            return entity.job_id


def _job_of_lease(tx: Transaction, lease_id: LeaseId) -> JobId:
    row = tx.row(_JOB_OF_LEASE, id=lease_id)
    if row is None:
        raise InvariantBroken(f"a node refers to lease {lease_id}, which does not exist")
    return JobId(row[0])


def serialise(tx: Transaction, job_ids: Iterable[JobId]) -> None:
    """Transactions of one job follow one another. Otherwise a line of the log could become visible after a later one,
    and a reader who has passed that place would never see it."""
    if tx.is_shared:
        for job_id in sorted(set(job_ids)):
            tx.rows(_SERIALISE, job_id=job_id)


# --- rows ----------------------------------------------------------------------------------------------------


def write_row(tx: Transaction, change: Change) -> None:
    kind = KINDS[type(change.after)]
    try:
        if change.before is None:
            tx.run(_inserting(kind.rows), kind.rows.pack(change.after))
        else:
            _update(tx, kind, change.before, change.after)
    except UniqueViolated as error:
        raise StaleVersion(f"{kind.name} {change.after.id}, or another in its place, exists already") from error
    if isinstance(change.after, Attempt):
        _write_ranks(tx, change.before, change.after)


def _update(tx: Transaction, kind: Kind, before: Any, after: Any) -> None:
    changed = kind.rows.difference(before, after)
    sql = _updating(kind.rows, tuple(changed))
    if tx.run(sql, {**changed, "row_id": before.id, "seen": before.version}) == 0:
        raise StaleVersion(f"{kind.name} {before.id} is no longer at version {before.version}: load it again")


@cache
def _inserting(rows: Rows[Any]) -> Sql:
    return Sql(insert(rows.table).values(rows.parameters()))


@cache
def _updating(rows: Rows[Any], columns: tuple[str, ...]) -> Sql:
    table = rows.table
    mine = (table.c.id == bindparam("row_id")) & (table.c.version == bindparam("seen"))
    return Sql(update(table).where(mine).values({column: bindparam(column) for column in columns}))


_RANK_COLUMNS = ("attempt_id", "generation", *(column.name for column in RANKS.columns))
_RANK_INSERT = upsert(t.ranks).values({name: bindparam(name) for name in _RANK_COLUMNS})
_RANK_UPSERT = Sql(
    _RANK_INSERT.on_conflict_do_update(
        index_elements=["attempt_id", "generation", "rank"],
        set_={column.name: _RANK_INSERT.excluded[column.name] for column in RANKS.columns if column.name != "rank"},
    )
)
_RANK_DELETE = Sql(
    delete(t.ranks).where(
        t.ranks.c.attempt_id == bindparam("of_attempt"),
        t.ranks.c.generation == bindparam("of_generation"),
        t.ranks.c.rank == bindparam("gone"),
    )
)


def _write_ranks(tx: Transaction, before: Any, after: Attempt) -> None:
    """Only those that changed: one rank of a hundred must not rewrite the others."""
    known = before.ranks if before is not None and before.generation == after.generation else ()
    old = {rank.rank: rank for rank in known}
    new = [rank for rank in after.ranks if old.pop(rank.rank, None) != rank]
    key = {"attempt_id": after.id, "generation": after.generation}
    tx.run_many(_RANK_UPSERT, [{**key, **RANKS.pack(rank)} for rank in new])
    gone = {"of_attempt": after.id, "of_generation": after.generation}
    tx.run_many(_RANK_DELETE, [{**gone, "gone": rank} for rank in old])


# --- the log -------------------------------------------------------------------------------------------------

_EVENT_COLUMNS = ("job_id", "kind", "entity_id", "version", "at", "type", "body")
_LOG = Sql(insert(t.events).values({name: bindparam(name) for name in _EVENT_COLUMNS}))
_LOG_STATUS = Sql(
    insert(t.job_events).from_select(
        ["id", "job_id", "at", "from_status", "to_status", "reason", "meta_json"],
        select(
            t.events.c.seq,
            t.events.c.job_id,
            t.events.c.at,
            bindparam("from_status", type_=t.job_events.c.from_status.type),
            bindparam("to_status", type_=t.job_events.c.to_status.type),
            bindparam("reason", type_=t.job_events.c.reason.type),
            literal("{}"),
        ).where(
            t.events.c.kind == literal("job"),
            t.events.c.entity_id == bindparam("of_job"),
            t.events.c.version == bindparam("at_version"),
        ),
    )
)


def write_log(tx: Transaction, changes: Sequence[Change], job_ids: Sequence[JobId]) -> None:
    lines = [line for change, job_id in zip(changes, job_ids, strict=True) for line in _lines(change, job_id)]
    try:
        tx.run_many(_LOG, lines)
    except UniqueViolated as error:
        raise StaleVersion("another worker has logged the next event already: load again") from error
    tx.run_many(_LOG_STATUS, [line for change in changes for line in _status_lines(change)])


def _lines(change: Change, job_id: JobId) -> Iterable[dict[str, Any]]:
    first = 0 if change.before is None else change.before.version + 1
    for version, event in enumerate(change.events, first):
        type_, body = encode_event(event)
        yield {
            "job_id": job_id,
            "kind": KINDS[type(change.after)].name,
            "entity_id": change.after.id,
            "version": version,
            "at": micros(event.at),
            "type": type_,
            "body": to_json(body),
        }


def _status_lines(change: Change) -> Iterable[dict[str, Any]]:
    if not isinstance(change.after, Job):
        return
    status: JobStatus | None = change.before.status if isinstance(change.before, Job) else None
    first = 0 if change.before is None else change.before.version + 1
    for version, event in enumerate(change.events, first):
        if isinstance(event, JobSubmitted):
            event = JobStatusChanged(event.at, JobStatus.PENDING)
        if isinstance(event, JobStatusChanged):
            yield {
                "of_job": change.after.id,
                "at_version": version,
                "from_status": None if status is None else status.value,
                "to_status": event.status.value,
                "reason": None if event.reason is None else clean(event.reason),
            }
            status = event.status


# --- records -------------------------------------------------------------------------------------------------


def _once(rows: Rows[Any], *key: str) -> Sql:
    return Sql(upsert(rows.table).values(rows.parameters()).on_conflict_do_nothing(index_elements=key))


_ALLOCATION = _inserting(ALLOCATIONS)
_ARTIFACT = _once(ARTIFACTS, "job_id", "type", "uri")
_CHECKPOINT = _once(CHECKPOINTS, "lineage", "step", "manifest_sha256")


def write_records(tx: Transaction, records: Sequence[Record]) -> None:
    add_shards(tx, [record for record in records if isinstance(record, Shard)])
    for record in records:
        match record:
            case Allocation():
                _allocate(tx, record)
            case Artifact():
                tx.run(_ARTIFACT, ARTIFACTS.pack(record))
            case Checkpoint():
                tx.run(_CHECKPOINT, CHECKPOINTS.pack(record))
            case Prediction():
                save_prediction(tx, record)
            case Usage():
                write_usage(tx, record)
            case Posting():
                write_posting(tx, record)
            case Cooldown():
                write_cooldown(tx, record)
            case DatasetCopy():
                add_copy(tx, record)
            case StepResult():
                save_result(tx, record)
            case Source():
                add_source(tx, record)
            case Output():
                add_output(tx, record)
            case AuditEntry():
                write_audit(tx, record)
            case Notice():
                write_notice(tx, record)
            case JobHealth():
                write_job_health(tx, record)
            case Finding():
                write_finding(tx, record)
            case PlaceHealth():
                write_place_health(tx, record)


def _allocate(tx: Transaction, allocation: Allocation) -> None:
    try:
        tx.run(_ALLOCATION, ALLOCATIONS.pack(allocation))
    except UniqueViolated as error:
        raise StaleVersion(f"attempt {allocation.attempt_id} is allocated already") from error
