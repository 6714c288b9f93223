"""People and programs that may ask, their teams and projects, and the log of what they changed. Every change can bring
the line that is logged of it: both are written, or neither."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from crucible.model.account import Membership, Principal, Project, Team, Token, User
from crucible.model.audit import AuditEntry
from crucible.model.ids import Digest, TokenId, UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Newest first; None means any."""

    teams: frozenset[str] | None = None  # lines that concern one of these
    user_id: UserId | None = None
    subject: str | None = None
    before: int | None = None  # the number of a line
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Seal:
    """How far the log was found to be whole."""

    seq: int = 0
    digest: str = ""
    broken: int | None = None  # the first line that does not follow from those before it


class AccountBook(Protocol):
    async def principal(self, digest: Digest, now: datetime) -> Principal | None:
        """Who holds the token with this digest, with their teams; None if it is unknown, expired or revoked, or its
        user disabled."""
        ...

    # --- users and tokens -------------------------------------------------------------------------------------
    async def add_user(self, user: User, *, team: Membership | None = None, audit: AuditEntry | None = None) -> None:
        """With a first team, if there is one. Raises Conflict for a name that is taken, NotFound for no such team."""
        ...

    async def users(self) -> Sequence[User]: ...
    async def user(self, user_id: UserId) -> User:
        """Raises NotFound."""
        ...

    async def save_user(self, user: User, *, audit: AuditEntry | None = None) -> None:
        """Role and whether they are disabled. Raises NotFound, and Conflict if no admin would be left."""
        ...

    async def add_token(self, token: Token, *, audit: AuditEntry | None = None) -> None: ...
    async def tokens(self, user_id: UserId | None = None) -> Sequence[Token]: ...
    async def token(self, token_id: TokenId) -> Token:
        """Raises NotFound."""
        ...

    async def revoke_token(self, token_id: TokenId, now: datetime, *, audit: AuditEntry | None = None) -> None:
        """Revoking twice keeps the first time. Raises NotFound."""
        ...

    # --- teams and projects -----------------------------------------------------------------------------------
    async def add_team(self, team: Team, *, audit: AuditEntry | None = None) -> None:
        """Raises Conflict for a name that is taken."""
        ...

    async def teams(self) -> Sequence[Team]: ...
    async def remove_team(self, name: str, *, audit: AuditEntry | None = None) -> None:
        """With its members and projects. Raises NotFound, and Conflict while jobs of it are not over."""
        ...

    async def memberships(self, of: Collection[str] | None = None) -> Sequence[Membership]:
        """Of these teams, or of all; by team and user."""
        ...

    async def save_member(self, membership: Membership, *, audit: AuditEntry | None = None) -> None:
        """A new one, or another role. Raises NotFound for no such team or user."""
        ...

    async def remove_member(self, team: str, user_id: UserId, *, audit: AuditEntry | None = None) -> None:
        """Raises NotFound."""
        ...

    async def add_project(self, project: Project, *, audit: AuditEntry | None = None) -> None:
        """Raises Conflict for a name that is taken, NotFound for no such team."""
        ...

    async def projects(self) -> Sequence[Project]: ...
    async def remove_project(self, name: str, *, audit: AuditEntry | None = None) -> None:
        """Raises NotFound, and Conflict while jobs of it are not over."""
        ...

    # --- the log ----------------------------------------------------------------------------------------------
    async def audit_lines(self, query: AuditQuery) -> Sequence[tuple[int, AuditEntry]]: ...

    async def check_audit(self, seal: Seal, limit: int = 1000) -> Seal:
        """How far it is whole after the next `limit` lines; the same seal if there are none."""
        ...
