"""Job templates: to look at them, to fill one in, to store and remove one's own."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.engine.templates import TemplateView
from crucible.wire import templates as wire


class TemplateRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/templates", self.list, wire.Templates)
        add(router, "POST", "/v1/templates", self.store, wire.TemplateView, status=201)
        add(router, "GET", "/v1/templates/{name}", self.get, wire.TemplateView)
        add(router, "DELETE", "/v1/templates/{name}", self.remove, None, status=204)
        add(router, "POST", "/v1/templates/{name}/fill", self.fill, wire.Filled)

    async def list(self, request: Request) -> Response:
        """Those that come with Crucible, then those that people stored."""
        return json_reply({"items": [item(one) for one in await self._deps.templates.all()]})

    async def store(self, request: Request, body: wire.TemplateNew) -> Response:
        """A new one, or a new text of one's own."""
        saved = await self._deps.templates.save(principal(request), body.body)
        return json_reply({**item(saved), "body": saved.body}, 201)

    async def get(self, request: Request, name: str) -> Response:
        found = await self._deps.templates.find(name)
        return json_reply({**item(found), "body": found.body})

    async def remove(self, request: Request, name: str) -> Response:
        """One's own; an admin may remove any but those that come with Crucible."""
        await self._deps.templates.remove(principal(request), name)
        return Response(status_code=204)

    async def fill(self, request: Request, name: str, body: wire.Fill) -> Response:
        """The job that it gives with these parameters; nothing is submitted."""
        return json_reply({"spec_yaml": await self._deps.templates.fill(name, body.parameters)})


def item(one: TemplateView) -> dict[str, Any]:
    template = one.template
    return {
        "name": one.name,
        "description": "" if template is None else template.description,
        "user": None if one.stored is None else one.stored.user_id,
        "created_at": None if one.stored is None else one.stored.created_at,
        "parameters": [] if template is None else [parameter.view() for parameter in template.parameters],
        "problem": one.problem or None,
    }
