"""How a job is and how the system is, as the API says it. Times are text, as they come."""

from typing import Any, NotRequired, TypedDict


class Progress(TypedDict):
    step: int | None
    total_steps: int | None
    fraction: float | None
    steps_per_s: float | None
    at: str | None


class Eta(TypedDict):
    basis: str
    at: str
    latest_at: str
    seconds: float
    seconds_high: float


class Cost(TypedDict):
    so_far_microusd: int
    so_far_usd: float
    per_hour_microusd: int
    per_hour_usd: float
    remaining_microusd: int | None
    remaining_usd: float | None
    remaining_high_microusd: int | None
    remaining_high_usd: float | None
    at_risk_microusd: int | None
    at_risk_usd: float | None


class Finding(TypedDict):
    code: str
    severity: str
    words: str
    advice: str
    since: str
    until: str | None
    job_id: str
    details: dict[str, Any]


class Health(TypedDict):
    status: str
    findings: list[Finding]


class Figure(TypedDict):
    mean: float
    low: float
    high: float
    worst_rank: int | None


class Utilisation(TypedDict):
    machines: int
    heard: int
    gpus: int
    cpu: Figure | None
    memory: Figure | None
    gpu: Figure | None
    gpu_memory: Figure | None
    disk: Figure | None
    network_received_bytes_per_s: Figure | None
    network_sent_bytes_per_s: Figure | None


class Place(TypedDict):
    provider: str | None
    region: str | None
    backend: str | None
    instance_type: str | None
    spot: bool | None
    count: int | None


class JobStatus(TypedDict):
    job_id: str
    name: str
    job_type: str
    execution_mode: str
    phase: str
    desired: str
    reason: str | None
    at: str
    place: Place | None
    progress: Progress
    eta: Eta | None
    cost: Cost
    health: Health
    utilisation: Utilisation
    unknown: dict[str, str]


class Findings(TypedDict):
    items: list[Finding]


class SystemCheck(TypedDict):
    name: str
    subject: str
    status: str
    words: str
    advice: str
    details: dict[str, Any]


class SystemHealth(TypedDict):
    status: str
    checks: list[SystemCheck]


class ServerHealth(TypedDict):
    status: str
    system: NotRequired[SystemHealth]  # an older server does not say it


class SeriesPoint(TypedDict):
    t: int
    count: int
    invalid: int
    min: float | None
    max: float | None
    mean: float | None
    last: float | None
    last_t: int
    step: int | None


class Series(TypedDict):
    name: str
    points: list[SeriesPoint]


class Chart(TypedDict):
    """What the route of metrics says of a range."""

    resolution_s: float
    series: list[Series]
    left_out: int
