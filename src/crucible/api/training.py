"""Seed 002's names for jobs: /api/v1/training. The same jobs, the same rules; only the words differ."""

from typing import Any

import yaml
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import views
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.jobs import described
from crucible.api.reply import json_reply
from crucible.api.routing import IdempotencyKey, add, job_id_of
from crucible.model.errors import InvalidRequest
from crucible.model.job import Job
from crucible.wire import rest


class TrainingRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "POST", "/api/v1/training", self.start, rest.TrainingStarted, status=201)
        add(router, "GET", "/api/v1/training/{job_id}", self.get, rest.TrainingView)
        add(router, "POST", "/api/v1/training/{job_id}/resume", self.resume, rest.TrainingStarted, status=201)

    async def start(self, request: Request, body: rest.Training, idempotency_key: IdempotencyKey = None) -> Response:
        """Either a spec, or a model plugin with its config."""
        job = await self._deps.service.submit(
            principal(request),
            name=body.name,
            spec_yaml=_spec_of(body),
            idempotency_key=idempotency_key,
            traceparent=request.headers.get("traceparent"),
        )
        return json_reply(_started(job), 201)

    async def get(self, request: Request, job_id: str) -> Response:
        job = await self._deps.service.find(principal(request), job_id_of(job_id))
        return json_reply({**await described(self._deps, job), "job_id": job.id})

    async def resume(self, request: Request, job_id: str) -> Response:
        return json_reply(_started(await self._deps.service.resume(principal(request), job_id_of(job_id))), 201)


def _spec_of(body: rest.Training) -> str:
    if (body.spec_yaml is None) == (body.model_name is None):
        raise InvalidRequest("send either spec_yaml, or model_name with config", field="model_name")
    if body.spec_yaml is not None:
        return body.spec_yaml
    config = dict(body.config)
    job: dict[str, Any] = {"type": "training", "model": {"plugin": body.model_name, "config": config}}
    if "executor" in config:  # seed 002's dispatcher: asked for → there
        job["execution"] = {"executor": config.pop("executor")}
    return yaml.safe_dump({"job": job}, sort_keys=False, allow_unicode=True)


def _started(job: Job) -> dict[str, Any]:
    return {"job_id": job.id, "execution_id": job.id, **views.submitted(job)}
