"""What the API answers about people, teams and the log of changes, as types over plain JSON."""

from typing import Any, TypedDict


class Token(TypedDict, total=False):
    id: str
    name: str
    user_id: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    grants: list[str]  # none: whatever its user may do


class NewToken(Token):
    token: str


class Ticket(TypedDict):
    code: str
    expires_at: str


class SignInWays(TypedDict):
    ways: list[str]  # token, oidc
    oidc_name: str | None
    label: str | None


class User(TypedDict):
    id: str
    name: str
    role: str
    kind: str
    created_at: str
    disabled_at: str | None
    teams: dict[str, str]


class Me(TypedDict, total=False):
    user_id: str
    name: str
    role: str
    token_id: str
    teams: dict[str, str]
    grants: list[str]


class Team(TypedDict):
    name: str
    created_at: str
    created_by: str
    role: str
    members: int
    projects: list[str]


class Member(TypedDict):
    user_id: str
    role: str
    created_at: str


class Project(TypedDict):
    name: str
    team: str
    created_at: str
    created_by: str


class AuditLine(TypedDict):
    seq: int
    at: str
    user_id: str
    token_id: str
    action: str
    subject: str
    team: str | None
    details: dict[str, Any]


class AuditPage(TypedDict):
    items: list[AuditLine]
    next_before: int | None


class AuditSeal(TypedDict):
    lines: int
    digest: str
    broken: int | None
