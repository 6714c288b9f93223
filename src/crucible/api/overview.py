"""How the jobs that somebody sees stand: counted by state, what is held for them, and what that costs an hour."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.cost_views import money
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.model.ids import UserId
from crucible.model.job import JobStatus
from crucible.ports.figures import MOST_COUNTED
from crucible.ports.store import JobQuery
from crucible.wire import overview as wire


class OverviewRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        asked = described_query(wire.OverviewQuery)
        add(router, "GET", "/v1/overview", self.overview, wire.Overview, openapi_extra=asked)

    async def overview(self, request: Request) -> Response:
        """Of your jobs and those of your teams; an admin's has everybody's."""
        asked = queried(wire.OverviewQuery, request)
        query = JobQuery(
            seen_by=await self._deps.teams.sight(principal(request), asked.project or None),
            user_id=UserId(asked.user) if asked.user else None,
            team=asked.team or None,
            project=asked.project or None,
            name=asked.name or None,
        )
        found = await self._deps.store.overview(query)
        return json_reply(
            {
                "at": self._deps.clock.now(),
                "jobs": {status.value: found.jobs.get(status, 0) for status in JobStatus},
                "most_counted": MOST_COUNTED,
                "machines": found.machines,
                "gpus": {"held": found.gpus, "computing": found.busy_gpus},
                **money("per_hour", found.per_hour),
            }
        )
