"""What an endpoint is given, and what is refused before it is called."""

import asyncio
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, Header, Query
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.arguments import arguments, called
from crucible.model.errors import InvariantBroken


class Body(BaseModel):
    name: str


async def endpoint(
    request: Request,
    thing_id: str,
    number: int,
    body: Body | None = None,
    limit: Annotated[int, Query(ge=1)] = 50,
    key: Annotated[str | None, Header(alias="Idempotency-Key")] = None,
) -> Response:
    return Response()


def route_of(handler: Any = endpoint) -> APIRoute:
    router = APIRouter()
    router.add_api_route("/things/{thing_id}/{number}", handler, methods=["POST"])
    (route,) = (route for route in router.routes if isinstance(route, APIRoute))
    return route


def given(body: bytes = b"", number: str = "1", query: bytes = b"", **headers: str) -> dict[str, Any]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http",
        "path_params": {"thing_id": "t", "number": number},
        "query_string": query,
        "headers": named,
    }
    return asyncio.run(arguments(route_of(), Request(scope, receive)))


def test_path_query_headers_and_body_are_what_they_are_declared_to_be() -> None:
    found = given(b'{"name": "a"}', "7", b"limit=3", content_type="application/json", idempotency_key="k")
    assert found == {"thing_id": "t", "number": 7, "limit": 3, "key": "k", "body": Body(name="a")}


def test_what_is_not_given_is_as_it_is_declared() -> None:
    assert given() == {"thing_id": "t", "number": 1, "limit": 50, "key": None, "body": None}


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/JSON", "application/merge+json"])
def test_json_has_several_names(kind: str) -> None:
    assert given(b'{"name": "a"}', content_type=kind)["body"] == Body(name="a")


@pytest.mark.parametrize(
    ("body", "kind", "where"),
    [
        (b'{"name": ', "application/json", ("body", 9)),
        (b'{"name": 1}', "application/json", ("body", "name")),
        (b'{"name": "\\ud800"}', "application/json", ("body", 10)),
        (b'{"name": "a"}', "text/plain", ("body",)),
        (b'{"name": "a"}', "", ("body",)),
        (b'["a"]', "application/json", ("body",)),
    ],
)
def test_a_body_that_is_none_is_refused_where_it_is_wrong(body: bytes, kind: str, where: tuple[str, ...]) -> None:
    with pytest.raises(RequestValidationError) as refused:
        given(body, content_type=kind)
    assert refused.value.errors()[0]["loc"] == where


def test_somebody_who_leaves_in_the_middle_of_a_body_is_no_bug_of_ours() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path_params": {"thing_id": "t", "number": "1"}, "query_string": b"", "headers": []}
    with pytest.raises(HTTPException) as refused:
        asyncio.run(arguments(route_of(), Request(scope, receive)))
    assert refused.value.status_code == 400


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(RequestValidationError) as refused:
        given(b"{}", "x", b"limit=0", content_type="application/json")
    assert [problem["loc"] for problem in refused.value.errors()] == [
        ("path", "number"),
        ("query", "limit"),
        ("body", "name"),
    ]


def test_an_endpoint_that_wants_more_is_a_mistake_of_ours() -> None:
    async def spoiled(request: Request, who: Annotated[Response, Depends(endpoint)]) -> Response:
        return who

    with pytest.raises(InvariantBroken, match="an endpoint takes"):
        called(route_of(spoiled))
