"""How long spot machines lived with us, added up by kind. The database adds: a month may hold many thousands."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, case, func, select, text
from sqlalchemy.types import BigInteger

from crucible.model.lease import SpotLives
from crucible.store import tables as t
from crucible.store.mapping import micros
from crucible.store.sql import Sql, Transaction

HOUR = 3_600_000_000  # in microseconds

_KIND = (t.orders.c.provider, t.orders.c.region, t.orders.c.instance_type)
_NOW = bindparam("now", type_=BigInteger)
_END = func.coalesce(t.leases.c.ended_at, _NOW)
_LIVED = case((t.leases.c.started_at < _END, _END - t.leases.c.started_at), else_=0)  # clocks are set back at times
_LIVES = Sql(
    select(*_KIND, func.sum(_LIVED), func.sum(case((t.leases.c.was_taken, 1), else_=0)))
    .join(t.leases, t.leases.c.order_id == t.orders.c.id)
    .where(
        text("orders.is_spot"),  # as the partial index says it: only so can it be used
        t.orders.c.created_at > bindparam("since"),
        t.leases.c.started_at.is_not(None),
    )
    .group_by(*_KIND)
    .order_by(*_KIND)
)


def spot_lives(tx: Transaction, since: datetime, now: datetime) -> Sequence[SpotLives]:
    return tuple(
        SpotLives(provider=provider, region=region, instance_type=type_, hours=int(lived) / HOUR, taken=int(taken))
        for provider, region, type_, lived, taken in tx.rows(_LIVES, since=micros(since), now=micros(now))
    )
