"""People, tokens, teams, projects and the log of changes in the REST API."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Name, Request, UserName

MAX_LINES = 1000

TeamName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Subject = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
ServerRole = Literal["viewer", "member", "admin"]
TeamRole = Literal["viewer", "member", "manager"]
GrantName = Literal["read", "jobs", "manage", "admin", "metrics"]
Kind = Literal["person", "service"]


# --- requests -------------------------------------------------------------------------------------


class NewTokenRequest(Request):
    name: Name
    user: UserName | None = None  # somebody else: for admins, and for managers whose service it is
    expires_at: datetime | None = None
    grants: Annotated[tuple[GrantName, ...], Field(max_length=5)] = ()  # none: whatever its user may do


class TokenListQuery(BaseModel):
    user: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._@-]*$", description="Whose tokens")] = ""


class NewUser(Request):
    name: UserName
    role: ServerRole = "member"
    kind: Kind = "person"
    team: TeamName | None = None  # that they are in from the start


class UserChange(Request):
    role: ServerRole | None = None
    disabled: bool | None = None


class NewTeam(Request):
    name: TeamName


class MemberRole(Request):
    role: TeamRole = "member"


class NewProject(Request):
    name: TeamName
    team: TeamName


class ProjectListQuery(BaseModel):
    team: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""


class AuditListQuery(BaseModel):
    team: Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    user: Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._@-]*$", description="Who did it")] = ""
    subject: Annotated[Subject, Field(description="What was changed, such as team:vision")] = ""
    before: Annotated[int, Field(ge=1, lt=2**63, description="`next_before` of a page")] | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_LINES)] = 100


# --- answers --------------------------------------------------------------------------------------


class TokenItem(BaseModel):
    id: str
    name: str
    user_id: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    grants: list[GrantName]


class Tokens(BaseModel):
    items: list[TokenItem]


class NewToken(TokenItem):
    token: str  # shown once


class UserItem(BaseModel):
    id: str
    name: str
    role: ServerRole
    kind: Kind
    created_at: datetime
    disabled_at: datetime | None
    teams: dict[str, TeamRole]


class Users(BaseModel):
    items: list[UserItem]


class Me(BaseModel):
    user_id: str
    name: str
    role: ServerRole
    token_id: str
    teams: dict[str, TeamRole]
    grants: list[GrantName]


class Member(BaseModel):
    user_id: str
    role: TeamRole
    created_at: datetime


class Members(BaseModel):
    items: list[Member]


class ProjectItem(BaseModel):
    name: str
    team: str
    created_at: datetime
    created_by: str


class Projects(BaseModel):
    items: list[ProjectItem]


class TeamItem(BaseModel):
    name: str
    created_at: datetime
    created_by: str
    role: Literal["viewer", "member", "manager", "admin"]  # of whoever asks
    members: int
    projects: list[str]


class Teams(BaseModel):
    items: list[TeamItem]


class AuditItem(BaseModel):
    seq: int
    at: datetime
    user_id: str
    token_id: str
    action: str
    subject: str
    team: str | None
    details: dict[str, Any]


class AuditPage(BaseModel):
    items: list[AuditItem]
    next_before: int | None


class AuditSeal(BaseModel):
    lines: int  # the number of the last line that was looked at
    digest: str  # of that line: it seals all before it
    broken: int | None  # the first line that does not follow from those before it
