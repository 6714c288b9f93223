"""Before a job: is the spec right, where would it run, and is its code here?"""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible import spec as specs
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.model.encoding import encode
from crucible.model.errors import NotFound
from crucible.model.ids import Digest
from crucible.wire import rest
from crucible.wire.plans import Plan


class PlanningRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        binary = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": _BINARY}}}}
        add(router, "POST", "/v1/plan", self.plan, Plan)
        add(router, "POST", "/v1/validate", self.validate, rest.Validated)
        add(router, "GET", "/v1/spec/schema", self.schema, dict[str, Any])
        add(router, "GET", "/v1/spec/examples", self.examples, rest.SpecExamples)
        add(router, "HEAD", "/v1/packages/{digest}", self.has_package, None, responses={404: {}, 400: {}, 401: {}})
        add(router, "PUT", "/v1/packages/{digest}", self.put_package, rest.Package, status=201, openapi_extra=binary)

    async def plan(self, request: Request, body: rest.PlanAsked) -> Response:
        """Where it would run and why; nothing is submitted."""
        service = self._deps.service
        made = await service.plan(principal(request), body.spec_yaml, strategy=body.strategy, why_not=body.why_not)
        return json_reply(made)

    async def validate(self, request: Request, body: rest.SpecOnly) -> Response:
        """Timeless: a deadline that has passed is a warning here, and refused at submit."""
        loaded = specs.load(await self._deps.templates.resolved(body.spec_yaml))
        return json_reply({"valid": True, "warnings": [encode(problem) for problem in loaded.warnings]})

    async def schema(self, request: Request) -> Response:
        """JSON Schema of a job file, for editors that complete and check YAML."""
        return json_reply(specs.schema())

    async def examples(self, request: Request) -> Response:
        """Job files to start from."""
        return json_reply(
            {"items": [{"name": name, "about": about, "spec_yaml": text()} for name, about, text in _EXAMPLES]}
        )

    async def has_package(self, request: Request, digest: str) -> Response:
        """200 if the server has it."""
        if not await self._deps.blobs.has(Digest(digest)):
            raise NotFound(f"no package {digest}")
        return Response()

    async def put_package(self, request: Request, digest: str) -> Response:
        """The packed code; its name is the sha256 of its content."""
        limit = self._deps.settings.max_package_bytes
        size = await self._deps.blobs.put(Digest(digest), request.stream(), limit)
        return json_reply({"digest": digest, "size_bytes": size}, 201)


_EXAMPLES = (
    ("minimal", "the least that is a job", specs.minimal_example),
    ("full", "every usual field explained", specs.example),
)
_BINARY = {"type": "string", "format": "binary"}
