"""Messages to channels. That a notice was looked at and the messages it became are one transaction: a crash leaves it
fresh, or told. What is fresh is marked in its own row: numbers of rows may become visible out of their order, and who
remembered only the last number would miss one."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, bindparam, func, insert, not_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.core.alerts import subject_of
from crucible.model.account import Principal, Role
from crucible.model.alert import AlertRule, Delivery, DeliveryState, Told
from crucible.model.errors import StaleVersion
from crucible.model.fan_out import FanOut, Fresh, Heard
from crucible.model.ids import AlertChannelId, DeliveryId, JobId, TokenId, UserId
from crucible.model.job import Job
from crucible.model.notice import Notice
from crucible.store.account_tables import memberships, notices, users
from crucible.store.alert_tables import alert_channels, deliveries, delivery_notices
from crucible.store.alerts import rules
from crucible.store.entities import JOBS
from crucible.store.mapping import Rows, micros
from crucible.store.notices import NOTICES
from crucible.store.sql import Among, Sql, Transaction, as_list, fixed, fixed_set
from crucible.store.tables import FINISHED_JOBS, jobs

DELIVERIES = Rows(Delivery, deliveries)

_D, _I = deliveries.c, delivery_notices.c
_WAITING = _D.state == fixed(DeliveryState.WAITING)
_FRESH = Sql(
    select(notices.c.seq, *NOTICES.columns)
    .where(notices.c.fanned_at.is_(None))
    .order_by(notices.c.seq)
    .limit(bindparam("limit"))
)
_FANNED = Sql(update(notices).where(notices.c.seq == bindparam("of")).values(fanned_at=bindparam("at")))
_JOB_NAMES = Sql(select(jobs.c.id, jobs.c.name).where(Among(jobs.c.id, "ids")))
_OWNERS = Sql(select(users.c.id, users.c.role).where(Among(users.c.id, "ids"), users.c.disabled_at.is_(None)))
_TEAMS = Sql(
    select(memberships.c.user_id, memberships.c.team, memberships.c.role).where(Among(memberships.c.user_id, "ids"))
)
_UNTRIED = Sql(select(*DELIVERIES.columns).where(_WAITING, _D.tries == 0))
_NEWEST = (
    select(_D.channel_id, _D.subject, func.max(_D.created_at).label("at"))
    .where(Among(_D.subject, "subjects"))
    .group_by(_D.channel_id, _D.subject)
    .subquery()
)
_LAST = Sql(
    select(*DELIVERIES.columns).join(
        _NEWEST,
        and_(_D.channel_id == _NEWEST.c.channel_id, _D.subject == _NEWEST.c.subject, _D.created_at == _NEWEST.c.at),
    )
)
_NEW = upsert(deliveries).values(DELIVERIES.parameters())
_WRITE = Sql(
    _NEW.on_conflict_do_update(
        index_elements=["id"], set_={name: _NEW.excluded[name] for name in ("severity", "not_before")}
    )
)
_ITEM = Sql(insert(delivery_notices).values(delivery_id=bindparam("delivery_id"), notice_seq=bindparam("notice_seq")))


def has_fresh(tx: Transaction) -> bool:
    return tx.row(_FRESH, limit=1) is not None


def fan_out(tx: Transaction, decide: Callable[[Fresh], FanOut], now: datetime, limit: int) -> int:
    heard = _heard(tx, limit)
    if not heard:
        return 0
    fan = decide(_fresh(tx, heard))
    tx.run_many(_WRITE, [DELIVERIES.pack(one) for one in fan.deliveries])
    tx.run_many(_ITEM, [{"delivery_id": name, "notice_seq": seq} for name, seq in fan.items])
    tx.run_many(_FANNED, [{"of": one.seq, "at": micros(now)} for one in heard])
    return len(heard)


def _heard(tx: Transaction, limit: int) -> Sequence[Heard]:
    found = [(int(row[0]), NOTICES.unpack(row[1:])) for row in tx.rows(_FRESH, limit=limit)]
    ids = {one.job_id for _, one in found if one.job_id is not None}
    names = {row[0]: row[1] for row in tx.rows(_JOB_NAMES, ids=as_list(sorted(ids)))} if ids else {}
    return [Heard(seq, one, names.get(one.job_id)) for seq, one in found]


def _fresh(tx: Transaction, heard: Sequence[Heard]) -> Fresh:
    known = rules(tx)
    subjects = {subject_of(one.notice) for one in heard}
    return Fresh(
        heard=heard,
        rules=known,
        owners=_owners(tx, known),
        waiting=DELIVERIES.unpack_all(tx.rows(_UNTRIED)),
        last=_last(tx, subjects),
    )


def _owners(tx: Transaction, known: Sequence[AlertRule]) -> Mapping[UserId, Principal]:
    ids = as_list(sorted({one.user_id for one in known}))
    teams: dict[str, dict[str, Role]] = {}
    for user_id, team, role in tx.rows(_TEAMS, ids=ids):
        teams.setdefault(user_id, {})[team] = Role(role)
    return {
        UserId(row[0]): Principal(UserId(row[0]), Role(row[1]), TokenId(""), teams.get(row[0], {}))
        for row in tx.rows(_OWNERS, ids=ids)
    }


def _last(tx: Transaction, subjects: Collection[str]) -> Mapping[tuple[AlertChannelId, str], Delivery]:
    found = DELIVERIES.unpack_all(tx.rows(_LAST, subjects=as_list(sorted(subjects))))
    return {(one.channel_id, one.subject): one for one in found}


# --- sending --------------------------------------------------------------------------------------------------------

_DUE = Sql(
    select(*DELIVERIES.columns)
    .where(_WAITING, _D.not_before <= bindparam("now"), not_(Among(_D.channel_id, "without")))
    .order_by(_D.tries, _D.not_before, _D.id)
    .limit(bindparam("limit"))
)
_OF_DELIVERY = Sql(
    select(*NOTICES.columns)
    .join(delivery_notices, _I.notice_seq == notices.c.seq)
    .where(_I.delivery_id == bindparam("delivery_id"))
    .order_by(notices.c.seq)
)
_SAVE = Sql(
    update(deliveries)
    .where(_D.id == bindparam("row_id"), _WAITING, _D.tries == bindparam("seen"))
    .values({name: bindparam(name) for name in ("not_before", "state", "tries", "error", "ended_at")})
)


def due(tx: Transaction, now: datetime, limit: int, without: Collection[AlertChannelId]) -> Sequence[Delivery]:
    return DELIVERIES.unpack_all(tx.rows(_DUE, now=micros(now), limit=limit, without=as_list(sorted(without))))


def notices_of(tx: Transaction, delivery_id: DeliveryId) -> Sequence[Notice]:
    return NOTICES.unpack_all(tx.rows(_OF_DELIVERY, delivery_id=delivery_id))


def save(tx: Transaction, before: Delivery, after: Delivery) -> None:
    packed = DELIVERIES.pack(after)
    changed = {name: packed[name] for name in ("not_before", "state", "tries", "error", "ended_at")}
    if not tx.run(_SAVE, {**changed, "row_id": before.id, "seen": before.tries}):
        raise StaleVersion(f"the message {before.id} was tried by another server meanwhile")


# --- who was told, and which jobs may be late -------------------------------------------------------------------------

_TOLD = Sql(
    select(*DELIVERIES.columns, alert_channels.c.name)
    .join(delivery_notices, _I.delivery_id == _D.id)
    .outerjoin(alert_channels, alert_channels.c.id == _D.channel_id)
    .where(_I.notice_seq == bindparam("seq"))
    .order_by(_D.created_at, _D.id)
)
_LATE = Sql(
    select(*JOBS.columns)
    .where(
        jobs.c.deadline_at.is_not(None), jobs.c.status.not_in(fixed_set(FINISHED_JOBS)), jobs.c.id > bindparam("after")
    )
    .order_by(jobs.c.id)
    .limit(bindparam("limit"))
)


def told(tx: Transaction, seq: int) -> Sequence[Told]:
    return [Told(DELIVERIES.unpack(row[:-1]), row[-1] or "removed") for row in tx.rows(_TOLD, seq=seq)]


def deadline_jobs(tx: Transaction, after: JobId | None, limit: int) -> Sequence[Job]:
    return JOBS.unpack_all(tx.rows(_LATE, after=after or "", limit=limit))
