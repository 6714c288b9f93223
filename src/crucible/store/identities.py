"""People who sign in elsewhere become users here, and stay the same ones whatever they are called later."""

from dataclasses import replace
from datetime import datetime

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.account import Membership, Role, User, UserKind
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, Forbidden
from crucible.model.identity import Admission, Identity
from crucible.model.ids import UserId
from crucible.store import account_tables as t
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows, micros
from crucible.store.sql import Among, Sql, Transaction, as_list

USERS = Rows(User, t.users)
MEMBERSHIPS = Rows(Membership, t.memberships)

_BY_IDENTITY = Sql(
    select(*USERS.columns)
    .join(t.identities, t.identities.c.user_id == t.users.c.id)
    .where(t.identities.c.issuer == bindparam("issuer"), t.identities.c.subject == bindparam("subject"))
)
_BY_ID = Sql(select(*USERS.columns).where(t.users.c.id == bindparam("id")))
_IDENTITIES_OF = Sql(
    select(t.identities.c.subject).where(
        t.identities.c.user_id == bindparam("user_id"), t.identities.c.issuer == bindparam("issuer")
    )
)
_ADD_USER = Sql(insert(t.users).values(USERS.parameters()))
_LINK = Sql(
    insert(t.identities).values({name: bindparam(name) for name in ("issuer", "subject", "user_id", "created_at")})
)
_SET_ROLE = Sql(update(t.users).where(t.users.c.id == bindparam("of_user")).values(role=bindparam("new_role")))
_TEAMS = Sql(select(t.teams.c.name).where(Among(t.teams.c.name, "names")))
_NEW_MEMBER = upsert(t.memberships).values(MEMBERSHIPS.parameters())
_JOIN = Sql(
    _NEW_MEMBER.on_conflict_do_update(index_elements=["team", "user_id"], set_={"role": _NEW_MEMBER.excluded.role})
)
_LEAVE = Sql(
    delete(t.memberships).where(t.memberships.c.user_id == bindparam("of_user"), Among(t.memberships.c.team, "left"))
)


def sign_in(tx: Transaction, identity: Identity, admission: Admission, audit: AuditEntry) -> User:
    """The user that this identity is, made now if it is new. A name that an admin has made beforehand is theirs, once.
    Of the teams that the provider decides about they are in those that it says, and in no other."""
    row = tx.row(_BY_IDENTITY, issuer=identity.issuer, subject=identity.subject)
    user = _linked(tx, identity, admission, audit.at) if row is None else USERS.unpack(row)
    if user.disabled_at is not None:
        raise Forbidden(f"the user {user.name} is disabled here; ask an admin")
    if admission.role not in (None, user.role):
        user = replace(user, role=admission.role)
        tx.run(_SET_ROLE, {"of_user": user.id, "new_role": user.role.value})
    _sync(tx, user.id, admission, audit.at)
    write_audit(tx, replace(audit, user_id=user.id, subject=f"user:{user.id}"))
    return user


def _linked(tx: Transaction, identity: Identity, admission: Admission, now: datetime) -> User:
    role = admission.role or Role.MEMBER
    new = User(id=UserId(admission.name), name=admission.name, role=role, created_at=now)
    row = tx.row(_BY_ID, id=new.id)
    known = None if row is None else USERS.unpack(row)
    if known is None:
        tx.run(_ADD_USER, USERS.pack(new))
    elif known.kind is UserKind.SERVICE or tx.rows(_IDENTITIES_OF, user_id=new.id, issuer=identity.issuer):
        raise Conflict(f"the name {new.name} belongs to another person or program here; ask an admin")
    link = {"issuer": identity.issuer, "subject": identity.subject, "user_id": new.id, "created_at": micros(now)}
    tx.run(_LINK, link)
    return known or new


def _sync(tx: Transaction, user_id: UserId, admission: Admission, now: datetime) -> None:
    """A team that nobody has made yet is passed over."""
    teams = admission.teams
    there = {name for (name,) in tx.rows(_TEAMS, names=as_list(admission.synced))}
    for team in sorted(there & teams.keys()):
        member = Membership(team=team, user_id=user_id, role=teams[team], created_at=now)
        tx.run(_JOIN, MEMBERSHIPS.pack(member))
    tx.run(_LEAVE, {"of_user": user_id, "left": as_list(sorted(there - teams.keys()))})
