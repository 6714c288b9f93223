"""People and programs that may ask, what they belong to, what they are allowed. Only digests of secrets are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from crucible.model.ids import Digest, TokenId, UserId


class Role(StrEnum):
    """Everybody has one on the server (viewer, member or admin) and one in each of their teams (viewer, member or
    manager). Each may do what those before it may."""

    VIEWER = "viewer"  # looks
    MEMBER = "member"  # runs jobs, and changes their own
    MANAGER = "manager"  # of a team: changes everybody's jobs there, its members, projects, budgets and secrets
    ADMIN = "admin"  # of the server: everything

    @property
    def rank(self) -> int:
        return _RANKS[self]

    def covers(self, other: "Role") -> bool:
        return self.rank >= other.rank


_RANKS = {role: number for number, role in enumerate(Role)}


class Grant(StrEnum):
    """What a token may be used for, of what its user may do."""

    READ = "read"  # look at jobs, costs, prices, teams
    JOBS = "jobs"  # submit and change jobs, datasets, templates
    MANAGE = "manage"  # teams, projects, budgets, alerts, secrets, tokens
    ADMIN = "admin"  # users, hosts, providers, retention
    METRICS = "metrics"  # /metrics and nothing else


class UserKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"  # a program: continuous integration, a scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    id: UserId
    name: str
    role: Role
    created_at: datetime
    kind: UserKind = UserKind.PERSON
    disabled_at: datetime | None = None  # none of their tokens opens anything any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """`digest` is sha256 of the secret; the secret itself is shown once and never stored. No grants: everything that
    its user may do."""

    id: TokenId
    user_id: UserId
    name: str
    digest: Digest
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    name: str
    created_at: datetime
    created_by: UserId


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    team: str
    user_id: UserId
    role: Role  # viewer, member or manager
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What costs are counted under. It belongs to one team; its name is one of a kind on the server."""

    name: str
    team: str
    created_at: datetime
    created_by: UserId


@dataclass(frozen=True, slots=True)
class Sight:
    """Whose things somebody sees in a list: their own, and those of their teams."""

    user_id: UserId
    teams: frozenset[str]


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking."""

    user_id: UserId
    role: Role
    token_id: TokenId
    teams: Mapping[str, Role] = field(default_factory=dict)
    grants: frozenset[Grant] = frozenset()  # empty: all
    expires_at: datetime | None = None  # of the token

    def is_granted(self, grant: Grant) -> bool:
        """Whoever may change something may look."""
        may_look = grant is Grant.READ and self.grants != {Grant.METRICS}
        return not self.grants or may_look or grant in self.grants


@dataclass(frozen=True, slots=True)
class Standing:
    """What somebody is at this moment, whoever asks: what their jobs may use follows from it."""

    role: Role
    teams: Mapping[str, Role]
