"""What people may give to others: roles, tokens, grants. Nobody gives more than they have."""

from collections.abc import Collection, Mapping
from datetime import datetime

from crucible.core.rights import is_admin, manages
from crucible.model.account import Grant, Principal, Role, User, UserKind
from crucible.model.errors import Forbidden, InvalidRequest

# Roles that there are on the server and in a team.
SERVER_ROLES = (Role.VIEWER, Role.MEMBER, Role.ADMIN)
TEAM_ROLES = (Role.VIEWER, Role.MEMBER, Role.MANAGER)
# What only an admin's token can be for.
OF_ADMINS = frozenset({Grant.ADMIN, Grant.METRICS})


def check_new_user(who: Principal, role: Role, kind: UserKind, team: str | None) -> None:
    """Admins make anybody; who manages a team makes programs for it."""
    if is_admin(who) and who.is_granted(Grant.ADMIN):
        return
    if kind is not UserKind.SERVICE or team is None:
        raise Forbidden(
            "only an admin makes users; who manages a team makes services for it: kind service, with a team"
        )
    if not manages(who, team):
        raise Forbidden(f"only managers of the team {team} may make services for it")
    if not who.role.covers(role):
        raise Forbidden(f"you are a {who.role} and cannot make anybody {role}")


def acts_for(who: Principal, user: User, teams: Mapping[str, Role]) -> bool:
    """Whether they may make and revoke tokens of `user`, who is in `teams`: their own, and those of services that can
    do nothing they cannot do themselves. An admin: anybody's."""
    if user.id == who.user_id or is_admin(who):
        return True
    is_within = bool(teams) and all(manages(who, team) for team in teams)
    return user.kind is UserKind.SERVICE and user.role is not Role.ADMIN and is_within


def grants_given(who: Principal, asked: Collection[Grant]) -> tuple[Grant, ...]:
    """What a new token is for. A token for certain uses makes none for others; without any asked for, it makes its
    like."""
    wanted = frozenset(asked) or who.grants
    if who.grants and not wanted <= who.grants:
        raise Forbidden(f"this token is for {named(who.grants)} and makes none for {named(wanted - who.grants)}")
    if not is_admin(who) and wanted & OF_ADMINS:
        raise Forbidden(f"only an admin makes tokens for {named(wanted & OF_ADMINS)}")
    return tuple(sorted(wanted))


def life_given(who: Principal, asked: datetime | None) -> datetime | None:
    """Until when a new token is good; None: for ever. A token for certain uses makes none that outlives it."""
    if not who.grants or who.expires_at is None:
        return asked
    if asked is not None and asked > who.expires_at:
        until = f"{who.expires_at:%Y-%m-%d %H:%M} UTC"
        raise Forbidden(f"this token is good until {until} and makes none that lives longer")
    return asked or who.expires_at


def check_team_role(role: Role) -> None:
    if role not in TEAM_ROLES:
        raise InvalidRequest(f"roles in a team are {', '.join(TEAM_ROLES)}", field="role")


def named(grants: Collection[Grant]) -> str:
    return ", ".join(sorted(grants))
