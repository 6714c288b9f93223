"""A request finds the same route, with the same names filled in, as by trying one pattern after another."""

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Match

from crucible.api.access import SOCKET, TABLE
from crucible.api.dispatch import Dispatch

NAMES = ("a", "uploads", "é", "x" * 300, "a\n", "a.b", "..", "rules")


async def nothing() -> Response:
    return Response()


def router() -> APIRouter:
    made = APIRouter(redirect_slashes=False)
    for method, path in TABLE:
        if method != SOCKET:
            made.add_api_route(path, nothing, methods=[method])
    return made


def tried(one: APIRouter, method: str, path: str) -> tuple[APIRoute, dict[str, str]] | None:
    """As the framework does it."""
    scope = {"type": "http", "method": method, "path": path, "root_path": ""}
    for route in one.routes:
        match, found = route.matches(scope)
        if match is Match.FULL and isinstance(route, APIRoute):
            return route, dict(found["path_params"])
    return None


def paths() -> list[str]:
    made = set()
    for _, template in TABLE:
        for name in NAMES:
            parts = [name if part.startswith("{") else part for part in template.split("/")]
            made |= {"/".join(parts), "/".join(parts) + "/", "/".join([*parts, name]), "/" + "/".join(parts)}
    return sorted(made)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_path_leads_where_it_led(method: str) -> None:
    one = router()
    dispatch, found = Dispatch(one), 0
    for path in paths():
        led, leads = tried(one, method, path), dispatch.find(method, path)
        if leads is None:  # the framework's own router is asked
            assert led is None or led[0].path == "/ui/{path:path}", path
        else:
            found += 1
            assert leads == led, path
    assert found > 0 or method in ("OPTIONS", "HEAD", "PATCH")
