"""How jobs and providers are. The newest look counts; a finding is one row from its opening to its closing."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.attempt import AttemptPhase
from crucible.model.health import Finding, HeldNode, JobHealth, PlaceHealth
from crucible.model.ids import JobId, NodeId, TaskId
from crucible.model.lease import LeasePhase
from crucible.store import tables as t
from crucible.store.health_tables import findings, job_health, place_health
from crucible.store.mapping import Rows, moment_or_none
from crucible.store.sql import Among, Row, Sql, Transaction, as_list, fixed

JOBS = Rows(JobHealth, job_health)
FINDINGS = Rows(Finding, findings)
PLACES = Rows(PlaceHealth, place_health)


def _newest(rows: Rows[Any], *key: str) -> Sql:
    new = upsert(rows.table).values(rows.parameters())
    changed = {column.name: new.excluded[column.name] for column in rows.columns if column.name not in key}
    return Sql(new.on_conflict_do_update(index_elements=key, set_=changed))


_SAVE_JOB = _newest(JOBS, "job_id")
_SAVE_FINDING = _newest(FINDINGS, "job_id", "code", "opened_at")
_SAVE_PLACE = _newest(PLACES, "provider", "region")


def write_job_health(tx: Transaction, one: JobHealth) -> None:
    tx.run(_SAVE_JOB, JOBS.pack(one))


def write_finding(tx: Transaction, one: Finding) -> None:
    tx.run(_SAVE_FINDING, FINDINGS.pack(one))


def write_place_health(tx: Transaction, one: PlaceHealth) -> None:
    tx.run(_SAVE_PLACE, PLACES.pack(one))


_OF_JOBS = Sql(select(*JOBS.columns).where(Among(job_health.c.job_id, "job_ids")))
_IS_OPEN = findings.c.closed_at.is_(None)
_OPEN = select(*FINDINGS.columns).where(_IS_OPEN).order_by(findings.c.job_id, findings.c.opened_at, findings.c.code)
_ALL_OPEN, _OPEN_OF = Sql(_OPEN), Sql(_OPEN.where(Among(findings.c.job_id, "job_ids")))
_HISTORY = Sql(
    select(*FINDINGS.columns)
    .where(findings.c.job_id == bindparam("job_id"))
    .order_by(findings.c.opened_at.desc(), findings.c.code)
    .limit(bindparam("limit"))
)
_PLACES = Sql(select(*PLACES.columns).order_by(place_health.c.provider, place_health.c.region))


def job_healths(tx: Transaction, job_ids: Collection[JobId]) -> Mapping[JobId, JobHealth]:
    return {one.job_id: one for one in JOBS.unpack_all(tx.rows(_OF_JOBS, job_ids=as_list(job_ids)))}


def open_findings(tx: Transaction, job_ids: Collection[JobId] | None) -> Sequence[Finding]:
    rows = tx.rows(_ALL_OPEN) if job_ids is None else tx.rows(_OPEN_OF, job_ids=as_list(job_ids))
    return FINDINGS.unpack_all(rows)


def history(tx: Transaction, job_id: JobId, limit: int) -> Sequence[Finding]:
    return FINDINGS.unpack_all(tx.rows(_HISTORY, job_id=job_id, limit=limit))


def places(tx: Transaction) -> Sequence[PlaceHealth]:
    return PLACES.unpack_all(tx.rows(_PLACES))


# --- the nodes that jobs hold -------------------------------------------------------------------------------------

_L, _N, _H = t.leases.c, t.nodes.c, t.heartbeats.c
_FIRST_RANK = (
    select(func.min(t.ranks.c.rank))
    .join(t.attempts, t.attempts.c.id == t.ranks.c.attempt_id)
    .where(
        t.ranks.c.node_id == _N.id,
        t.ranks.c.generation == t.attempts.c.generation,
        t.attempts.c.phase != fixed(AttemptPhase.ENDED),
    )
    .scalar_subquery()
)
_HELD = Sql(
    select(_N.id, _L.job_id, _L.task_id, _L.index, _FIRST_RANK, _L.gpus, _L.devices, _H.at, _H.usage)
    .join(t.nodes, _N.lease_id == _L.id)
    .join(t.heartbeats, _H.node_id == _N.id, isouter=True)
    .where(Among(_L.job_id, "job_ids"), _L.phase != fixed(LeasePhase.CLOSED))
    .order_by(_L.created_at, _L.index, _N.id)
    .limit(bindparam("limit"))
)


def held_nodes(tx: Transaction, job_ids: Collection[JobId], limit: int) -> Sequence[HeldNode]:
    return [_held(row) for row in tx.rows(_HELD, job_ids=as_list(job_ids), limit=limit)]


def _held(row: Row) -> HeldNode:
    node_id, job_id, task_id, index, rank, gpus, devices, at, usage = row
    return HeldNode(
        node_id=NodeId(node_id),
        job_id=JobId(job_id),
        task_id=TaskId(task_id),
        index=index,
        rank=rank,
        gpus=gpus,
        devices=tuple(json.loads(devices)),
        heard_at=moment_or_none(at),
        usage={} if usage is None else json.loads(usage),
    )
