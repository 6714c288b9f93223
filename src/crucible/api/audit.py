"""The log of who changed what. It is only read here: a line is written by the change itself."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import account_views as views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.model.ids import UserId
from crucible.wire import accounts as wire


class AuditRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        asked = described_query(wire.AuditListQuery)
        add(router, "GET", "/v1/audit", self.lines, wire.AuditPage, openapi_extra=asked)
        add(router, "GET", "/v1/audit/seal", self.seal, wire.AuditSeal)

    async def lines(self, request: Request) -> Response:
        """Newest first: everything for an admin, what concerns their teams for managers."""
        asked = queried(wire.AuditListQuery, request)
        found = await self._deps.audits.lines(
            principal(request),
            team=asked.team or None,
            user_id=UserId(asked.user) if asked.user else None,
            subject=asked.subject or None,
            before=asked.before,
            limit=asked.limit + 1,
        )
        shown = found[: asked.limit]
        more = shown[-1][0] if len(found) > asked.limit else None
        return json_reply({"items": [views.line(*one) for one in shown], "next_before": more})

    async def seal(self, request: Request) -> Response:
        """Every line is read: does each follow from those before it?"""
        seal = await self._deps.audits.check()
        return json_reply({"lines": seal.seq, "digest": seal.digest, "broken": seal.broken})
