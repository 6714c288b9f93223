"""Budgets, and what they are held against: a few statements, however many jobs there are."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import (
    BindParameter,
    Text,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)

from crucible.core.billables import before
from crucible.model.audit import AuditEntry
from crucible.model.budget import KEEPER, Budget, BudgetId, Payer, Posted, Spender, Stakes
from crucible.model.errors import Conflict, NotFound, StaleVersion
from crucible.model.ids import JobId, MachineId, UserId
from crucible.model.job import Desired, JobStatus
from crucible.model.lease import Order
from crucible.model.spec import WhenSpent
from crucible.model.units import MicroUsd
from crucible.store import money_tables as m
from crucible.store import tables as t
from crucible.store.audit import write_audit
from crucible.store.budget_tables import budgets as table
from crucible.store.entities import LEASES, ORDERS
from crucible.store.mapping import Rows, micros, moment, moment_or_none
from crucible.store.money import JOB_ACCOUNT, STRETCHES, stretches
from crucible.store.sql import Among, Row, Sql, Transaction, UniqueViolated, as_list, fixed, fixed_set
from crucible.store.trees import OPEN_LEASE, UNSETTLED

BUDGETS = Rows(Budget, table)

_ALL = Sql(select(*BUDGETS.columns).order_by(table.c.id))
_ONE = Sql(select(*BUDGETS.columns).where(table.c.id == bindparam("id")))
_ADD = Sql(insert(table).values(BUDGETS.parameters()))
_CHANGING = ("limit_microusd", "when_spent", "thresholds", "version")
_CHANGE = Sql(
    update(table)
    .where(table.c.id == bindparam("of"), table.c.version == bindparam("seen"))
    .values({name: bindparam(name) for name in _CHANGING})
)
_REMOVE = Sql(delete(table).where(table.c.id == bindparam("id")))


def budgets(tx: Transaction) -> Sequence[Budget]:
    return BUDGETS.unpack_all(tx.rows(_ALL))


def budget(tx: Transaction, budget_id: BudgetId) -> Budget:
    row = tx.row(_ONE, id=budget_id)
    if row is None:
        raise NotFound(f"there is no budget {budget_id}")
    return BUDGETS.unpack(row)


def save(tx: Transaction, new: Budget, audit: AuditEntry) -> None:
    packed = BUDGETS.pack(new)
    if new.version == 0:
        try:
            tx.run(_ADD, packed)
        except UniqueViolated as error:
            raise Conflict(f"there is a budget {new.id} already; change it instead") from error
    elif not tx.run(_CHANGE, {"of": new.id, "seen": new.version - 1, **{name: packed[name] for name in _CHANGING}}):
        raise StaleVersion(f"the budget {new.id} was changed meanwhile; look at it again")
    write_audit(tx, audit)


def remove(tx: Transaction, budget_id: BudgetId, audit: AuditEntry) -> None:
    if not tx.run(_REMOVE, {"id": budget_id}):
        raise NotFound(f"there is no budget {budget_id}")
    write_audit(tx, audit)


# --- what costs money, or may ---------------------------------------------------------------------------------

_J, _U, _O, _L = t.jobs.c, m.usage.c, t.orders.c, t.leases.c
_IS_PAID = _O.price_per_hour_microusd > 0
_OPEN_USAGE = _U.to_at.is_(None)
_LEASES = Sql(select(*LEASES.columns).where(OPEN_LEASE, _L.price_per_hour_microusd > 0).order_by(_L.created_at, _L.id))
_USAGES = Sql(STRETCHES.where(_OPEN_USAGE).order_by(_U.from_at, _U.machine_id, _U.kind))
# Each of these is short and has its index; asked for any of the three at once, a database would read every order.
_AT_STAKE = union_all(
    select(_O.id).where(UNSETTLED, _IS_PAID),
    select(_L.order_id).where(OPEN_LEASE, _L.price_per_hour_microusd > 0),
    select(_U.order_id).where(_OPEN_USAGE),
).subquery("at_stake")
_ORDERS = Sql(select(*ORDERS.columns).where(_O.id.in_(select(_AT_STAKE.c.id))).order_by(_O.created_at, _O.id))
_SEEN = Sql(select(_U.machine_id).where(Among(_U.job_id, "job_ids"), Among(_U.machine_id, "machines")).distinct())
_IS_LIVE = _J.status.not_in(fixed_set(t.FINISHED_JOBS))
_PAUSED = Sql(
    select(_J.id, _J.parent).where(_J.desired == fixed(Desired.HOLD), _J.desired_by == literal(KEEPER), _IS_LIVE)
)
_ROOT = case((_J.parent.is_(None), _J.id), else_=_J.parent)
_SPENDER = (
    _J.id,
    _ROOT,
    _J.user_id,
    _J.team,
    _J.project,
    _J.priority,
    _J.created_at,
    _J.status,
    _J.desired,
    _J.desired_by,
    _J.desired_at,
    _J.budget_microusd,
    _J.when_spent,
)
_SPENDERS = Sql(select(*_SPENDER).where(Among(_J.id, "job_ids")))
_BELOW = Sql(select(*_SPENDER).where(Among(_J.parent, "job_ids"), _J.parent.is_not(None), _IS_LIVE))
_PARENTS = Sql(select(_J.parent).where(Among(_J.id, "job_ids"), _J.parent.is_not(None)).distinct())
_POSTED = Sql(select(_J.id, _J.cost_running_microusd).where(Among(_J.id, "job_ids")))
_POSTED_BELOW = Sql(
    select(_J.parent, func.sum(_J.cost_running_microusd)).where(Among(_J.parent, "job_ids")).group_by(_J.parent)
)
_NEWER = t.orders.alias("newer")
_NEWEST = select(func.max(_NEWER.c.created_at)).where(_NEWER.c.job_id == _O.job_id).scalar_subquery()
_WANTED = Sql(
    select(*ORDERS.columns).where(Among(_O.job_id, "job_ids"), _O.created_at == _NEWEST, _IS_PAID).order_by(_O.id)
)
_OVER = {status.value for status in JobStatus if status.is_terminal}


def stakes(tx: Transaction) -> Stakes:
    leases, usages = LEASES.unpack_all(tx.rows(_LEASES)), stretches(tx.rows(_USAGES))
    orders = ORDERS.unpack_all(tx.rows(_ORDERS))
    machines = as_list(lease.machine_id for lease in leases if lease.machine_id is not None)
    jobs = as_list({lease.job_id for lease in leases})
    paused = [JobId(root or id_) for id_, root in tx.rows(_PAUSED)]
    spenders = _spenders(tx, {*paused, *(order.job_id for order in orders)})
    return Stakes(
        spenders=spenders,
        usages=usages,
        leases=leases,
        orders=orders,
        seen=frozenset(MachineId(row[0]) for row in tx.rows(_SEEN, machines=machines, job_ids=jobs)),
        wanted=_wanted(tx, [one for one in spenders if one.root in paused]) if paused else (),
    )


def _spenders(tx: Transaction, job_ids: Collection[JobId]) -> tuple[Spender, ...]:
    """With the workflows that they work for, and all that works for these."""
    if not job_ids:
        return ()
    parents = [row[0] for row in tx.rows(_PARENTS, job_ids=as_list(job_ids))]
    wanted = as_list({*job_ids, *parents})
    found = {row[0]: row for sql in (_SPENDERS, _BELOW) for row in tx.rows(sql, job_ids=wanted)}
    return tuple(sorted(map(_spender, found.values())))


def _spender(row: Row) -> Spender:
    id_, root, user_id, team, project, priority, created_at, status, desired, by, at, budget, when_spent = row
    return Spender(
        id=JobId(id_),
        root=JobId(root),
        payer=Payer(UserId(user_id), team, project),
        priority=priority,
        created_at=moment(created_at),
        is_over=status in _OVER,
        desired=Desired(desired),
        desired_by=by,
        desired_at=moment_or_none(at),
        budget=budget,
        when_spent=WhenSpent(when_spent),
    )


def _wanted(tx: Transaction, waiting: Sequence[Spender]) -> tuple[Order, ...]:
    """The newest of each job."""
    found = ORDERS.unpack_all(tx.rows(_WANTED, job_ids=as_list(one.id for one in waiting)))
    return tuple({order.job_id: order for order in found}.values())


# --- what the ledger holds ------------------------------------------------------------------------------------


def posted_of(tx: Transaction, job_ids: Collection[JobId]) -> Mapping[JobId, MicroUsd]:
    found = dict.fromkeys(job_ids, 0)
    ids = as_list(job_ids)
    for job_id, amount in (*tx.rows(_POSTED, job_ids=ids), *tx.rows(_POSTED_BELOW, job_ids=ids)):
        found[job_id] += int(amount)
    return {job_id: MicroUsd(amount) for job_id, amount in found.items()}


# --- of a time --------------------------------------------------------------------------

# A job that ended long before has nothing to come: its machines are gone, and what they cost is known.
_AFTERMATH = timedelta(days=7)
_PAYER = (_J.user_id, _J.team, _J.project)
_SINCE: BindParameter[int] = bindparam("since")
_ENDED: BindParameter[int] = bindparam("ended")
# Jobs that are younger than the time in question: all that is posted to them stands in their rows.
_YOUNG = Sql(
    select(*_PAYER, func.sum(_J.cost_running_microusd))
    .where(_J.created_at >= _SINCE, _J.cost_running_microusd != 0)
    .group_by(*_PAYER)
)
_IS_OLD = (_J.created_at < _SINCE) & or_(_J.finished_at.is_(None), _J.finished_at >= _ENDED)
_OLD = Sql(
    select(*_PAYER, func.sum(m.ledger.c.amount_microusd))
    .join(m.postings, m.postings.c.job_id == _J.id)
    .join(m.ledger, m.ledger.c.posting_id == m.postings.c.id)
    .where(_IS_OLD, m.postings.c.at >= _SINCE, m.ledger.c.account == literal(JOB_ACCOUNT, Text).concat(_J.id))
    .group_by(*_PAYER)
)
_ACROSS = Sql(
    STRETCHES.add_columns(*_PAYER)
    .join(t.jobs, _J.id == _U.job_id)
    .where(_IS_OLD, _U.from_at < _SINCE, _U.to_at >= _SINCE)
)


def posted_since(tx: Transaction, since: datetime) -> Sequence[Posted]:
    borders = {"since": micros(since), "ended": micros(since - _AFTERMATH)}
    total: dict[Payer, int] = defaultdict(int)
    for *payer, amount in (*tx.rows(_YOUNG, since=borders["since"]), *tx.rows(_OLD, **borders)):
        total[Payer(*payer)] += int(amount)
    rows = tx.rows(_ACROSS, **borders)
    for row, usage in zip(rows, stretches(row[:-3] for row in rows), strict=True):
        total[Payer(*row[-3:])] -= before(usage, since, since)
    return [Posted(payer, MicroUsd(amount)) for payer, amount in total.items()]
