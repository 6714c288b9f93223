"""From a request to the arguments of its endpoint: path, query, headers and body are read and judged by the framework's
own fields, without the layers that it has around them for what no route of ours uses."""

from typing import Any

import orjson
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from crucible.model.errors import InvariantBroken


def called(route: APIRoute) -> ASGIApp:
    """The route's endpoint, as an application."""
    needs, endpoint = route.dependant, route.endpoint
    if needs.cookie_params or needs.dependencies:
        raise InvariantBroken(f"{route.path}: an endpoint takes the request, its path, query, headers and body")
    is_plain = not (needs.query_params or needs.header_params or needs.body_params) and all(
        field.field_info.annotation is str for field in needs.path_params
    )
    name = needs.request_param_name

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        values = dict(scope["path_params"]) if is_plain else await arguments(route, request)
        if name is not None:
            values[name] = request
        response: Response = await endpoint(**values)
        await response(scope, receive, send)

    return call


async def arguments(route: APIRoute, request: Request) -> dict[str, Any]:
    needs, values, problems = route.dependant, dict[str, Any](), list[Any]()
    for fields, received in (
        (needs.path_params, request.path_params),
        (needs.query_params, request.query_params if needs.query_params else {}),
        (needs.header_params, request.headers),
    ):
        found, wrong = request_params_to_args(fields, received)
        values |= found
        problems += wrong
    if needs.body_params:
        found, wrong = await request_body_to_args(
            needs.body_params, await _body(request), embed_body_fields=len(needs.body_params) > 1
        )
        values |= found
        problems += wrong
    if problems:
        raise RequestValidationError(problems)
    return values


async def _body(request: Request) -> Any:
    """By orjson: quick, and strict about text that no database or terminal could take (lone surrogates). What does not
    say that it is JSON is none."""
    try:
        body = await request.body()
    except ClientDisconnect as error:
        raise HTTPException(400) from error  # nobody is left to read it, and it is no bug of ours
    if not body or not _is_json(request.headers.get("content-type", "")):
        return body or PydanticUndefined
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error"}
        raise RequestValidationError([problem]) from error


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
