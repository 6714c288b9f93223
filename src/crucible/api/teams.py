"""Teams, who is in them, and their projects."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import account_views as views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, named, queried
from crucible.model.account import Role
from crucible.model.ids import UserId
from crucible.wire import accounts as wire


class TeamRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        member = "/v1/teams/{team}/members/{user}"
        add(router, "GET", "/v1/teams", self.teams, wire.Teams)
        add(router, "POST", "/v1/teams", self.create_team, wire.TeamItem, status=201)
        add(router, "GET", "/v1/teams/{team}", self.team, wire.TeamItem)
        add(router, "DELETE", "/v1/teams/{team}", self.remove_team, None, status=204)
        add(router, "GET", "/v1/teams/{team}/members", self.members, wire.Members)
        add(router, "PUT", member, self.set_member, wire.Member)
        add(router, "DELETE", member, self.remove_member, None, status=204)
        add(
            router,
            "GET",
            "/v1/projects",
            self.projects,
            wire.Projects,
            openapi_extra=described_query(wire.ProjectListQuery),
        )
        add(router, "POST", "/v1/projects", self.create_project, wire.ProjectItem, status=201)
        add(router, "GET", "/v1/projects/{project}", self.project, wire.ProjectItem)
        add(router, "DELETE", "/v1/projects/{project}", self.remove_project, None, status=204)

    async def teams(self, request: Request) -> Response:
        """Those that you are in; all for an admin."""
        who = principal(request)
        return json_reply({"items": [views.team(one, who) for one in await self._deps.teams.all(who)]})

    async def team(self, request: Request, team: str) -> Response:
        who = principal(request)
        return json_reply(views.team(await self._deps.teams.find(who, named(team, "team")), who))

    async def create_team(self, request: Request, body: wire.NewTeam) -> Response:
        who = principal(request)
        return json_reply(views.team(await self._deps.teams.create(who, body.name), who), 201)

    async def remove_team(self, request: Request, team: str) -> Response:
        """With its members and projects. Refused while jobs of it are not over; what it has cost stays in the books."""
        await self._deps.teams.remove(principal(request), named(team, "team"))
        return Response(status_code=204)

    async def members(self, request: Request, team: str) -> Response:
        found = await self._deps.teams.find(principal(request), named(team, "team"))
        return json_reply({"items": [views.member(one) for one in found.members]})

    async def set_member(self, request: Request, team: str, user: str, body: wire.MemberRole) -> Response:
        """A new one, or another role. Seen everywhere within seconds."""
        who, user_id = principal(request), UserId(named(user, "user"))
        member = await self._deps.teams.set_member(who, named(team, "team"), user_id, Role(body.role))
        return json_reply(views.member(member))

    async def remove_member(self, request: Request, team: str, user: str) -> Response:
        who, user_id = principal(request), UserId(named(user, "user"))
        await self._deps.teams.remove_member(who, named(team, "team"), user_id)
        return Response(status_code=204)

    async def projects(self, request: Request) -> Response:
        """Of your teams; all for an admin."""
        asked = queried(wire.ProjectListQuery, request)
        found = await self._deps.teams.projects(principal(request), asked.team or None)
        return json_reply({"items": [views.project(one) for one in found]})

    async def project(self, request: Request, project: str) -> Response:
        return json_reply(views.project(await self._deps.teams.project(principal(request), named(project, "project"))))

    async def create_project(self, request: Request, body: wire.NewProject) -> Response:
        """Managers make projects for their team."""
        made = await self._deps.teams.create_project(principal(request), body.name, body.team)
        return json_reply(views.project(made), 201)

    async def remove_project(self, request: Request, project: str) -> Response:
        """Refused while jobs of it are not over."""
        await self._deps.teams.remove_project(principal(request), named(project, "project"))
        return Response(status_code=204)
