"""Checkpoints of a job: which there are, their files, whether every byte is right, and to remove one."""

import re
from collections.abc import AsyncIterator

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.history import task_of
from crucible.api.reply import Pulled, encoded, json_reply
from crucible.api.routing import TaskIndex, add, job_id_of
from crucible.core.checkpoint import Whole
from crucible.engine.stored import Place
from crucible.model.errors import InvalidRequest, PlatformError
from crucible.model.job import Job
from crucible.wire import rest

_STEP = re.compile(r"[0-9]{1,18}")


class CheckpointRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        lines = {200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}
        one = "/v1/jobs/{job_id}/checkpoints/{step}"
        add(router, "GET", "/v1/jobs/{job_id}/checkpoints", self.list, rest.Checkpoints)
        add(router, "GET", f"{one}/files", self.files, rest.CheckpointFiles)
        add(router, "POST", f"{one}/verify", self.verify, None, responses=lines)
        add(router, "DELETE", one, self.remove, rest.CheckpointRemoved)

    async def list(self, request: Request, job_id: str, task: TaskIndex = 0) -> Response:
        """Of the whole lineage: what a resumed job goes on from belongs to all of its chain."""
        rows = await self._deps.checkpoints.rows(await self._job(request, job_id, task), task)
        return json_reply({"items": [views.checkpoint(row, row is rows[-1]) for row in rows]})

    async def files(self, request: Request, job_id: str, step: str, task: TaskIndex = 0) -> Response:
        """Its files, and addresses under which their bytes can be had without a token, for a while."""
        desk, job = self._deps.checkpoints, await self._job(request, job_id, task)
        place, whole = await desk.find(job, task, step_of(step))
        return json_reply(views.checkpoint_files(place, whole, await desk.files(place, whole), desk.lives_s))

    async def verify(self, request: Request, job_id: str, step: str, task: TaskIndex = 0) -> Response:
        """Reads every byte. A JSON line tells how far it is, again and again; the last has `is_valid`."""
        job = await self._job(request, job_id, task)
        place, whole = await self._deps.checkpoints.find(job, task, step_of(step))
        return Pulled(self._verifying(place, whole), "application/x-ndjson", {})

    async def _verifying(self, place: Place, whole: Whole) -> AsyncIterator[bytes]:
        said = {"step": whole.step, "size_bytes": whole.size_bytes, "checked_bytes": 0}
        try:
            async for checked in self._deps.checkpoints.verify(place, whole):
                said["checked_bytes"] = checked.checked_bytes
                if checked.problems is None:
                    yield encoded(said) + b"\n"
                else:
                    yield encoded({**said, "is_valid": not checked.problems, "problems": checked.problems}) + b"\n"
        except PlatformError as error:  # the answer has begun: the trouble can only be told within it
            yield encoded({**said, "error": error.code, "message": error.message}) + b"\n"

    async def remove(self, request: Request, job_id: str, step: str, task: TaskIndex = 0) -> Response:
        """Refused for the newest two of a job that is not over."""
        who, deps = principal(request), self._deps
        job = await deps.service.find_to_change(who, job_id_of(job_id))
        await task_of(deps.store, job, task)
        number = step_of(step)
        await deps.audits.note(who, "checkpoint.remove", f"job:{job.id}", team=job.team, step=number, task=task)
        await deps.checkpoints.remove(job, task, number)
        return json_reply({"removed": number})

    async def _job(self, request: Request, job_id: str, task: int) -> Job:
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        await task_of(self._deps.store, job, task)
        return job


def step_of(text: str) -> int:
    """Asked after whose job it is: nobody learns of a foreign one by asking badly."""
    if not _STEP.fullmatch(text):
        raise InvalidRequest("a step is a whole number from 0 on", field="step")
    return int(text)
