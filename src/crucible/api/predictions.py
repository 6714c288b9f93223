"""How good predictions were: what was estimated beside what came of it. Only figures over many jobs: whose they were is
not said."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.core.telemetry import scores_of
from crucible.model.job import JobStatus
from crucible.ports.store import PredictionQuery
from crucible.wire import predictions as wire


class PredictionRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        asked = described_query(wire.AccuracyQuery)
        add(router, "GET", "/v1/predictions/accuracy", self.accuracy, wire.AccuracyReport, openapi_extra=asked)

    async def accuracy(self, request: Request) -> Response:
        """Of the newest completed jobs: all together, then by GPU and kind of model."""
        asked = queried(wire.AccuracyQuery, request)
        query = PredictionQuery(**asked.model_dump(), status=JobStatus.COMPLETED)
        done = await self._deps.store.predictions(query)
        overall, *groups = scores_of(done)
        answer: dict[str, Any] = {
            "jobs": len(done),
            "since": min((one.ended_at for one in done if one.ended_at is not None), default=None),
            "overall": asdict(overall),
            "groups": [asdict(group) for group in groups],
        }
        return json_reply(answer)
