"""The shape of a job's status: one for every backend, whatever kind of job it is. What nobody knows is null, and
`unknown` says why."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel

HealthWord = Literal["ok", "warning", "critical", "unknown"]


class Progress(BaseModel):
    step: int | None
    total_steps: int | None
    fraction: float | None  # 0 … 1
    steps_per_s: float | None
    at: datetime | None  # when it was last told


class Eta(BaseModel):
    """Likely done `at`; nine of ten times by `latest_at`."""

    basis: Literal["progress", "plan"]
    at: datetime
    latest_at: datetime
    seconds: float
    seconds_high: float


class Cost(BaseModel):
    so_far_microusd: int
    so_far_usd: float
    per_hour_microusd: int
    per_hour_usd: float
    remaining_microusd: int | None
    remaining_usd: float | None
    remaining_high_microusd: int | None  # nine of ten such jobs cost less
    remaining_high_usd: float | None
    at_risk_microusd: int | None  # paid for work that no checkpoint has
    at_risk_usd: float | None


class Finding(BaseModel):
    code: str
    severity: Literal["info", "warning", "critical"]
    words: str
    advice: str  # what to do
    since: datetime
    until: datetime | None  # null while it is open
    job_id: str  # of a workflow: the step's
    details: dict[str, Any]


class Health(BaseModel):
    status: HealthWord
    findings: list[Finding]


class Figure(BaseModel):
    """Over all machines that told it; `worst_rank` stands out."""

    mean: float
    low: float
    high: float
    worst_rank: int | None


class Utilisation(BaseModel):
    """Shares are 0 … 1."""

    machines: int  # held now
    heard: int  # of them, lately
    gpus: int  # measured
    cpu: Figure | None
    memory: Figure | None
    gpu: Figure | None
    gpu_memory: Figure | None
    disk: Figure | None
    network_received_bytes_per_s: Figure | None
    network_sent_bytes_per_s: Figure | None


class Place(BaseModel):
    provider: str | None
    region: str | None
    backend: str | None
    instance_type: str | None
    spot: bool | None
    count: int | None


class JobStatus(BaseModel):
    job_id: str
    name: str
    job_type: str
    execution_mode: str
    phase: str
    desired: str
    reason: str | None
    at: datetime
    place: Place | None
    progress: Progress
    eta: Eta | None
    cost: Cost
    health: Health
    utilisation: Utilisation
    unknown: dict[str, str]  # what is null -> why


class Findings(BaseModel):
    items: list[Finding]
