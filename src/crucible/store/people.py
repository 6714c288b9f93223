"""Users and their tokens. Only digests of secrets are ever stored."""

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, insert, or_, select, update

from crucible.model.account import Grant, Membership, Principal, Role, Token, User
from crucible.model.audit import AuditEntry
from crucible.model.errors import Conflict, NotFound
from crucible.model.ids import Digest, TokenId, UserId
from crucible.store.account_tables import memberships as member_table
from crucible.store.account_tables import tokens as token_table
from crucible.store.account_tables import users as user_table
from crucible.store.audit import write_audit
from crucible.store.mapping import Rows, micros, moment_or_none
from crucible.store.sql import Sql, Transaction, UniqueViolated, fixed
from crucible.store.teams import save_member

USERS = Rows(User, user_table)
TOKENS = Rows(Token, token_table)

_T, _U, _M = token_table.c, user_table.c, member_table.c
_PRINCIPAL = Sql(  # a row for each of their teams, one without a team if they have none
    select(_U.id, _U.role, _T.id, _T.grants, _T.expires_at, _M.team, _M.role)
    .join(token_table, _T.user_id == _U.id)
    .join(member_table, _M.user_id == _U.id, isouter=True)
    .where(
        _T.digest == bindparam("digest"),
        _T.revoked_at.is_(None),
        _U.disabled_at.is_(None),
        or_(_T.expires_at.is_(None), _T.expires_at > bindparam("now")),
    )
)
_USER = Sql(select(*USERS.columns).where(_U.id == bindparam("id")))
_HOLD_ADMINS = Sql(
    select(_U.id).where(_U.role == fixed(Role.ADMIN), _U.disabled_at.is_(None)).order_by(_U.id).with_for_update()
)
_SAVE_USER = Sql(
    update(user_table)
    .where(_U.id == bindparam("row"))
    .values(role=bindparam("role"), disabled_at=bindparam("disabled_at"))
)
_USERS = Sql(select(*USERS.columns).order_by(_U.created_at, _U.id))
_TOKENS = Sql(select(*TOKENS.columns).order_by(_T.created_at, _T.id))
_TOKENS_OF = Sql(select(*TOKENS.columns).where(_T.user_id == bindparam("user_id")).order_by(_T.created_at, _T.id))
_TOKEN = Sql(select(*TOKENS.columns).where(_T.id == bindparam("id")))
_ADD_USER = Sql(insert(user_table).values(USERS.parameters()))
_ADD_TOKEN = Sql(insert(token_table).values(TOKENS.parameters()))
_REVOKE = Sql(
    update(token_table)
    .where(_T.id == bindparam("token_id"), _T.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"))
)


def principal(tx: Transaction, digest: Digest, now: datetime) -> Principal | None:
    rows = tx.rows(_PRINCIPAL, digest=digest, now=micros(now))
    if not rows:
        return None
    user_id, role, token_id, grants, expires_at, *_ = rows[0]
    teams = {team: Role(role_there) for *_, team, role_there in rows if team is not None}
    given = frozenset(map(Grant, json.loads(grants)))
    return Principal(UserId(user_id), Role(role), TokenId(token_id), teams, given, moment_or_none(expires_at))


def add_user(tx: Transaction, user: User, team: Membership | None, audit: AuditEntry | None) -> None:
    try:
        tx.run(_ADD_USER, USERS.pack(user))
    except UniqueViolated as error:
        raise Conflict(f"there is a user {user.name} already") from error
    if team is not None:
        save_member(tx, team, None)
    write_audit(tx, audit)


def users(tx: Transaction) -> Sequence[User]:
    return USERS.unpack_all(tx.rows(_USERS))


def user(tx: Transaction, user_id: UserId) -> User:
    row = tx.row(_USER, id=user_id)
    if row is None:
        raise NotFound(f"there is no user {user_id}")
    return USERS.unpack(row)


def save_user(tx: Transaction, after: User, audit: AuditEntry | None) -> None:
    admins = {row[0] for row in tx.rows(_HOLD_ADMINS)}
    is_admin = after.role is Role.ADMIN and after.disabled_at is None
    if not is_admin and admins == {after.id}:
        raise Conflict(f"{after.name} is the only admin: make another one first")
    if not tx.run(_SAVE_USER, {name: USERS.pack(after)[name] for name in ("role", "disabled_at")} | {"row": after.id}):
        raise NotFound(f"there is no user {after.id}")
    write_audit(tx, audit)


def add_token(tx: Transaction, token: Token, audit: AuditEntry | None) -> None:
    if tx.row(_USER, id=token.user_id) is None:
        raise NotFound(f"there is no user {token.user_id} to give a token to")
    try:
        tx.run(_ADD_TOKEN, TOKENS.pack(token))
    except UniqueViolated as error:
        raise Conflict(f"the token {token.name} exists already: make a new one") from error
    write_audit(tx, audit)


def tokens(tx: Transaction, user_id: UserId | None) -> Sequence[Token]:
    return TOKENS.unpack_all(tx.rows(_TOKENS) if user_id is None else tx.rows(_TOKENS_OF, user_id=user_id))


def token(tx: Transaction, token_id: TokenId) -> Token:
    row = tx.row(_TOKEN, id=token_id)
    if row is None:
        raise NotFound(f"there is no token {token_id}")
    return TOKENS.unpack(row)


def revoke_token(tx: Transaction, token_id: TokenId, now: datetime, audit: AuditEntry | None) -> None:
    """Revoking twice keeps the first time."""
    if tx.run(_REVOKE, {"token_id": token_id, "now": micros(now)}):
        write_audit(tx, audit)
    else:
        token(tx, token_id)
