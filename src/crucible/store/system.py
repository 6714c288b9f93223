"""The whole system in a few counts. Whoever asks often remembers the answer for a while: sums of money read an index of
all that was ever posted."""

from datetime import datetime

from sqlalchemy import and_, bindparam, case, exists, func, select, text

from crucible.model.health import SystemFacts
from crucible.model.lease import LeasePhase
from crucible.model.task import TaskKind, TaskPhase
from crucible.store import tables as t
from crucible.store.mapping import micros, moment_or_none
from crucible.store.money_tables import ledger, usage
from crucible.store.schema import REVISION
from crucible.store.sql import SQLITE, Sql, Transaction, fixed, fixed_set

_T, _O, _L, _H = t.tasks.c, t.orders.c, t.leases.c, t.heartbeats.c
_WAITING = Sql(
    select(func.count(), func.min(_T.created_at)).where(
        _T.phase == fixed(TaskPhase.WAITING), _T.kind != fixed(TaskKind.STEP)
    )
)
_ORDERS = Sql(select(func.count(), func.min(_O.created_at)).where(_O.phase.in_(fixed_set(t.UNSETTLED_ORDERS))))
_CLOSING = Sql(select(func.count()).select_from(t.leases).where(_L.phase == fixed(LeasePhase.CLOSING)))
_NODES = Sql(
    select(func.count(), func.sum(case((_H.at < bindparam("heard_after"), 1), else_=0)))
    .select_from(t.leases)
    .join(t.heartbeats, _H.node_id == _L.node_id)
    .where(_L.phase != fixed(LeasePhase.CLOSED))
)
_BALANCE = Sql(select(func.sum(ledger.c.amount_microusd)))
_IS_HELD = exists().where(and_(_L.id == usage.c.lease_id, _L.phase != fixed(LeasePhase.CLOSED)))
_OPEN = Sql(
    select(func.count(), func.sum(case((_IS_HELD, 0), else_=1))).select_from(usage).where(usage.c.to_at.is_(None))
)
_STRETCHES = Sql(select(func.count(), func.sum(case((usage.c.is_estimate, 1), else_=0))).select_from(usage))
_SQLITE_BYTES = Sql(text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"))
_POSTGRES_BYTES = Sql(text("SELECT pg_database_size(current_database())"))


def facts(tx: Transaction, heard_after: datetime) -> SystemFacts:
    ((waiting, oldest),) = tx.rows(_WAITING)
    ((orders, oldest_order),) = tx.rows(_ORDERS)
    ((closing,),) = tx.rows(_CLOSING)
    ((nodes, silent),) = tx.rows(_NODES, heard_after=micros(heard_after))
    ((balance,),) = tx.rows(_BALANCE)
    ((open_ones, strays),) = tx.rows(_OPEN)
    ((stretches, estimated),) = tx.rows(_STRETCHES)
    ((size,),) = tx.rows(_SQLITE_BYTES if tx.dialect is SQLITE else _POSTGRES_BYTES)
    return SystemFacts(
        waiting_tasks=waiting,
        oldest_waiting_at=moment_or_none(oldest),
        unsettled_orders=orders,
        oldest_order_at=moment_or_none(oldest_order),
        closing_leases=closing,
        nodes=nodes,
        silent_nodes=int(silent or 0),
        balance_microusd=int(balance or 0),
        open_stretches=open_ones,
        stray_stretches=int(strays or 0),
        stretches=stretches,
        estimated_stretches=int(estimated or 0),
        database_bytes=int(size),
        revision=REVISION,
    )
