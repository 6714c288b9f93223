"""The shapes of workflows."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from crucible.wire.rest import Request, Status

StepName = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Phase = Literal["waiting", "scheduled", "provisioning", "running", "checkpointing", "succeeded", "failed", "cancelled"]


class Again(Request):
    """How a job runs again. A workflow: from a step; the results of the others are taken over."""

    from_step: StepName | None = None


class Step(BaseModel):
    index: int
    name: str
    needs: list[str]
    when: Literal["succeeded", "failed", "ended"]
    inputs: dict[str, str]
    for_each: str | None
    cache: bool
    phase: Phase
    verdict: Literal["skipped", "reused"] | None
    reason: str | None
    outputs: str | None  # the tree that its only task left
    job_id: str | None  # that works for it, or whose result stands for it
    provider: str | None
    region: str | None
    started_at: datetime | None
    finished_at: datetime | None
    cost_usd: float


class Workflow(BaseModel):
    id: str
    name: str
    status: Status
    desired: Literal["run", "hold", "cancel"]
    reason: str | None
    origin: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cost_usd: float
    steps: list[Step]
