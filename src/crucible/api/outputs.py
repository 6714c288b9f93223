"""What the tasks of a job left behind: which have left something, and addresses of every byte of it."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, job_id_of
from crucible.model.errors import InvalidRequest
from crucible.model.job import Job
from crucible.model.outputs import Output
from crucible.ports.objects import Signed
from crucible.wire import outputs as wire

_INDEX = re.compile(r"[0-9]{1,6}")


class OutputRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/jobs/{job_id}/outputs", self.list, wire.Outputs)
        add(router, "GET", "/v1/jobs/{job_id}/outputs/{task_index}", self.get, wire.OutputView)

    async def list(
        self,
        request: Request,
        job_id: str,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
        cursor: Annotated[str | None, Query(max_length=20)] = None,
    ) -> Response:
        """Tasks that have left something, in their order."""
        job, after = await self._job(request, job_id), -1 if cursor is None else index_of(cursor, "cursor")
        found = await self._deps.store.outputs(job.id, after, limit + 1)
        more = str(found[limit - 1].task_index) if len(found) > limit else None
        return json_reply({"items": [item(one) for one in found[:limit]], "next_cursor": more})

    async def get(
        self,
        request: Request,
        job_id: str,
        task_index: str,
        first: Annotated[int, Query(ge=0, le=10_000_000, description="Number of the first object")] = 0,
    ) -> Response:
        """The tree of one, as its manifest and objects, each under an address that needs no token, for a while."""
        job = await self._job(request, job_id)
        output = await self._deps.outputs.find(job, index_of(task_index, "task"))
        manifest, objects, total = await self._deps.outputs.page(output, first)
        return json_reply(
            {
                **item(output),
                "manifest": got(output.digest, None, manifest),
                "first": first,
                "objects": [got(one.name, one.size, signed) for one, signed in objects],
                "total": total,
                "lives_s": self._deps.outputs.lives_s,
            }
        )

    async def _job(self, request: Request, job_id: str) -> Job:
        return await self._deps.service.find(principal(request), job_id_of(job_id))


def index_of(text: str, field: str) -> int:
    """Asked after whose job it is: nobody learns of a foreign one by asking badly."""
    if not _INDEX.fullmatch(text):
        raise InvalidRequest(f"{field} is the number of a task, from 0 on", field=field)
    return int(text)


def item(one: Output) -> dict[str, Any]:
    return {
        "task": one.task_index,
        "digest": one.digest,
        "size_bytes": one.size_bytes,
        "files": one.files,
        "created_at": one.created_at,
    }


def got(name: str, size: int | None, signed: Signed) -> dict[str, Any]:
    return {"name": name, "size": size, "url": signed.url, "headers": dict(signed.headers)}
