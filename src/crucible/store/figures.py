"""Sums for graphs. `figures` reads by partial indexes what is under way; `totals` reads everything, and is for a thread
that nobody waits for."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Float, bindparam, case, cast, func, select

from crucible.model.costs import NO_NAME
from crucible.model.figures import Account, Figures, HeldAt, Totals, WaitingFor
from crucible.model.job import Desired, JobStatus
from crucible.model.lease import LeasePhase
from crucible.model.task import TaskKind, TaskPhase
from crucible.model.units import MICRO, MicroUsd
from crucible.store import cost_tables as c
from crucible.store import money_tables as m
from crucible.store import tables as t
from crucible.store.mapping import micros, moment_or_none
from crucible.store.sql import Row, Sql, Transaction, fixed, fixed_set

# A beat that is older says nothing of now.
FRESH = timedelta(minutes=1)
HOUR_S = 3600
SPOT = "spot"  # a market of `CostKey`

_J, _T, _L, _U, _O = t.jobs.c, t.tasks.c, t.leases.c, m.usage.c, t.orders.c

_STATUSES = select(_J.status, func.count()).group_by(_J.status)
_UNDER_WAY = Sql(_STATUSES.where(_J.status.in_(fixed_set(s for s in JobStatus if not s.is_terminal))))
_ENDED = Sql(_STATUSES.where(_J.status.in_(fixed_set(s for s in JobStatus if s.is_terminal))))

_HAS_RUN = case((_T.attempts > 0, 1), else_=0)
# A retry waits from its time on, not from the first time that its task was placed.
_SINCE = func.min(func.coalesce(_T.not_before, _T.created_at))
_WAITING = Sql(
    select(_T.reason, _HAS_RUN, func.count(), _SINCE)
    .join(t.jobs, _J.id == _T.job_id)
    .where(
        _T.phase == fixed(TaskPhase.WAITING),
        _T.kind.in_(fixed_set((TaskKind.ALONE, TaskKind.SEATED))),
        _J.desired == fixed(Desired.RUN),
    )
    .group_by(_T.reason, _HAS_RUN)
)

RUNS = _T.phase.in_(fixed_set((TaskPhase.RUNNING, TaskPhase.CHECKPOINTING)))
_HELD = Sql(
    select(_L.provider, _L.region, _L.phase, func.count(), func.sum(_L.gpus), func.sum(case((RUNS, _L.gpus), else_=0)))
    .join(t.tasks, _T.id == _L.task_id)
    .where(_L.phase != fixed(LeasePhase.CLOSED))
    .group_by(_L.provider, _L.region, _L.phase)
    .order_by(_L.provider, _L.region, _L.phase)
)

_ACCOUNTS = (_U.provider, _O.is_spot, _J.team)
_CHARGED = m.usage.join(t.orders, _O.id == _U.order_id).join(t.jobs, _J.id == _U.job_id)
RATE = cast(_U.rate_microusd, Float) / _U.per_s
_RATES = Sql(
    select(*_ACCOUNTS, func.sum(RATE * HOUR_S)).select_from(_CHARGED).where(_U.to_at.is_(None)).group_by(*_ACCOUNTS)
)
_SO_FAR = RATE * (cast(bindparam("now"), Float) - _U.from_at) / MICRO
_ACCRUED = Sql(
    select(*_ACCOUNTS, func.sum(_SO_FAR)).select_from(_CHARGED).where(_U.to_at.is_(None)).group_by(*_ACCOUNTS)
)
# What is closed has joined the sums of costs, or waits to.
_UNSUMMED = Sql(
    select(*_ACCOUNTS, func.sum(_U.amount_microusd))
    .select_from(_CHARGED.join(c.unsummed_usage, c.unsummed_usage.c.usage_id == _U.id))
    .group_by(*_ACCOUNTS)
)
_K = c.cost_keys.c
_SUMMED = Sql(
    select(_K.provider, _K.market, _K.team, func.sum(c.cost_days.c.cost))
    .join(c.cost_days, c.cost_days.c.key_id == _K.id)
    .group_by(_K.provider, _K.market, _K.team)
)
_IMBALANCE = Sql(select(func.coalesce(func.sum(m.ledger.c.amount_microusd), 0)))

_BEATS = Sql(
    select(t.nodes.c.facts, _O.instance_type, t.heartbeats.c.usage)
    .select_from(t.leases.join(t.nodes, t.nodes.c.id == _L.node_id).join(t.orders, _O.id == _L.order_id))
    .join(t.heartbeats, t.heartbeats.c.node_id == _L.node_id)
    .where(_L.phase == fixed(LeasePhase.ACTIVE), _L.gpus > 0, t.heartbeats.c.at > bindparam("since"))
)


def figures(tx: Transaction, now: datetime) -> Figures:
    waiting = tx.rows(_WAITING)
    return Figures(
        jobs=_by_status(tx.rows(_UNDER_WAY)),
        waiting=[WaitingFor(reason, bool(has_run), count) for reason, has_run, count, _ in waiting],
        waiting_since=moment_or_none(min((row[3] for row in waiting), default=None)),
        held=[HeldAt(place, region, LeasePhase(phase), *numbers) for place, region, phase, *numbers in tx.rows(_HELD)],
        rates=_by_account(tx.rows(_RATES)),
        gpu_percents=_percents(tx.rows(_BEATS, since=micros(now - FRESH))),
    )


def totals(tx: Transaction, now: datetime) -> Totals:
    summed = [
        (provider, market == SPOT, None if team == NO_NAME else team, total)
        for provider, market, team, total in tx.rows(_SUMMED)
    ]
    spent = Counter[Account]()
    for part in (summed, tx.rows(_UNSUMMED), tx.rows(_ACCRUED, now=micros(now))):
        spent.update(_by_account(part))
    ((imbalance,),) = tx.rows(_IMBALANCE)
    sums = {account: MicroUsd(amount) for account, amount in spent.items()}
    return Totals(jobs=_by_status(tx.rows(_ENDED)), spent=sums, imbalance=MicroUsd(int(imbalance)))


def _by_status(rows: Iterable[Row]) -> dict[JobStatus, int]:
    return {JobStatus(status): count for status, count in rows}


def _by_account(rows: Iterable[Row]) -> dict[Account, MicroUsd]:
    return {Account(provider, bool(is_spot), team): MicroUsd(round(total)) for provider, is_spot, team, total in rows}


def _percents(rows: Iterable[Row]) -> Mapping[str, Sequence[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for facts, instance_type, usage in rows:
        names = {str(gpu.get("index")): str(gpu.get("name")) for gpu in json.loads(facts).get("gpus") or ()}
        for key, value in json.loads(usage).items():
            number = key.removeprefix("gpu").removesuffix("_percent")
            if key == f"gpu{number}_percent" and number.isdigit():
                found[names.get(number) or str(instance_type)].append(float(value))
    return found
