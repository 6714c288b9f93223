"""What the API answers of workflows, as types over plain JSON."""

from typing import NotRequired, TypedDict


class Step(TypedDict):
    index: int
    name: str
    needs: list[str]
    when: str
    inputs: NotRequired[dict[str, str]]
    for_each: NotRequired[str | None]
    cache: NotRequired[bool]
    phase: str
    verdict: NotRequired[str | None]
    reason: NotRequired[str | None]
    outputs: NotRequired[str | None]
    job_id: str | None
    provider: NotRequired[str | None]
    region: NotRequired[str | None]
    started_at: str | None
    finished_at: str | None
    cost_usd: float


class Workflow(TypedDict):
    id: str
    name: str
    status: str
    desired: NotRequired[str]
    reason: NotRequired[str | None]
    origin: NotRequired[str | None]
    created_at: NotRequired[str]
    started_at: str | None
    finished_at: str | None
    cost_usd: float
    steps: list[Step]
