"""What was spent, by whatever costs are told apart by; what was saved, and what could be."""

from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api import cost_csv
from crucible.api.cost_views import money
from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.reply import Pulled, json_reply
from crucible.api.routing import add, described_query, queried
from crucible.core.cost_reports import Forecast
from crucible.core.savings import Idea
from crucible.engine.cost_desk import Asked, Report
from crucible.engine.savings import Available
from crucible.model.costs import CostRow, Dimension, Sums
from crucible.model.errors import InvalidRequest
from crucible.wire import cost_reports as wire

CSV_HEADERS = {"content-disposition": 'attachment; filename="costs.csv"'}
FILTERS = tuple(one for one in Dimension if not one.is_time)


class CostReportRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        asked, saved = described_query(wire.CostsQuery), described_query(wire.SavingsQuery)
        csv = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
        add(router, "GET", "/v1/costs", self.costs, wire.CostReport, openapi_extra=asked, responses=csv)
        add(router, "GET", "/v1/savings", self.savings, wire.SavingsReport, openapi_extra=saved)

    async def costs(self, request: Request) -> Response:
        """What was spent in a period, with what runs: exact, and everything is attributed. As JSON or CSV."""
        asked = queried(wire.CostsQuery, request)
        report = await self._deps.costs.report(principal(request), asked_of(asked, asked.by, asked.forecast))
        if asked.format == "csv":
            return Pulled(cost_csv.pieces(report), "text/csv; charset=utf-8", CSV_HEADERS)
        left_out = max(len(report.rows) - asked.limit, 0)
        shown = [row_view(row, report) for row in report.rows[: asked.limit]]
        told = None if report.forecast is None else forecast_view(report.forecast)
        rate = money("per_hour", report.per_hour)
        return json_reply({**head(report), "rows": shown, "left_out": left_out, **rate, "forecast": told})

    async def savings(self, request: Request) -> Response:
        """What was saved against prices on demand; apart from it, what could be saved on what runs or waits now."""
        asked = queried(wire.SavingsQuery, request)
        who = principal(request)
        report = await self._deps.costs.report(who, asked_of(asked, asked.by))
        more = available_view(await self._deps.savings.available(who)) if asked.available else None
        rows = [row_view(row, report) for row in report.rows[: wire.MAX_ROWS]]
        return json_reply({**head(report), "rows": rows, "available": more})


def asked_of(query: wire.Period, by: str, is_forecast: bool = False) -> Asked:
    return Asked(
        by=dimensions(by),
        from_at=moment(query.from_, "from"),
        to_at=moment(query.to, "to"),
        zone=zone_of(query.tz),
        where={one: value for one in FILTERS if (value := getattr(query, one.value)) is not None},
        is_forecast=is_forecast,
    )


def dimensions(text: str) -> tuple[Dimension, ...]:
    words = [word for word in text.split(",") if word]
    unknown = [word for word in words if word not in tuple(Dimension)]
    if unknown:
        known = ", ".join(Dimension)
        raise InvalidRequest(f"costs are not told apart by {unknown[0]}; choose one or two of {known}", field="by")
    return tuple(map(Dimension, words))


def moment(at: datetime | None, name: str) -> datetime | None:
    if at is not None and at.tzinfo is None:
        raise InvalidRequest(f"`{name}` must say its zone: 2026-11-01T00:00Z", field=name)
    return None if at is None else at.astimezone(UTC)


def zone_of(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidRequest(f"there is no time zone {name}; one is UTC, another Europe/Berlin", field="tz") from error


# --- views --------------------------------------------------------------------------------------------------------


def head(report: Report) -> dict[str, Any]:
    return {
        "at": report.at,
        "from_at": report.from_at,
        "to_at": report.to_at,
        "by": list(report.by),
        "total": sums_view(report.total),
    }


def row_view(row: CostRow, report: Report) -> dict[str, Any]:
    key = {one.value: cell for one, cell in zip(report.by, row[0], strict=True)}
    return {"key": key, "job_name": report.names.get(key.get("job", "")), **sums_view(row[1])}


def sums_view(sums: Sums) -> dict[str, Any]:
    return {
        **money("cost", sums.cost),
        **money("useful", sums.useful),
        **money("idle", sums.idle),
        **money("saved", sums.saved),
        **money("unpriced", sums.unpriced),
        "gpu_hours": round(sums.gpu_s / 3600, 4),
        "jobs": sums.jobs,
    }


def forecast_view(told: Forecast) -> dict[str, Any]:
    return {**money("total", told.total), **money("per_day", told.per_day), "from_days": round(told.from_days, 2)}


def available_view(found: Available) -> dict[str, Any]:
    return {
        "ideas": [idea_view(one) for one in found.ideas],
        "jobs": found.looked_at,
        "unknown": found.unknown,
        "is_partial": found.left_out,
    }


def idea_view(one: Idea) -> dict[str, Any]:
    first = one.way.first
    return {
        "job_id": one.standing.job_id,
        "job_name": one.standing.name,
        "move": one.move,
        "provider": first.target.provider,
        "region": first.target.region,
        "instance_type": first.instance_type,
        "count": one.way.nodes,
        "is_spot": first.market.name == "SPOT",
        "is_enabled": one.way.is_enabled,
        **money("now", one.standing.cost_left),
        **money("then", one.cost),
        **money("saves", one.saves),
        "hours": one.way.expected_h,
        "reliability": round(one.way.reliability, 4),
    }
