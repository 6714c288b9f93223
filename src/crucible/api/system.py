"""The server itself: is it alive, is it ready, which version, and what can be asked of it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.api.shutdown import Shutdown
from crucible.core import system_health
from crucible.core.rights import is_admin
from crucible.model.errors import NotFound, PlatformError
from crucible.wire import rest
from crucible.wire.agent import PROTOCOL

OWN_MACHINES = "local"
HEALTHY, DEGRADED, DOWN = "healthy", "degraded", "down"
MAX_NAME = 40  # of a name that we say again


class SystemRoutes:
    def __init__(self, deps: Deps, app: FastAPI, shutdown: Shutdown) -> None:
        self._deps = deps
        self._app = app
        self._shutdown = shutdown

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/healthz", self.healthz, rest.Alive)
        add(router, "GET", "/readyz", self.readyz, rest.Alive, responses={503: {"model": rest.Alive}})
        add(router, "GET", "/v1/health", self.health, rest.ServerHealth)
        add(router, "GET", "/v1/health/{provider}", self.provider_health, rest.ProviderHealth)
        add(router, "GET", "/v1/version", self.version, rest.Version)
        add(router, "GET", "/v1/openapi.json", self.openapi, None, include_in_schema=False)

    async def healthz(self) -> Response:
        """The process answers. No token needed."""
        return json_reply({"status": "ok"})

    async def readyz(self) -> Response:
        """The storage answers and nobody has told the server to stop. No token needed, so it says no more than that."""
        is_ready = not self._shutdown.is_stopping and await self._storage_answers()
        return json_reply({"status": "ready" if is_ready else "not ready"}, 200 if is_ready else 503)

    async def health(self, request: Request) -> Response:
        """This server's own machines, and how the system is: providers, loops, queues, ledger, database, streams,
        prices, agents. What providers said word by word is for admins."""
        own = [await look() for look in self._deps.healths.get(OWN_MACHINES, ())]
        found = await self._deps.system.checks()
        is_told = is_admin(principal(request))
        system = {"status": system_health.overall(found), "checks": [check(one, is_told=is_told) for one in found]}
        return json_reply({**(own[0] if own else {"status": HEALTHY, "problems": []}), "system": system})

    async def provider_health(self, request: Request, provider: str) -> Response:
        """What `crucible doctor PROVIDER` shows: the provider is asked now, in each of its places."""
        looks = self._deps.healths.get(provider)
        if looks is None:
            enabled = ", ".join(sorted(self._deps.healths))
            raise NotFound(f"no provider {provider[:MAX_NAME]!r} is enabled on this server; enabled: {enabled}")
        places = await asyncio.gather(*(look() for look in looks))
        return json_reply({"provider": provider, "status": overall(places), "places": places})

    async def _storage_answers(self) -> bool:
        try:
            await self._deps.store.servers()
        except PlatformError:
            return False
        return True

    async def version(self, request: Request) -> Response:
        return json_reply({"version": self._deps.settings.version, "api": "v1", "agent_protocol": PROTOCOL})

    async def openapi(self, request: Request) -> Response:
        return json_reply(self._app.openapi())


def check(one: system_health.Check, *, is_told: bool) -> dict[str, Any]:
    """A provider's own words may name accounts."""
    words, details = one.words, one.details
    if not is_told and details.get("error") is not None:
        words, details = f"{words.partition(':')[0]}; an admin sees why", {**details, "error": None}
    return {
        "name": one.name,
        "subject": one.subject,
        "status": one.status,
        "words": words,
        "advice": one.advice,
        "details": details,
    }


def overall(places: Sequence[Mapping[str, Any]]) -> str:
    """Down only if nothing can be bought anywhere."""
    told = {str(place.get("status")) for place in places}
    if told <= {DOWN}:
        return DOWN
    return HEALTHY if told == {HEALTHY} else DEGRADED
