"""What the API answers about budgets, as types over plain JSON. Money is there twice: whole micro-dollars to reckon
with, dollars to read."""

from typing import TypedDict


class Budget(TypedDict):
    id: str  # team:vision:month
    scope: str  # job, project, team, user, server
    name: str
    period: str  # once, month
    limit_microusd: int
    limit_usd: float
    when_spent: str  # pause, stop
    thresholds: list[float]
    created_by: str
    created_at: str
    version: int
    counts_from: str | None
    ends_at: str | None
    spent_microusd: int
    spent_usd: float
    reserved_microusd: int
    reserved_usd: float
    left_microusd: int
    left_usd: float
    per_hour_microusd: int
    per_hour_usd: float
    runs_out_at: str | None
    expected_microusd: int | None
    expected_usd: float | None
    jobs: list[str]
