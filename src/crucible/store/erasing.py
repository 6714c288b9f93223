"""Forgetting a person: their tokens and memberships go at once, their name is replaced wherever it stands, a bounded
number of rows at a time, and the account itself becomes one that leads to nobody. What was charged is not touched."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Column, and_, bindparam, delete, insert, null, select, true, update
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.account import Role, User
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, NotFound
from crucible.model.ids import JobId, UserId
from crucible.model.retention import Erasure, Kept
from crucible.store import tables as t
from crucible.store.account_tables import tokens, users
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows, micros
from crucible.store.people import USERS
from crucible.store.personal import OF_PEOPLE, ONLY, UNLESS_OF_A_TEAM, Fate
from crucible.store.retention import mark
from crucible.store.retention_tables import erasures, removals
from crucible.store.sql import Among, Sql, Transaction, as_list, fixed_set

ERASURES = Rows(Erasure, erasures)
NAMED_JOBS = 3

_J = t.jobs.c
_IS_OVER = _J.status.in_(fixed_set(t.FINISHED_JOBS))
_OF = _J.user_id == bindparam("of")
_USER = Sql(select(users.c.id).where(users.c.id == bindparam("id")).with_for_update())
_AT_WORK = Sql(select(_J.id).where(_OF, _J.removed_at.is_(None), ~_IS_OVER).order_by(_J.created_at).limit(NAMED_JOBS))
_BEGUN = Sql(select(*ERASURES.columns).where(erasures.c.user_id == bindparam("user_id")))
_ALL = Sql(select(*ERASURES.columns).order_by(erasures.c.at, erasures.c.user_id))
_BEGIN = Sql(insert(erasures).values(ERASURES.parameters()))
_LOCK_OUT = Sql(delete(tokens).where(tokens.c.user_id == bindparam("of")))
_DISABLE = Sql(update(users).where(users.c.id == bindparam("of")).values(disabled_at=bindparam("now")))


def begin(tx: Transaction, erasure: Erasure, entry: AuditEntry) -> Erasure:
    begun = tx.row(_BEGUN, user_id=erasure.user_id)
    if begun is not None:
        return ERASURES.unpack(begun)
    if tx.row(_USER, id=erasure.user_id) is None:
        raise NotFound(f"there is no user {erasure.user_id}")
    at_work = [row[0] for row in tx.rows(_AT_WORK, of=erasure.user_id)]
    if at_work:
        raise Conflict(f"jobs of {erasure.user_id} are not over: cancel {', '.join(at_work)} first", jobs=at_work)
    tx.run(_BEGIN, ERASURES.pack(erasure))
    tx.run(_LOCK_OUT, {"of": erasure.user_id})
    tx.run(_DISABLE, {"of": erasure.user_id, "now": micros(erasure.at)})
    write_audit(tx, entry)
    return erasure


def begun(tx: Transaction) -> Sequence[Erasure]:
    return ERASURES.unpack_all(tx.rows(_ALL))


# --- a piece at a time -----------------------------------------------------------------------------------------------

_LIMIT: Any = bindparam("limit")
_THERE = Sql(select(_J.id).where(_OF, _J.removed_at.is_(None), _IS_OVER).limit(_LIMIT))
_LEFT = Sql(select(_J.id).where(_OF, _J.removed_at.is_(None)).limit(1))
_STUBS = Sql(
    update(t.jobs)
    .where(_J.id.in_(select(_J.id).where(_OF, _J.removed_at.is_not(None)).limit(_LIMIT)))
    .values(user_id=bindparam("pseudonym"), name="removed")
)
_RENAMED: dict[str, Any] = {"user_id": bindparam("pseudonym"), "reason": null(), "desired_by": null()}
_KEPT = Sql(update(t.jobs).where(Among(_J.id, "ids")).values(_RENAMED))
_REMOVED = Sql(update(t.jobs).where(Among(_J.id, "ids")).values({**_RENAMED, "name": "removed"}))


def erase_some(tx: Transaction, erasure: Erasure, now: datetime, limit: int) -> int:
    """Jobs that began since are left until they are over."""
    who = {"of": erasure.user_id, "pseudonym": erasure.pseudonym, "limit": limit}
    jobs = [JobId(row[0]) for row in tx.rows(_THERE, of=erasure.user_id, limit=limit)]
    if jobs:
        mark(tx, Kept.EVENTS if erasure.keeps_jobs else Kept.JOBS, jobs, now)
        tx.run(_KEPT if erasure.keeps_jobs else _REMOVED, {"ids": as_list(jobs), "pseudonym": erasure.pseudonym})
    return len(jobs) + tx.run(_STUBS, who) + sum(tx.run(_treated(*one), who) for one in _TREATED)


_TREATED = (
    *((column, fate) for column, fate in OF_PEOPLE.items() if column.table is not t.jobs and fate is not Fate.STAYS),
    *((column, Fate.RENAMED) for column in UNLESS_OF_A_TEAM),
)


@cache
def _treated(column: Column[str], fate: Fate) -> Sql:
    table, key = column.table, next(iter(column.table.primary_key.columns))
    mine = and_(column == bindparam("of"), ONLY.get(column, true()))
    if fate is Fate.DELETED and column in UNLESS_OF_A_TEAM:
        mine = and_(mine, table.c.team.is_(None))
    some = and_(mine, key.in_(select(key).where(mine).limit(_LIMIT)))
    if fate is Fate.DELETED:
        return Sql(delete(table).where(some))
    return Sql(update(table).where(some).values({column.name: bindparam("pseudonym")}))


# --- the end ---------------------------------------------------------------------------------------------------------

_OPEN = Sql(
    select(removals.c.job_id)
    .join(t.jobs, _J.id == removals.c.job_id)
    .where(_J.user_id == bindparam("pseudonym"))
    .limit(1)
)
_FORGET = Sql(delete(users).where(users.c.id == bindparam("of")))
_STAND_IN = Sql(upsert(users).values(USERS.parameters()).on_conflict_do_nothing(index_elements=["id"]))
_END = Sql(delete(erasures).where(erasures.c.user_id == bindparam("of")))


def end(tx: Transaction, erasure: Erasure) -> bool:
    """False while something that was decided is not carried out."""
    if tx.row(_OPEN, pseudonym=erasure.pseudonym) is not None or tx.row(_LEFT, of=erasure.user_id) is not None:
        return False
    tx.run(_FORGET, {"of": erasure.user_id})
    tx.run(_STAND_IN, USERS.pack(stand_in(erasure.pseudonym, erasure.at)))
    tx.run(_END, {"of": erasure.user_id})
    return True


def stand_in(pseudonym: UserId, at: datetime) -> User:
    return User(id=pseudonym, name=pseudonym, role=Role.VIEWER, created_at=at, disabled_at=at)
