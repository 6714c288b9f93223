"""Secrets: to set one, to see which there are, to remove one. No route returns a value to a person."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.engine.secrets import Whose
from crucible.model.errors import InvalidRequest
from crucible.model.secret import SECRET_NAME, SecretFacts
from crucible.wire import secrets as wire

_NAME = re.compile(SECRET_NAME)
Team = Annotated[str | None, Query(max_length=200, description="A secret of this team")]
Project = Annotated[str | None, Query(max_length=200, description="A secret of this project")]


class SecretRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/secrets", self.list, wire.SecretList)
        add(router, "PUT", "/v1/secrets/{name}", self.set, wire.SecretItem)
        add(router, "DELETE", "/v1/secrets/{name}", self.remove, None, status=204)
        add(router, "POST", "/v1/secrets-key/rotate", self.rotate, wire.KeyRotated)

    async def list(self, request: Request, team: Team = None, project: Project = None) -> Response:
        """Yours, those of your teams and of their projects: names, and who set them when. Never a value."""
        found = await self._deps.secrets.listed(principal(request), Whose(team, project))
        return json_reply({"items": [item(one) for one in found]})

    async def set(
        self, request: Request, name: str, body: wire.SecretNew, team: Team = None, project: Project = None
    ) -> Response:
        """A new secret or a new value of it: your own, or that of a team or project that you manage."""
        try:
            value = body.secret()
        except ValueError as error:
            raise InvalidRequest(str(error), field="value_base64") from None
        whose = Whose(team, project)
        return json_reply(item(await self._deps.secrets.set(principal(request), whose, named(name), value)))

    async def remove(self, request: Request, name: str, team: Team = None, project: Project = None) -> Response:
        """For good. Attempts that run keep what they were given."""
        await self._deps.secrets.remove(principal(request), Whose(team, project), named(name))
        return Response(status_code=204)

    async def rotate(self, request: Request) -> Response:
        """Makes a new key, seals every secret with it, and forgets the keys that nothing needs any more."""
        done = await self._deps.secret_keys.rotate(principal(request))
        return json_reply(
            {
                "key_id": done.key_id,
                "secrets": done.secrets,
                "forgotten": list(done.forgotten),
                "damaged": list(done.damaged),
            }
        )


def named(name: str) -> str:
    """What is no name is not repeated: it may be the value."""
    if not _NAME.fullmatch(name):
        said = "a secret is named by letters, digits and _, up to 128; names that start with CRUCIBLE_ are ours"
        raise InvalidRequest(said, field="name")
    return name


def item(one: SecretFacts) -> dict[str, Any]:
    return {
        "name": one.name,
        "owner_kind": one.owner_kind,
        "owner": one.owner,
        "version": one.version,
        "set_by": one.set_by,
        "set_at": one.set_at,
        "used_at": one.used_at,
    }
