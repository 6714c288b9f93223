"""Budgets in the REST API. Money is there twice: whole micro-dollars to reckon with, dollars to read."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Request

Scope = Literal["job", "project", "team", "user", "server"]
Period = Literal["once", "month"]
WhenSpent = Literal["pause", "stop"]
# Exact to a micro-dollar below a billion: more digits than a double holds are refused, not rounded.
Dollars = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]
Shares = Annotated[list[Annotated[float, Field(gt=0, le=1)]], Field(max_length=20)]


class BudgetNew(Request):
    scope: Scope
    name: Annotated[str, Field(max_length=200)] = ""  # of the job, project, team or user; a server has none
    period: Period = "once"
    limit_usd: Dollars
    when_spent: WhenSpent | None = None  # pause, but for a job: as its spec says
    thresholds: Shares | None = None


class BudgetChange(Request):
    """What is left out stays as it is. `version`: refused if it is another one by now."""

    limit_usd: Dollars | None = None
    when_spent: WhenSpent | None = None
    thresholds: Shares | None = None
    version: int | None = None


class Budget(BaseModel):
    id: str
    scope: Scope
    name: str
    period: Period
    limit_microusd: int
    limit_usd: float
    when_spent: WhenSpent
    thresholds: list[float]
    created_by: str
    created_at: datetime
    version: int
    counts_from: datetime | None  # what was spent before does not count; null: all of it does
    ends_at: datetime | None  # when it counts from nothing again; null: never
    spent_microusd: int  # posted, and what runs up to now
    spent_usd: float
    reserved_microusd: int  # to stop what runs, in time
    reserved_usd: float
    left_microusd: int  # for new machines
    left_usd: float
    per_hour_microusd: int  # of what runs now
    per_hour_usd: float
    runs_out_at: datetime | None  # at that rate; null: not in this period
    expected_microusd: int | None  # spent at the end of the period, at that rate
    expected_usd: float | None
    jobs: list[str]  # that cost money now


class Budgets(BaseModel):
    items: list[Budget]
