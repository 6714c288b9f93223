"""Who is asking, and what people may be given. Secrets are shown once; only their digests are kept."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from crucible.core.accounts import acts_for, check_new_user, grants_given, life_given
from crucible.core.auditing import by
from crucible.core.rights import is_admin, manages
from crucible.engine.context import Context
from crucible.model.account import Grant, Membership, Principal, Role, Token, User, UserKind
from crucible.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unauthenticated
from crucible.model.ids import Digest, TokenId, UserId

# Long enough to spare a query per request, short enough that a revoked token dies at once for a person.
TOKEN_CACHE_S = 5.0
TOKENS_REMEMBERED = 10_000


class People:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._principals: dict[str, tuple[Principal, float]] = {}

    async def authenticate(self, secret: str) -> Principal:
        clock = self._context.clock
        digest = digest_of(secret)
        known = self._principals.get(digest)
        if known is not None and known[1] > clock.monotonic():
            return known[0]
        principal = await self._context.store.principal(digest, clock.now())
        if principal is None:
            self._principals.pop(digest, None)
            raise Unauthenticated("the token is unknown, expired or revoked; `crucible login` saves a new one")
        if len(self._principals) >= TOKENS_REMEMBERED:
            self._principals.clear()
        self._principals[digest] = (principal, clock.monotonic() + TOKEN_CACHE_S)
        return principal

    def forget(self) -> None:
        """Somebody's rights have changed: this server looks again at once, others within seconds."""
        self._principals.clear()

    # --- users ------------------------------------------------------------------------------------------------

    async def users(self, who: Principal) -> Sequence[tuple[User, Mapping[str, Role]]]:
        """With their teams: everybody for an admin, else those who are in a team that one manages."""
        teams = await self._teams_of()
        managed = {team for team in who.teams if manages(who, team)}
        everybody = [(user, teams.get(user.id, {})) for user in await self._context.store.users()]
        return [(user, its) for user, its in everybody if is_admin(who) or managed & its.keys()]

    async def user(self, who: Principal, user_id: UserId) -> tuple[User, Mapping[str, Role]]:
        for user, teams in await self.users(who):
            if user.id == user_id:
                return user, teams
        raise NotFound(f"there is no user {user_id}")

    async def create_user(
        self, who: Principal, *, name: str, role: Role, kind: UserKind = UserKind.PERSON, team: str | None = None
    ) -> User:
        """With a first team they are members of it, or look at it if that is all they may do."""
        check_new_user(who, role, kind, team)
        now = self._context.clock.now()
        user = User(id=UserId(name), name=name, role=role, created_at=now, kind=kind)
        there = Role.VIEWER if role is Role.VIEWER else Role.MEMBER
        first = None if team is None else Membership(team=team, user_id=user.id, role=there, created_at=now)
        entry = by(who, now, "user.create", f"user:{name}", team=team, role=role, kind=kind)
        await self._context.store.add_user(user, team=first, audit=entry)
        return user

    async def change_user(
        self, who: Principal, user_id: UserId, *, role: Role | None = None, is_disabled: bool | None = None
    ) -> User:
        """Raises Conflict if no admin would be left, or who asks would lock themselves out."""
        require_admin(who)
        store, now = self._context.store, self._context.clock.now()
        user = after = await store.user(user_id)
        if is_disabled and user_id == who.user_id:
            raise Conflict("nobody disables themselves: another admin must do it")
        if role is not None:
            after = replace(after, role=role)
        if is_disabled is not None and is_disabled != (user.disabled_at is not None):
            after = replace(after, disabled_at=now if is_disabled else None)
        if after != user:
            await store.save_user(after, audit=by(who, now, "user.change", f"user:{user.name}", **changed(user, after)))
            self.forget()
        return after

    async def _teams_of(self) -> Mapping[UserId, Mapping[str, Role]]:
        found: dict[UserId, dict[str, Role]] = {}
        for one in await self._context.store.memberships():
            found.setdefault(one.user_id, {})[one.team] = one.role
        return found

    # --- tokens -----------------------------------------------------------------------------------------------

    async def tokens(self, who: Principal, user_id: UserId | None = None) -> Sequence[Token]:
        """One's own; an admin's list has everybody's."""
        if user_id is not None:
            await self._check_acts_for(who, user_id)
            return await self._context.store.tokens(user_id)
        return await self._context.store.tokens(None if is_admin(who) else who.user_id)

    async def create_token(
        self,
        who: Principal,
        *,
        name: str,
        user: UserId | None = None,
        expires_at: datetime | None = None,
        grants: Collection[Grant] = (),
    ) -> tuple[Token, str]:
        """The secret is shown once; only its digest is kept."""
        now, user_id = self._context.clock.now(), user or who.user_id
        if expires_at is not None and (expires_at.tzinfo is None or expires_at <= now):
            raise InvalidRequest("expires_at must be a moment to come, with its time zone", field="expires_at")
        await self._check_acts_for(who, user_id)
        expires_at = life_given(who, expires_at)
        token, secret = self._new_token(user_id, name, grants_given(who, grants), now, expires_at)
        told: dict[str, Any] = {
            "user": user_id,
            "name": name,
            "grants": list(token.grants) or None,
            "expires_at": moment(expires_at),
        }
        await self._context.store.add_token(token, audit=by(who, now, "token.create", f"token:{token.id}", **told))
        return token, secret

    def _new_token(
        self, user_id: UserId, name: str, grants: tuple[Grant, ...], now: datetime, expires_at: datetime | None
    ) -> tuple[Token, str]:
        secret = f"cru_{self._context.random.token()}"
        token = Token(
            id=TokenId(self._context.ids.new("token")),
            user_id=user_id,
            name=name,
            digest=digest_of(secret),
            created_at=now,
            expires_at=expires_at,
            grants=grants,
        )
        return token, secret

    async def revoke_token(self, who: Principal, token_id: TokenId) -> None:
        store, now = self._context.store, self._context.clock.now()
        token = await store.token(token_id)
        try:
            await self._check_acts_for(who, token.user_id)
        except (Forbidden, NotFound):
            raise NotFound(f"there is no token {token_id}") from None
        entry = by(who, now, "token.revoke", f"token:{token_id}", user=token.user_id, name=token.name)
        await store.revoke_token(token_id, now, audit=entry)
        self.forget()

    async def _check_acts_for(self, who: Principal, user_id: UserId) -> None:
        if user_id == who.user_id:
            return
        if not is_admin(who) and not any(manages(who, team) for team in who.teams):
            raise Forbidden("only an admin, or who manages a team, makes and sees tokens of others")
        user, teams = await self.user(who, user_id)
        if not acts_for(who, user, teams):
            raise Forbidden(f"tokens of {user_id} are for admins: you manage no service of that name all by yourself")


def digest_of(secret: str) -> Digest:
    return Digest(hashlib.sha256(secret.encode()).hexdigest())


def require_admin(who: Principal) -> None:
    if not is_admin(who):
        raise Forbidden("only an admin may do that")


def changed(before: User, after: User) -> dict[str, Any]:
    """In words, for the log."""
    told: dict[str, Any] = {}
    if after.role is not before.role:
        told |= {"role": after.role, "was": before.role}
    if after.disabled_at != before.disabled_at:
        told["disabled"] = after.disabled_at is not None
    return told


def moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()
