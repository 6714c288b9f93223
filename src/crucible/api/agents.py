"""The agents' routes, as drawn in wire.agent. Bodies are read by pydantic straight from the bytes: reports are the most
frequent and the largest thing that a server hears."""

import re

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import bearer
from crucible.api.errors import gone, invalid
from crucible.api.hanging_up import unless_hung_up
from crucible.api.reply import Pulled
from crucible.api.routing import add
from crucible.api.shutdown import Shutdown
from crucible.model.errors import InvalidRequest, NotFound
from crucible.model.ids import Digest
from crucible.wire import agent as wire
from crucible.wire import datasets as trees
from crucible.wire import outputs as left

_SHA256 = re.compile(r"[0-9a-f]{64}")


class AgentRoutes:
    def __init__(self, deps: Deps, shutdown: Shutdown) -> None:
        self._deps = deps
        self._shutdown = shutdown

    def add_to(self, router: APIRouter) -> None:
        # Not part of the public description: agents and server are one product and know each other's words.
        add(router, "POST", "/agent/v1/report", self.report, None, include_in_schema=False)
        add(router, "GET", "/agent/v1/work", self.work, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/enrol", self.enrol, None, include_in_schema=False)
        add(router, "GET", "/agent/v1/packages/{digest}", self.package, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/storage/slot", self.slot, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/storage/candidate", self.candidate, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/datasets", self.tree, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/datasets/fetched", self.fetched, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/outputs", self.output, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/outputs/whole", self.whole, None, include_in_schema=False)
        add(router, "POST", "/agent/v1/secrets", self.secrets, None, include_in_schema=False)
        add(router, "GET", "/v1/agent/{sha256}", self.program, None, include_in_schema=False)

    async def enrol(self, request: Request) -> Response:
        try:
            message = wire.Enrol.model_validate_json(await request.body())
            return _said(await self._deps.gateway.enrol(bearer(request), message))
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        except NotFound as error:
            return gone(error)

    async def program(self, request: Request, sha256: str) -> Response:
        """The agent itself, for a machine that was ordered and waits for nothing else."""
        await self._deps.gateway.admit(bearer(request))
        if not _SHA256.fullmatch(sha256):
            raise NotFound("an agent is named by its sha256 in lower-case hex")
        try:
            pieces = self._deps.agents.get(Digest(sha256))
        except NotFound:
            raise NotFound("this server has no such agent") from None
        return Pulled(pieces, "application/octet-stream", {"etag": f'"{sha256}"'})

    async def work(self, request: Request) -> Response:
        """A long poll; ends at once when the server stops."""
        seen = request.query_params.get("seen") or None
        wait_s = _seconds(request.query_params.get("wait", "0"))
        try:
            poll = self._deps.gateway.work(bearer(request), seen, wait_s)
            work = await self._shutdown.unless_stopping(unless_hung_up(request, poll))
            if work is not None:
                return _said(work)
            await self._deps.gateway.hung_up(bearer(request))
            return Response()  # nobody hears it
        except NotFound as error:
            return gone(error)

    async def report(self, request: Request) -> Response:
        try:
            report = wire.Report.model_validate_json(await request.body())
            return _said(await self._deps.gateway.report(bearer(request), report))
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        except NotFound as error:
            return gone(error)

    async def slot(self, request: Request) -> Response:
        """Where the next checkpoint of a rank may go."""
        try:
            asked = wire.SlotRequest.model_validate_json(await request.body())
            return _said(await self._deps.gateway.slot(bearer(request), asked))
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        except NotFound as error:
            return gone(error)

    async def candidate(self, request: Request) -> Response:
        """What an attempt may resume from."""
        try:
            asked = wire.CandidateRequest.model_validate_json(await request.body())
            return _said(await self._deps.gateway.candidate(bearer(request), asked))
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        except NotFound as error:
            return gone(error)

    async def tree(self, request: Request) -> Response:
        """Where the dataset of an attempt can be had."""
        try:
            asked = trees.TreeRequest.model_validate_json(await request.body())
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        return _said(await self._deps.gateway.tree(bearer(request), asked))

    async def fetched(self, request: Request) -> Response:
        """It has come."""
        try:
            asked = trees.TreeFetched.model_validate_json(await request.body())
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        return _said(await self._deps.gateway.fetched(bearer(request), asked))

    async def output(self, request: Request) -> Response:
        """Where what a rank left may be put."""
        try:
            asked = left.OutputAsked.model_validate_json(await request.body())
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        return _said(await self._deps.gateway.output(bearer(request), asked))

    async def whole(self, request: Request) -> Response:
        """All of it was put."""
        try:
            asked = left.OutputWhole.model_validate_json(await request.body())
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        return _said(await self._deps.gateway.whole(bearer(request), asked))

    async def secrets(self, request: Request) -> Response:
        """The values that a living attempt of this node wants."""
        try:
            asked = wire.SecretsAsked.model_validate_json(await request.body())
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        return _said(await self._deps.gateway.secrets(bearer(request), asked))

    async def package(self, request: Request, digest: str) -> Response:
        return Pulled(self._deps.blobs.get(Digest(digest)), "application/octet-stream", {})


def _said(message: wire.Message) -> Response:
    return Response(message.model_dump_json(), media_type="application/json")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise InvalidRequest("wait is a number of seconds", field="wait") from None
    return seconds if 0 <= seconds <= 60 else 0.0
