"""Users and their tokens. Only digests of secrets are ever stored."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import bindparam, insert, or_, select, update

from crucible.model.errors import Conflict, NotFound
from crucible.model.ids import Digest, TokenId, UserId
from crucible.model.record import Principal, Role, Token, User
from crucible.store.mapping import Rows, micros
from crucible.store.record_tables import tokens as token_table
from crucible.store.record_tables import users as user_table
from crucible.store.sql import Sql, Transaction, UniqueViolated

USERS = Rows(User, user_table)
TOKENS = Rows(Token, token_table)

_T, _U = token_table.c, user_table.c
_PRINCIPAL = Sql(
    select(_U.id, _U.role, _T.id)
    .join(token_table, _T.user_id == _U.id)
    .where(
        _T.digest == bindparam("digest"),
        _T.revoked_at.is_(None),
        or_(_T.expires_at.is_(None), _T.expires_at > bindparam("now")),
    )
)
_USER = Sql(select(_U.id).where(_U.id == bindparam("id")))
_USERS = Sql(select(*USERS.columns).order_by(_U.created_at, _U.id))
_TOKENS = Sql(select(*TOKENS.columns).order_by(_T.created_at, _T.id))
_TOKENS_OF = Sql(select(*TOKENS.columns).where(_T.user_id == bindparam("user_id")).order_by(_T.created_at, _T.id))
_TOKEN = Sql(select(_T.id).where(_T.id == bindparam("id")))
_ADD_USER = Sql(insert(user_table).values(USERS.parameters()))
_ADD_TOKEN = Sql(insert(token_table).values(TOKENS.parameters()))
_REVOKE = Sql(
    update(token_table)
    .where(_T.id == bindparam("token_id"), _T.revoked_at.is_(None))
    .values(revoked_at=bindparam("now"))
)


def principal(tx: Transaction, digest: Digest, now: datetime) -> Principal | None:
    row = tx.row(_PRINCIPAL, digest=digest, now=micros(now))
    return None if row is None else Principal(UserId(row[0]), Role(row[1]), TokenId(row[2]))


def add_user(tx: Transaction, user: User) -> None:
    try:
        tx.run(_ADD_USER, USERS.pack(user))
    except UniqueViolated as error:
        raise Conflict(f"there is a user {user.name} already") from error


def users(tx: Transaction) -> Sequence[User]:
    return USERS.unpack_all(tx.rows(_USERS))


def add_token(tx: Transaction, token: Token) -> None:
    if tx.row(_USER, id=token.user_id) is None:
        raise NotFound(f"there is no user {token.user_id} to give a token to")
    try:
        tx.run(_ADD_TOKEN, TOKENS.pack(token))
    except UniqueViolated as error:
        raise Conflict(f"the token {token.name} exists already: make a new one") from error


def tokens(tx: Transaction, user_id: UserId | None) -> Sequence[Token]:
    return TOKENS.unpack_all(tx.rows(_TOKENS) if user_id is None else tx.rows(_TOKENS_OF, user_id=user_id))


def revoke_token(tx: Transaction, token_id: TokenId, now: datetime) -> None:
    """Revoking twice keeps the first time."""
    revoked = tx.run(_REVOKE, {"token_id": token_id, "now": micros(now)})
    if not revoked and tx.row(_TOKEN, id=token_id) is None:
        raise NotFound(f"there is no token {token_id}")
