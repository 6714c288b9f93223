"""Who may see and do what. What somebody may not see does not exist for them: whoever asks raises NotFound; what they
see and may not change is Forbidden."""

from crucible.model.account import Principal, Role, Sight
from crucible.model.errors import Forbidden
from crucible.model.ids import UserId
from crucible.model.job import Job


def is_admin(who: Principal) -> bool:
    return who.role is Role.ADMIN


def role_in(who: Principal, team: str | None) -> Role | None:
    """None: they have nothing to do with it. An admin is one everywhere."""
    if is_admin(who):
        return Role.ADMIN
    return None if team is None else who.teams.get(team)


def sees(who: Principal, owner: UserId, team: str | None) -> bool:
    """What belongs to `owner`, and to `team` if there is one."""
    return owner == who.user_id or role_in(who, team) is not None


def changes(who: Principal, owner: UserId, team: str | None) -> bool:
    """Their own, unless they only look; and a team's, if they manage it."""
    if who.role is Role.VIEWER:
        return False
    return owner == who.user_id or manages(who, team)


def manages(who: Principal, team: str | None) -> bool:
    role = role_in(who, team)
    return who.role is not Role.VIEWER and role is not None and role.covers(Role.MANAGER)


def runs_in(who: Principal, team: str | None) -> bool:
    """May their jobs be counted under it? Without a team: anybody's who runs jobs at all."""
    if who.role is Role.VIEWER:
        return False
    role = role_in(who, team)
    return team is None or (role is not None and role.covers(Role.MEMBER))


def sight(who: Principal) -> Sight | None:
    """The same for a list, which a database makes; None: everything."""
    return None if is_admin(who) else Sight(who.user_id, frozenset(who.teams))


def sees_job(who: Principal, job: Job) -> bool:
    return sees(who, job.user_id, job.team)


def changes_job(who: Principal, job: Job) -> bool:
    return changes(who, job.user_id, job.team)


def require_manager(who: Principal, team: str) -> None:
    if not manages(who, team):
        raise Forbidden(f"only managers of the team {team} may do that; ask one, or an admin")
