"""How handlers become routes: one place that says what every operation answers and how its errors look."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from crucible.model.errors import InvalidRequest, NotFound
from crucible.model.ids import JobId
from crucible.wire import rest

M = TypeVar("M", bound=BaseModel)

# Answers are written by hand; these classes only describe them.
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": rest.Error, "description": "The request cannot be carried out; the message says why"},
    "5XX": {"model": rest.Error, "description": "The server or its storage failed"},
}

IdempotencyKey = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200, pattern=r"^[\x21-\x7e]+$")]
TaskIndex = Annotated[int, Query(ge=0, le=1_000_000, description="Which task of the job; most jobs have one")]
Offset = Annotated[int, Query(ge=0, lt=2**63)]

MAX_NAME = 200
_JOB_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


def add(
    router: APIRouter,
    method: str,
    path: str,
    endpoint: Callable[..., Any],
    answer: Any,
    *,
    status: int = 200,
    **options: Any,
) -> None:
    """`answer` is the class that describes the JSON of a success."""
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        response_model=answer,
        status_code=status,
        responses=_ERRORS | options.pop("responses", {}),
        response_class=Response if answer is None else JSONResponse,
        tags=[path.split("/")[2] if path.startswith("/v1/") else "other"],
        operation_id=f"{endpoint.__name__}_{method.lower()}_{re.sub(r'[^a-z0-9]+', '_', path).strip('_')}",
        **options,
    )


def queried(model: type[M], request: Request) -> M:
    """The query of a busy route: validated at once, which costs a tenth of what the framework takes for it."""
    try:
        return model.model_validate(dict(request.query_params))
    except ValidationError as error:
        problems = [{**problem, "loc": ("query", *problem["loc"])} for problem in error.errors(include_url=False)]
        raise RequestValidationError(problems) from error


def described_query(model: type[BaseModel]) -> dict[str, Any]:
    """The same for the description, where the framework does not see it."""
    described = model.model_json_schema()
    needed = described.get("required", ())
    parameters = [
        {"name": name, "in": "query", "required": name in needed, "schema": schema}
        for name, schema in described["properties"].items()
    ]
    return {"parameters": parameters}


def job_id_of(text: str) -> JobId:
    """What cannot be the id of a job never reaches the database."""
    if not _JOB_ID.fullmatch(text):
        raise NotFound("no such job")
    return JobId(text)


def named(text: str, what: str) -> str:
    """The same for whatever else goes by a name."""
    if not text.isprintable() or len(text) > MAX_NAME:
        raise NotFound(f"no such {what}")
    return text


def number_in(query: Mapping[str, str], name: str, default: int) -> int:
    """For a WebSocket, whose query nobody checks otherwise."""
    text = query.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise InvalidRequest(f"{name} is a number from 0 on", field=name)
    return int(text)
