"""The server itself: is it alive, is it ready, which version, and what can be asked of it."""

from fastapi import APIRouter, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.api.shutdown import Shutdown
from crucible.model.errors import PlatformError
from crucible.wire import rest
from crucible.wire.agent import PROTOCOL


class SystemRoutes:
    def __init__(self, deps: Deps, app: FastAPI, shutdown: Shutdown) -> None:
        self._deps = deps
        self._app = app
        self._shutdown = shutdown

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/healthz", self.healthz, rest.Alive)
        add(router, "GET", "/readyz", self.readyz, rest.Alive, responses={503: {"model": rest.Alive}})
        add(router, "GET", "/v1/health", self.health, rest.Health)
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
        """What `crucible doctor` shows of this server's machines."""
        return json_reply(await self._deps.health())

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
