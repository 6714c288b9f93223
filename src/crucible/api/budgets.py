"""Budgets: what may be spent, what is, and until when it lasts."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import json_reply
from crucible.api.routing import add
from crucible.core.budget import Standing, ends_at, forecast, starts_at
from crucible.engine.budget_desk import Wanted
from crucible.model.budget import BudgetId, Period, Scope
from crucible.model.errors import InvalidRequest
from crucible.model.spec import WhenSpent
from crucible.model.units import NOTHING, MicroUsd, micro_usd, usd
from crucible.wire import budgets as wire


class BudgetRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        add(router, "GET", "/v1/budgets", self.list, wire.Budgets)
        add(router, "POST", "/v1/budgets", self.create, wire.Budget, status=201)
        add(router, "GET", "/v1/budgets/{budget_id}", self.get, wire.Budget)
        add(router, "PATCH", "/v1/budgets/{budget_id}", self.change, wire.Budget)
        add(router, "DELETE", "/v1/budgets/{budget_id}", self.remove, None, status=204)

    async def list(self, request: Request) -> Response:
        """Those that concern whoever asks; own ones of jobs while these cost money."""
        found = await self._deps.budgets.all(principal(request))
        return json_reply({"items": [self._view(one) for one in found]})

    async def create(self, request: Request, body: wire.BudgetNew) -> Response:
        scope = Scope(body.scope)
        if (scope is Scope.SERVER) != (not body.name):
            raise InvalidRequest("name whose budget it is; that of the server has no name", field="name")
        wanted = wanted_of(body.limit_usd, body.when_spent, body.thresholds)
        made = await self._deps.budgets.create(principal(request), scope, body.name, Period(body.period), wanted)
        return json_reply(self._view(made), 201)

    async def get(self, request: Request, budget_id: str) -> Response:
        """The own budget of a job is `job:<id>`."""
        return json_reply(self._view(await self._deps.budgets.find(principal(request), BudgetId(budget_id))))

    async def change(self, request: Request, budget_id: str, body: wire.BudgetChange) -> Response:
        """A higher limit tops it up: jobs that were paused go on."""
        wanted = wanted_of(body.limit_usd, body.when_spent, body.thresholds, body.version)
        changed = await self._deps.budgets.change(principal(request), BudgetId(budget_id), wanted)
        return json_reply(self._view(changed))

    async def remove(self, request: Request, budget_id: str) -> Response:
        """Jobs that it has paused go on."""
        await self._deps.budgets.remove(principal(request), BudgetId(budget_id))
        return Response(status_code=204)

    def _view(self, standing: Standing) -> dict[str, Any]:
        budget, at, now = standing.budget, standing.at, self._deps.clock.now()
        ahead = forecast(standing, now)
        return {
            "id": budget.id,
            "scope": budget.scope,
            "name": budget.name,
            "period": budget.period,
            **twice("limit", budget.limit),
            "when_spent": budget.when_spent,
            "thresholds": budget.thresholds,
            "created_by": budget.created_by,
            "created_at": budget.created_at,
            "version": budget.version,
            "counts_from": starts_at(budget, now),
            "ends_at": ends_at(budget, now),
            **twice("spent", at.spent),
            **twice("reserved", at.kept_back),
            **twice("left", max(standing.left, NOTHING)),
            **twice("per_hour", at.per_hour),
            "runs_out_at": ahead.runs_out_at,
            **twice("expected", ahead.at_end),
            "jobs": [stake.job_id for stake in at.stakes],
        }


def wanted_of(
    limit: float | None, when_spent: str | None, thresholds: list[float] | None, version: int | None = None
) -> Wanted:
    return Wanted(
        limit=None if limit is None else micro_usd(limit),
        when_spent=None if when_spent is None else WhenSpent(when_spent),
        thresholds=None if thresholds is None else tuple(sorted(set(thresholds))),
        version=version,
    )


def twice(name: str, amount: MicroUsd | None) -> dict[str, Any]:
    return {f"{name}_microusd": amount, f"{name}_usd": None if amount is None else usd(amount)}
