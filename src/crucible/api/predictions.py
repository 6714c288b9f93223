"""How good predictions were: what was estimated beside what came of it. Only figures over many jobs: whose they were is
not said."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.core.rights import is_admin
from crucible.core.telemetry import KEYS, scores_of, trend_of
from crucible.model.errors import InvalidRequest
from crucible.model.job import JobStatus
from crucible.ports.store import PredictionQuery
from crucible.wire import predictions as wire

SHORT = {"class": "model_class"}


class PredictionRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        asked = described_query(wire.AccuracyQuery)
        add(router, "GET", "/v1/predictions/accuracy", self.accuracy, wire.AccuracyReport, openapi_extra=asked)

    async def accuracy(self, request: Request) -> Response:
        """Of the newest completed jobs: all together, by GPU and kind of model or whatever else, and week by week."""
        asked, who = queried(wire.AccuracyQuery, request), principal(request)
        by = keys(asked.by)
        query = PredictionQuery(**asked.model_dump(exclude={"by"}), status=JobStatus.COMPLETED)
        done = await self._deps.store.predictions(query)
        if "team" in by and not is_admin(who):
            done = [one for one in done if one.team in who.teams]
        overall, *groups = scores_of(done, by)
        answer: dict[str, Any] = {
            "jobs": len(done),
            "since": min((one.ended_at for one in done if one.ended_at is not None), default=None),
            "overall": asdict(overall),
            "groups": [asdict(group) for group in groups],
            "trend": [asdict(week) for week in trend_of(done, wire.WEEKS)],
        }
        return json_reply(answer)


def keys(text: str) -> tuple[str, ...]:
    """Raises InvalidRequest."""
    found = tuple(SHORT.get(word, word) for word in text.split(",") if word)
    unknown = [word for word in found if word not in KEYS]
    if unknown or len(set(found)) < len(found):
        raise InvalidRequest(f"accuracy is told by one or several of {', '.join(KEYS)}, each once", field="by")
    return found
