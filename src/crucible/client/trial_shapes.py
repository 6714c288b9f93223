"""What the API answers about the tasks of a job, searches and evaluations, as types over plain JSON."""

from typing import Any, NotRequired, TypedDict


class Where(TypedDict):
    provider: str
    region: str
    backend: str
    instance_type: str
    spot: bool


class Task(TypedDict):
    index: int
    id: str
    phase: str
    verdict: str | None
    params: dict[str, Any] | None
    value: float | None
    value_so_far: NotRequired[float | None]
    metrics: dict[str, float | None]
    step: NotRequired[int | None]
    fraction: NotRequired[float | None]
    attempts: int
    failures: NotRequired[int]
    losses: NotRequired[int]
    reason: str | None
    where: NotRequired[Where | None]
    started_at: NotRequired[str | None]
    ended_at: NotRequired[str | None]


class TaskPage(TypedDict):
    items: list[Task]
    next_cursor: str | None


class Objective(TypedDict):
    metric: str
    goal: str
    reading: str


class TrialCounts(TypedDict):
    total: int
    waiting: int
    running: int
    completed: int
    pruned: int
    failed: int
    skipped: int
    cancelled: int
    without_value: int


class SavedAt(TypedDict):
    step: int
    uri: str


class BestTrial(Task):
    checkpoint: SavedAt | None


class Sweep(TypedDict):
    job_id: str
    name: str
    status: str
    method: str
    parameters: list[str]
    objective: Objective | None
    trials: TrialCounts
    best: BestTrial | None
    spent_usd: float
    budget_usd: float | None
    drained: str | None
    note: str | None


class Figure(TypedDict):
    value: float
    delta: float | None
    is_better: bool | None


class EvaluationCell(TypedDict):
    dataset: str
    phase: str
    metrics: dict[str, Figure]
    reason: str | None


class EvaluationRow(TypedDict):
    model: str
    cells: list[EvaluationCell]
    means: dict[str, Figure]


class Evaluation(TypedDict):
    job_id: str
    name: str
    status: str
    datasets: list[str]
    metrics: list[str]
    baseline: str | None
    goal: str
    rows: list[EvaluationRow]
    next_cursor: int | None
