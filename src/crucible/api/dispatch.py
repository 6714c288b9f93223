"""From a request to its route: by its method and the shape of its path, instead of one pattern after another. What is
not found so (a file of the page, a socket, nothing at all) is the framework's own router to look for, and to refuse."""

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send


class Dispatch:
    def __init__(self, router: APIRouter) -> None:
        """Of all routes that it will ever have."""
        self._router = router
        self._exact: dict[tuple[str, str], APIRoute] = {}
        self._shaped: dict[tuple[str, int], list[APIRoute]] = {}
        for route in router.routes:
            if isinstance(route, APIRoute) and not any(one.regex == ".*" for one in route.param_convertors.values()):
                self._add(route)

    def _add(self, route: APIRoute) -> None:
        for method in route.methods or ():
            if route.param_convertors:
                self._shaped.setdefault((method, route.path.count("/")), []).append(route)
            else:
                self._exact.setdefault((method, route.path), route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self.find(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._router(scope, receive, send)
            return
        route, scope["path_params"] = found
        scope["route"], scope["endpoint"] = route, route.endpoint
        await route.app(scope, receive, send)

    def find(self, method: str, path: str) -> tuple[APIRoute, dict[str, str]] | None:
        """With what the path says in place of each name."""
        exact = self._exact.get((method, path))
        if exact is not None:
            return exact, {}
        for route in self._shaped.get((method, path.count("/")), ()):
            match = route.path_regex.match(path)
            if match is not None:
                return route, match.groupdict()
        return None
