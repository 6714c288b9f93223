"""One shape for everything that goes wrong: {"error": code, "message": …, "details": {…}}, as in seed 000. What is our
own fault is logged with the request's id; the client sees the id and nothing else."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.reply import json_reply
from crucible.model.errors import Busy, InvariantBroken, NotFound, PlatformError, Unauthenticated
from crucible.wire.rest import FORMS

_CODES = {404: "not_found", 405: "method_not_allowed", 408: "timeout", 413: "too_large"}


def refusal(error: Exception, request: Request) -> Response | None:
    """The answer to a request that ended so; None: that is our bug, and its words are not for the client."""
    if isinstance(error, PlatformError) and not isinstance(error, InvariantBroken):
        return error_reply(same_words(error, request.path_params))
    if isinstance(error, RequestValidationError):
        return invalid(error.errors())
    return _unserved(error, request) if isinstance(error, HTTPException) else None


def error_reply(error: PlatformError) -> Response:
    headers: dict[str, str] = {}
    if isinstance(error, Busy):
        headers["retry-after"] = str(max(1, round(error.retry_after_s)))
    if isinstance(error, Unauthenticated):
        headers["www-authenticate"] = "Bearer"
    return _reply(error.status, error.code, error.message, error.details, headers)


def gone(error: NotFound) -> Response:
    """To a node whose lease is over: it must not ask again, but end."""
    return _reply(410, "gone", error.message, error.details, {})


def internal_error(request_id: str) -> Response:
    message = f"something is broken on the server; tell its operator the request id {request_id}"
    return _reply(500, "internal", message, {"request_id": request_id}, {})


def invalid(problems: Sequence[Mapping[str, Any]]) -> Response:
    """The answer to a request that does not have the right shape; `problems` as pydantic lists them."""
    found = [{"field": ".".join(str(part) for part in p["loc"]), "message": _words(p)} for p in problems]
    first = found[0] if found else {"field": "", "message": "the request is malformed"}
    field = first["field"].removeprefix("body.")
    message = f"{field}: {first['message']}" if field else first["message"]
    details = {"field": first["field"], "problems": found[:20]}
    return _reply(422, "invalid_request", message, details, {})


def _words(problem: Mapping[str, Any]) -> str:
    form = FORMS.get(problem.get("ctx", {}).get("pattern", ""))
    return str(problem["msg"]) if form is None else f"write {form}"


def same_words(error: PlatformError, path: Mapping[str, str]) -> PlatformError:
    """A foreign job and one that does not exist must not be told apart, whoever noticed."""
    if isinstance(error, NotFound) and not error.details and "job_id" in path:
        return NotFound(f"there is no job {path['job_id'][:64]}")
    return error


def _unserved(error: HTTPException, request: Request) -> Response:
    """What the framework itself refuses."""
    code = _CODES.get(error.status_code, "invalid_request")
    message = f"{HTTPStatus(error.status_code).phrase}: {request.method} {request.url.path}; see /v1/openapi.json"
    return _reply(error.status_code, code, message, {}, dict(error.headers or {}))


def _reply(status: int, code: str, message: str, details: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    return json_reply({"error": code, "message": message, "details": dict(details)}, status, headers)
