"""Stretches and moved data with all that a report needs to know of them: for whom, on what, what ran there."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import bindparam, func, select

from crucible.model.costs import NO_NAME, Charged, CostKey, Moved, Ran
from crucible.model.ids import JobId, UserId
from crucible.model.ledger import ChargeKind, Usage
from crucible.model.offer import Market
from crucible.model.units import MicroUsd
from crucible.store import cost_tables as c
from crucible.store import money_tables as m
from crucible.store import tables as t
from crucible.store.mapping import micros, moment, moment_or_none
from crucible.store.money import STRETCHES, stretches
from crucible.store.sql import Among, Row, Sql, Transaction, as_list

_U, _J, _O, _N, _R = m.usage.c, t.jobs.c, t.orders.c, t.nodes.c, t.ranks.c
_WAITING, _MOVED = c.unsummed_usage.c, c.unsummed_postings.c
_WIDTH = len(STRETCHES.selected_columns)
_ABOUT = (
    _J.team,
    _J.project,
    _J.user_id,
    _O.instance_type,
    _O.gpu,
    _O.is_spot,
    _O.gpus,
    _O.on_demand_per_hour_microusd,
    _U.id,
)
_CHARGED = (
    STRETCHES.add_columns(*_ABOUT)
    .join(t.jobs, _J.id == _U.job_id)
    .join(t.orders, _O.id == _U.order_id)
    .limit(bindparam("limit"))
)
# In the order of the short table: in that of the long one, every stretch there ever was would be looked at.
_WAITS = _CHARGED.join(c.unsummed_usage, _WAITING.usage_id == _U.id).order_by(_WAITING.usage_id)
_NEXT = Sql(_WAITS.where(_WAITING.to_at < bindparam("before")))
_CLOSED = Sql(_WAITS)
_RUNS = m.usage.alias("runs")
_OPEN = Sql(_CHARGED.where(_U.id.in_(select(_RUNS.c.id).where(_RUNS.c.to_at.is_(None)))).order_by(_U.id))
_FIRST = Sql(select(_U.job_id, func.min(_U.id)).where(Among(_U.job_id, "job_ids")).group_by(_U.job_id))
_RAN = Sql(
    select(_N.lease_id, _R.started_at, func.coalesce(_R.ended_at, t.attempts.c.ended_at), _R.devices)
    .join(t.ranks, _R.node_id == _N.id)
    .join(t.attempts, t.attempts.c.id == _R.attempt_id)
    .where(Among(_N.lease_id, "lease_ids"), _R.started_at.is_not(None))
)


def ended(tx: Transaction, before: datetime, limit: int) -> Mapping[int, Charged]:
    """The next stretches to add up, by their number."""
    return _charged(tx, tx.rows(_NEXT, before=micros(before), limit=limit))


def unsummed(tx: Transaction, limit: int) -> tuple[Charged, ...]:
    """Every stretch that is in no sum: closed a moment ago, or open."""
    rows = [*tx.rows(_CLOSED, limit=limit), *tx.rows(_OPEN, limit=limit)]
    return tuple(_charged(tx, rows).values())


def _charged(tx: Transaction, rows: Sequence[Row]) -> Mapping[int, Charged]:
    usages = stretches(row[:_WIDTH] for row in rows)
    first = dict(map(tuple, tx.rows(_FIRST, job_ids=as_list({usage.job_id for usage in usages}))))
    ran = _ran(tx, {usage.lease_id for usage in usages if usage.lease_id is not None})
    found: dict[int, Charged] = {}
    for usage, row in zip(usages, rows, strict=True):
        *about, gpus, on_demand, number = row[_WIDTH:]
        found[number] = Charged(
            usage=usage,
            key=_key(usage, about),
            gpus=gpus,
            on_demand_per_hour=None if on_demand is None else MicroUsd(on_demand),
            is_first=first[usage.job_id] == number,
            ran=ran.get(usage.lease_id or "", ()),
        )
    return found


def _key(usage: Usage, about: Row) -> CostKey:
    team, project, user, instance_type, gpu, is_spot = about
    return CostKey(
        team=team or NO_NAME,
        project=project or NO_NAME,
        user=UserId(user),
        provider=usage.provider,
        region=usage.region,
        instance_type=instance_type,
        gpu=gpu or NO_NAME,
        market=(Market.SPOT if is_spot else Market.ON_DEMAND).name.lower(),
        kind=usage.rate.kind,
    )


def _ran(tx: Transaction, lease_ids: Collection[str]) -> Mapping[str, tuple[Ran, ...]]:
    found: dict[str, list[Ran]] = defaultdict(list)
    for lease_id, start, end, devices in tx.rows(_RAN, lease_ids=as_list(lease_ids)):
        found[lease_id].append(Ran(moment(start), moment_or_none(end), len(json.loads(devices))))
    return {lease_id: tuple(ran) for lease_id, ran in found.items()}


_P, _L = m.postings.c, m.ledger.c
_TRANSFERS = Sql(
    select(_P.id, _P.at, _P.job_id, _J.team, _J.project, _J.user_id, _L.account, _L.amount_microusd)
    .join(c.unsummed_postings, _MOVED.posting_id == _P.id)
    .join(m.ledger, _L.posting_id == _P.id)
    .join(t.jobs, _J.id == _P.job_id)
    .where(_L.account.like("provider:%"))
    .order_by(_MOVED.posting_id)
    .limit(bindparam("limit"))
)


def moved(tx: Transaction, limit: int) -> Mapping[str, Moved]:
    """Postings without a stretch that are in no sum, by their names."""
    return {row[0]: _transfer(row) for row in tx.rows(_TRANSFERS, limit=limit)}


def _transfer(row: Row) -> Moved:
    _, at, job_id, team, project, user, account, given = row
    key = CostKey(
        team=team or NO_NAME,
        project=project or NO_NAME,
        user=UserId(user),
        provider=account.removeprefix("provider:"),
        region=NO_NAME,
        instance_type=NO_NAME,
        gpu=NO_NAME,
        market=NO_NAME,
        kind=ChargeKind.TRANSFER,
    )
    return Moved(at=moment(at), job_id=JobId(job_id), key=key, cost=MicroUsd(-given))
