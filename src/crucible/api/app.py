"""The API put together. A route that nobody may use, because it has no row, keeps the whole server from starting."""

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from crucible.api.access import SOCKET, TABLE
from crucible.api.agents import AgentRoutes
from crucible.api.alerts import AlertRoutes
from crucible.api.audit import AuditRoutes
from crucible.api.budgets import BudgetRoutes
from crucible.api.channels import ChannelRoutes
from crucible.api.checkpoints import CheckpointRoutes
from crucible.api.cost_reports import CostReportRoutes
from crucible.api.costs import CostRoutes
from crucible.api.datasets import DatasetRoutes
from crucible.api.deps import ApiSettings, Deps
from crucible.api.dispatch import Dispatch
from crucible.api.door import Door, GuardedSocket, guarded_route
from crucible.api.guard import Guard
from crucible.api.history import HistoryRoutes
from crucible.api.hosts import HostRoutes
from crucible.api.jobs import JobRoutes
from crucible.api.lab import LabRoutes
from crucible.api.live import LiveRoutes
from crucible.api.logs import LogRoutes
from crucible.api.metrics import MetricRoutes
from crucible.api.objects import ObjectRoutes
from crucible.api.outputs import OutputRoutes
from crucible.api.overview import OverviewRoutes
from crucible.api.page import PageRoutes
from crucible.api.people import PeopleRoutes
from crucible.api.planning import PlanningRoutes
from crucible.api.predictions import PredictionRoutes
from crucible.api.prices import PriceRoutes
from crucible.api.pulse import Pulse
from crucible.api.recommendations import RecommendationRoutes
from crucible.api.request_meter import RequestMeter
from crucible.api.retention import RetentionRoutes
from crucible.api.secrets import SecretRoutes
from crucible.api.shards import ShardRoutes
from crucible.api.shutdown import Shutdown
from crucible.api.sign_in import SignInRoutes
from crucible.api.status import StatusRoutes
from crucible.api.system import SystemRoutes
from crucible.api.tasks import TaskRoutes
from crucible.api.teams import TeamRoutes
from crucible.api.templates import TemplateRoutes
from crucible.api.training import TrainingRoutes
from crucible.api.workflows import WorkflowRoutes
from crucible.model.errors import InvariantBroken

__all__ = ["ApiSettings", "Deps", "create_app"]


def create_app(deps: Deps) -> FastAPI:
    app = FastAPI(
        title="Crucible",
        version=deps.settings.version,
        description="One place to run GPU work anywhere: one spec, one plan that explains itself, one ledger.",
        openapi_url=None,  # served by a route of ours, behind the same door as the rest
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Addresses of objects are secrets, and bodies are somebody's: whoever sets up telemetry for everything in a
        # place does not get them. Our own figures and traces are made elsewhere.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    requests, shutdown = RequestMeter(deps.gauges.meter), Shutdown(deps.hub)
    door = Door(deps, requests)
    pulse = Pulse(deps.store, deps.hub, deps.clock)
    app.state.shutdown = shutdown
    app.router.route_class = guarded_route(door)
    for routes in (  # matched in this order: the busiest first
        JobRoutes(deps),
        AgentRoutes(deps, shutdown),
        LogRoutes(deps, pulse, shutdown),
        HistoryRoutes(deps),
        StatusRoutes(deps),
        OverviewRoutes(deps),
        CheckpointRoutes(deps),
        OutputRoutes(deps),
        CostRoutes(deps),
        CostReportRoutes(deps),
        BudgetRoutes(deps),
        TaskRoutes(deps),
        DatasetRoutes(deps),
        TemplateRoutes(deps),
        SecretRoutes(deps),
        ShardRoutes(deps),
        PlanningRoutes(deps),
        PriceRoutes(deps),
        PredictionRoutes(deps),
        RecommendationRoutes(deps),
        PeopleRoutes(deps),
        TeamRoutes(deps),
        AuditRoutes(deps),
        SignInRoutes(deps),
        RetentionRoutes(deps),
        HostRoutes(deps),
        LabRoutes(deps),
        AlertRoutes(deps),
        ObjectRoutes(deps),
        SystemRoutes(deps, app, shutdown),
        TrainingRoutes(deps),
        WorkflowRoutes(deps),
        MetricRoutes(deps, requests),
        PageRoutes(deps),
    ):
        routes.add_to(app.router)
    live = LiveRoutes(deps, pulse, shutdown, requests)
    for path in ("/v1/jobs/{job_id}/stream", "/api/v1/training/{job_id}/stream"):
        app.router.routes.append(GuardedSocket(door, path, live.stream))
    channels = ChannelRoutes(deps)
    app.router.routes.append(GuardedSocket(door, "/v1/jobs/{job_id}/channel", channels.person))
    app.router.routes.append(GuardedSocket(door, "/agent/v1/channels/{channel_id}", channels.agent))
    _check_table(app.routes)
    # Instead of the framework's own layers: together they took longer than most handlers.
    app.middleware_stack = Guard(Dispatch(app.router), deps.settings, shutdown, requests, deps.clock)
    return app


def _check_table(routes: list[BaseRoute]) -> None:
    """Every route has its row, and every row its route."""
    served: set[tuple[str, str]] = set()
    for route in routes:
        if isinstance(route, APIRoute):
            served |= {(method, route.path) for method in route.methods or ()}
        elif isinstance(route, GuardedSocket):
            served.add((SOCKET, route.path))
        else:
            raise InvariantBroken(f"{route} was added past the door")
    if served != set(TABLE):
        raise InvariantBroken(f"routes and rows of crucible.api.access differ: {served ^ set(TABLE)}")
