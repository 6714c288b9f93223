"""Shapes of plans: ways to run a job, what was turned down and why, and what the steps of a workflow come to together.
Answers are written by hand (engine/plan_view.py, engine/flow_view.py) and described here for the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class PlanOffer(BaseModel):
    offer: str  # its id
    provider: str
    region: str
    zone: str
    backend: str
    instance_type: str
    gpu: str | None
    gpus: int  # of one machine
    gpu_memory_gb: float
    market: Literal["on-demand", "spot", "reserved"]
    is_spot: bool
    price_per_hour_usd: float | None  # of one machine
    interruptions_per_hour: float | None
    availability: float | None
    as_of: datetime
    source: str
    free_gpus: int | None


class PlanPart(PlanOffer):
    count: int


class PlanOption(PlanPart):
    """One way to run the job. Hours and money are null where the spec does not say how long the work takes. A gang of
    spot and on-demand machines, and tasks in several places, have several `parts`; the first stands for all."""

    parts: list[PlanPart]
    is_enabled: bool
    total_per_hour_usd: float  # all machines
    start_s: float
    staging_hours: float
    work_hours: float | None
    estimated_hours: float | None
    hours_p50: float | None
    hours_p90: float | None
    estimated_cost_usd: float | None
    cost_p50_usd: float | None
    cost_p90_usd: float | None
    egress_usd: float | None
    on_demand_cost_usd: float | None
    saving: float | None  # share, against the same machines on demand
    interruptions: float | None
    checkpoint_interval_s: float | None
    reliability: float
    confidence: str
    usd_per_step: float | None
    usd_per_token: float | None
    price_age_s: float
    score: float
    why: str


class PlanRefusal(PlanOffer):
    """Everything that one rule turned down; the cheapest of them stands for the `offers`."""

    rule: str
    reason: str
    field: str | None = None
    offers: int = 1


class PlanBudget(BaseModel):
    id: str
    limit_usd: float
    left_microusd: int
    left_usd: float


class PlanCarried(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    step: str
    source: Annotated[str, Field(alias="from")]
    to: str
    size_gb: float
    hours: float
    cost_usd: float


class PlanTotal(BaseModel):
    """Of all steps of a workflow."""

    estimated_cost_usd: float | None
    estimated_hours: float | None
    moved_usd: float | None
    fetch_usd: float | None
    bound: float
    strategy: str
    carried: list[PlanCarried]


class Planned(BaseModel):
    """What is there for every plan but that of a whole workflow, whose steps have it."""

    model_config = ConfigDict(extra="allow")
    chosen: PlanOption | None
    alternatives: list[PlanOption]
    rejections: list[PlanRefusal]
    others: list[PlanOption] | None = None  # the best of each other provider
    runnable: PlanOption | None = None  # what submit would buy now
    reason: str | None = None  # why nothing was chosen
    strategy: str | None = None
    tasks: int | None = None
    considered: int | None = None
    feasible: int | None = None
    bound: float | None = None  # how far from the optimum it can be, as a share
    price_age_s: float | None = None
    is_price_stale: bool | None = None
    catalog_rows: int | None = None
    plan_cpu_ms: float | None = None
    dead_man_s: float | None = None
    notes: list[str] | None = None


class PlanStep(Planned):
    name: str
    needs: list[str]
    begins_hours: float | None = None
    ends_hours: float | None = None
    fetch_hours: float | None = None
    fetch_cost_usd: float | None = None


class Plan(Planned):
    warnings: list[str] | None = None
    budgets: list[PlanBudget] | None = None
    why_not: list[PlanRefusal] | None = None
    steps: list[PlanStep] | None = None  # of a workflow
    total: PlanTotal | None = None
    runnable_total: PlanTotal | None = None
