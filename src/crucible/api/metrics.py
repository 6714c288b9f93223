"""GET /metrics: every figure of this server as text that Prometheus reads."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.request_meter import RequestMeter
from crucible.api.routing import add


class MetricRoutes:
    def __init__(self, deps: Deps, requests: RequestMeter) -> None:
        self._deps = deps
        self._requests = requests

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/metrics", self.metrics, None)

    async def metrics(self, request: Request) -> Response:
        """Figures of this server and sums over its database, in the text format of Prometheus."""
        self._requests.show()
        text, kind = await self._deps.gauges.text()
        return Response(text, media_type=kind)
