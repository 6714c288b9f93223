"""Teams, their members and projects, as people ask for them. A team that somebody is not in does not exist for them."""

from collections.abc import Sequence
from dataclasses import dataclass

from crucible.core.accounts import check_team_role
from crucible.core.auditing import by
from crucible.core.rights import is_admin, require_manager, role_in, sight
from crucible.engine.context import Context
from crucible.engine.people import People, require_admin
from crucible.model.account import Membership, Principal, Project, Role, Sight, Team
from crucible.model.errors import NotFound
from crucible.model.ids import UserId


@dataclass(frozen=True, slots=True)
class TeamView:
    team: Team
    members: Sequence[Membership]
    projects: Sequence[Project]


class Teams:
    def __init__(self, context: Context, people: People) -> None:
        self._context = context
        self._people = people

    # --- teams --------------------------------------------------------------------------------------------------

    async def all(self, who: Principal) -> Sequence[TeamView]:
        """Those that one is in; all for an admin."""
        store = self._context.store
        teams = [team for team in await store.teams() if role_in(who, team.name) is not None]
        members, projects = await store.memberships([team.name for team in teams]), await store.projects()
        return [
            TeamView(
                team,
                [one for one in members if one.team == team.name],
                [one for one in projects if one.team == team.name],
            )
            for team in teams
        ]

    async def find(self, who: Principal, name: str) -> TeamView:
        for view in await self.all(who):
            if view.team.name == name:
                return view
        raise NotFound(f"there is no team {name}; `crucible team ls` lists yours")

    async def create(self, who: Principal, name: str) -> TeamView:
        require_admin(who)
        now = self._context.clock.now()
        team = Team(name=name, created_at=now, created_by=who.user_id)
        await self._context.store.add_team(team, audit=by(who, now, "team.create", f"team:{name}", team=name))
        return TeamView(team, (), ())

    async def remove(self, who: Principal, name: str) -> None:
        """Raises Conflict while jobs of it are not over."""
        require_admin(who)
        entry = by(who, self._context.clock.now(), "team.remove", f"team:{name}", team=name)
        await self._context.store.remove_team(name, audit=entry)
        self._people.forget()

    # --- members ------------------------------------------------------------------------------------------------

    async def set_member(self, who: Principal, team: str, user_id: UserId, role: Role) -> Membership:
        """A new one, or another role."""
        check_team_role(role)
        await self._check_manages(who, team)
        now = self._context.clock.now()
        member = Membership(team=team, user_id=user_id, role=role, created_at=now)
        entry = by(who, now, "team.member.set", f"team:{team}", team=team, user=user_id, role=role)
        await self._context.store.save_member(member, audit=entry)
        self._people.forget()
        return member

    async def remove_member(self, who: Principal, team: str, user_id: UserId) -> None:
        await self._check_manages(who, team)
        entry = by(who, self._context.clock.now(), "team.member.remove", f"team:{team}", team=team, user=user_id)
        await self._context.store.remove_member(team, user_id, audit=entry)
        self._people.forget()

    # --- projects -----------------------------------------------------------------------------------------------

    async def projects(self, who: Principal, team: str | None = None) -> Sequence[Project]:
        if team is not None:
            return (await self.find(who, team)).projects
        return [one for one in await self._context.store.projects() if role_in(who, one.team) is not None]

    async def project(self, who: Principal, name: str) -> Project:
        for one in await self.projects(who):
            if one.name == name:
                return one
        raise NotFound(f"there is no project {name}; `crucible project ls` lists yours")

    async def sight(self, who: Principal, project: str | None) -> Sight | None:
        """What a list shows them; of a project that they do not see, what is their own."""
        seen = sight(who)
        if seen is None or project is None or project in [one.name for one in await self.projects(who)]:
            return seen
        return Sight(seen.user_id, frozenset())

    async def create_project(self, who: Principal, name: str, team: str) -> Project:
        await self._check_manages(who, team)
        now = self._context.clock.now()
        project = Project(name=name, team=team, created_at=now, created_by=who.user_id)
        entry = by(who, now, "project.create", f"project:{name}", team=team)
        await self._context.store.add_project(project, audit=entry)
        return project

    async def remove_project(self, who: Principal, name: str) -> None:
        project = await self.project(who, name)
        require_manager(who, project.team)
        entry = by(who, self._context.clock.now(), "project.remove", f"project:{name}", team=project.team)
        await self._context.store.remove_project(name, audit=entry)

    async def _check_manages(self, who: Principal, team: str) -> None:
        """A team that they do not see is not there; one that they see may not be theirs to change."""
        if not is_admin(who) and team not in who.teams:
            raise NotFound(f"there is no team {team}; `crucible team ls` lists yours")
        require_manager(who, team)
