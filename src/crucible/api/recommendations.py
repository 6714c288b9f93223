"""Where should this code run? The code is read, never run, and not kept."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.core.router.preferences import OptimizeFor, Preferences
from crucible.core.router.source import SourceFile
from crucible.wire import recommendations as wire

# What a text without a name is called.
UNNAMED = "script.py"


class RecommendationRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "POST", "/v1/recommendations", self.recommend, wire.Recommendations)

    async def recommend(self, request: Request, body: wire.RecommendationAsked) -> Response:
        """What the code needs, with the lines that say so; backends that suit it, the best first; a job file."""
        made = await self._deps.recommender.recommend(sources(body), wishes(body.preferences), body.entrypoint)
        return json_reply(made)


def sources(body: wire.RecommendationAsked) -> list[SourceFile]:
    if body.code is not None:
        return [SourceFile(body.entrypoint or UNNAMED, body.code)]
    return [SourceFile(file.name, file.text) for file in body.files or ()]


def wishes(asked: wire.UserPreferences) -> Preferences:
    return Preferences(
        optimize_for=None if asked.optimize_for is None else OptimizeFor(asked.optimize_for),
        allowed_backends=tuple(asked.allowed_backends or ()),
        max_cost_usd=asked.max_cost_usd,
        data_privacy=asked.data_privacy,
        duration_hours=asked.duration_hours,
        interruptible=asked.interruptible,
        gpus=asked.gpus,
        gpu_memory_gb=asked.gpu_memory_gb,
        checkpoint_frequency_minutes=asked.checkpoint_frequency_minutes,
        dataset_size_gb=asked.dataset_size_gb,
    )
