"""Work on many items: what workers of a job ask, and what people want to see of it."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import attempt_of, principal
from crucible.api.errors import gone, invalid
from crucible.api.reply import Pulled, json_reply
from crucible.api.routing import add, job_id_of
from crucible.core.shards import ShardProgress
from crucible.engine.spending import so_far_of
from crucible.model.errors import InvalidRequest, NotFound
from crucible.model.ids import AttemptId
from crucible.model.job import Job
from crucible.model.shards import Shard, ShardState
from crucible.model.units import MicroUsd, usd
from crucible.wire import shards as wire

After = Annotated[int, Query(ge=-1, lt=2**31, description="Shards above this number")]
Limit = Annotated[int, Query(ge=1, le=1000)]
M = TypeVar("M", bound=BaseModel)


class ShardRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        # Not part of the public description: `crucible.train` and the server are one product.
        add(router, "POST", "/worker/v1/shards/lease", self.lease, None, include_in_schema=False)
        add(router, "POST", "/worker/v1/shards/renew", self.renew, None, include_in_schema=False)
        add(router, "POST", "/worker/v1/shards/commit", self.commit, None, include_in_schema=False)
        add(router, "POST", "/worker/v1/shards/objects", self.objects, None, include_in_schema=False)
        lines = {200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}
        data = {200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
        add(router, "GET", "/v1/jobs/{job_id}/shards", self.list, wire.ShardPage)
        add(router, "GET", "/v1/jobs/{job_id}/results", self.output, None, responses=data)
        add(router, "GET", "/v1/jobs/{job_id}/errors", self.errors, None, responses=lines)

    # --- workers --------------------------------------------------------------------------------------------

    async def lease(self, request: Request) -> Response:
        return await self._told(request, wire.LeaseRequest, self._deps.shards.lease)

    async def renew(self, request: Request) -> Response:
        return await self._told(request, wire.RenewRequest, self._deps.shards.renew)

    async def commit(self, request: Request) -> Response:
        return await self._told(request, wire.CommitRequest, self._deps.shards.commit)

    async def objects(self, request: Request) -> Response:
        return await self._told(request, wire.ObjectsRequest, self._deps.shards.locate)

    async def _told(
        self, request: Request, shape: type[M], answer: Callable[[AttemptId, M], Awaitable[BaseModel]]
    ) -> Response:
        try:
            asked = shape.model_validate_json(await request.body())
            said = await answer(attempt_of(request), asked)
        except ValidationError as error:
            return invalid(error.errors(include_url=False, include_input=False))
        except NotFound as error:
            return gone(error)
        return Response(said.model_dump_json(), media_type="application/json")

    # --- people ---------------------------------------------------------------------------------------------

    async def list(
        self, request: Request, job_id: str, after: After = -1, limit: Limit = 100, state: str = ""
    ) -> Response:
        """How far it is, and its shards in their order; `state` is waiting, leased or done."""
        job = await self._job(request, job_id)
        found = await self._deps.store.shards(job.id, after=after, limit=limit, state=_state(state))
        more = found[-1].number if len(found) == limit else None
        cost = (await so_far_of(self._deps.store, self._deps.clock, [job.id]))[job.id]
        counts = await shard_counts(self._deps, job, cost)
        return json_reply({"counts": counts, "items": [item(one) for one in found], "next_after": more})

    async def output(self, request: Request, job_id: str) -> Response:
        """What was committed so far, in the order of the items. Breaks off if storage does."""
        job = await self._job(request, job_id)
        return Pulled(self._deps.shard_outputs.output(job), "application/octet-stream", {})

    async def errors(self, request: Request, job_id: str) -> Response:
        """A JSON line for each item that failed: index, item where it has a name, reason."""
        job = await self._job(request, job_id)
        return Pulled(self._deps.shard_outputs.errors(job), "application/x-ndjson", {})

    async def _job(self, request: Request, job_id: str) -> Job:
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        self._deps.shard_outputs.shards_of(job)
        return job


async def shard_counts(deps: Deps, job: Job, cost: MicroUsd) -> dict[str, Any] | None:
    """None: it works on no items."""
    found = await deps.shard_outputs.progress(job, cost)
    return None if found is None else counts(found)


def counts(found: ShardProgress) -> dict[str, Any]:
    tally = found.tally
    return {
        "shards": tally.shards,
        "waiting": tally.waiting,
        "leased": tally.leased,
        "done": tally.done,
        "items": tally.items,
        "items_done": tally.items_done,
        "items_failed": tally.items_failed,
        "fraction": found.fraction,
        "items_per_s": found.items_per_s,
        "eta_s": found.eta_s,
        "usd_per_item": None if found.cost_per_item is None else usd(found.cost_per_item),
        "output_bytes": tally.output_bytes,
        "first_error": tally.first_error,
    }


def item(shard: Shard) -> dict[str, Any]:
    return {
        "number": shard.number,
        "first": shard.first,
        "items": shard.items,
        "state": shard.state,
        "attempt_id": shard.attempt_id,
        "tries": shard.tries,
        "failed": shard.failed,
        "errors": [dict(one) for one in shard.errors],
        "size_bytes": shard.size_bytes,
        "seconds": shard.seconds,
        "leased_at": shard.leased_at,
        "done_at": shard.done_at,
    }


def _state(text: str) -> ShardState | None:
    try:
        return ShardState(text) if text else None
    except ValueError:
        known = ", ".join(ShardState)
        raise InvalidRequest(f"{text[:64]!r} is no state of a shard; they are {known}", field="state") from None
