"""Workflows: their steps as they stand."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, job_id_of
from crucible.core.handing import source_of
from crucible.core.workflow import Part
from crucible.engine.spending import so_far_of
from crucible.model.ids import JobId
from crucible.model.units import MicroUsd, usd
from crucible.wire import workflows as wire


class WorkflowRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/jobs/{job_id}/workflow", self.workflow, wire.Workflow)

    async def workflow(self, request: Request, job_id: str) -> Response:
        """The steps of a workflow: what each needs, what became of it, and the job that works for it."""
        job, parts = await self._deps.service.workflow(principal(request), job_id_of(job_id))
        ids = [job.id, *(part.child.id for part in parts if part.child is not None)]
        costs = await so_far_of(self._deps.store, self._deps.clock, ids)
        return json_reply(
            {
                "id": job.id,
                "name": job.name,
                "status": job.status,
                "desired": job.desired,
                "reason": job.reason,
                "origin": job.origin,
                "created_at": job.created_at,
                "started_at": job.started_at,
                "finished_at": job.finished_at,
                "cost_usd": usd(costs[job.id]),
                "steps": [step_view(part, costs) for part in parts],
            }
        )


def step_view(part: Part, costs: Mapping[JobId, MicroUsd]) -> dict[str, Any]:
    step, task, child = part.step, part.task, part.child
    return {
        "index": task.index,
        "name": step.name,
        "needs": step.needs,
        "when": step.when,
        "inputs": step.inputs,
        "for_each": step.for_each,
        "cache": step.cache,
        "phase": task.phase,
        "verdict": task.verdict,
        "reason": task.reason,
        "outputs": task.outputs,
        "job_id": source_of(part) or (None if child is None else child.id),
        "provider": None if child is None else child.selected_provider,
        "region": None if child is None else child.selected_region,
        "started_at": None if child is None else child.started_at,
        "finished_at": None if child is None else child.finished_at,
        "cost_usd": 0.0 if child is None else usd(costs[child.id]),
    }
