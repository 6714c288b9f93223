"""The shapes of a job's tasks: a page of them, the summary of a search, the table of an evaluation."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from crucible.ports.trials import MOST_TASKS_OF_A_PAGE

Phase = Literal["waiting", "scheduled", "provisioning", "running", "checkpointing", "succeeded", "failed", "cancelled"]
Verdict = Literal["pruned", "skipped", "reused"]
Goal = Literal["minimize", "maximize"]
Cursor = Annotated[str, Field(max_length=200, pattern=r"^[\x21-\x7e]*$", description="`next_cursor` of a page")]
MOST_ROWS = 200


class TaskListQuery(BaseModel):
    order: Annotated[Literal["index", "value"], Field(description="value: the best of a search first")] = "index"
    phase: Annotated[str, Field(max_length=200, description="One or several phases, with commas between them")] = ""
    limit: Annotated[int, Field(ge=1, le=MOST_TASKS_OF_A_PAGE)] = 50
    cursor: Cursor = ""


class EvaluationQuery(BaseModel):
    limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="Models of a page")] = 50
    cursor: Annotated[int, Field(ge=0, le=1_000_000, description="`next_cursor` of a page")] = 0


class Where(BaseModel):
    provider: str
    region: str
    backend: str
    instance_type: str
    spot: bool


class TaskView(BaseModel):
    index: int
    id: str
    phase: Phase
    verdict: Verdict | None
    params: dict[str, Any] | None  # what it was given
    value: float | None  # of the objective, when it has ended
    value_so_far: float | None  # while it runs
    metrics: dict[str, float | None]  # the last of each
    step: int | None
    fraction: float | None
    attempts: int
    failures: int
    losses: int
    reason: str | None
    where: Where | None  # of its newest attempt
    started_at: datetime | None  # the same
    ended_at: datetime | None


class TaskPage(BaseModel):
    items: list[TaskView]
    next_cursor: str | None


class Objective(BaseModel):
    metric: str
    goal: Goal
    reading: Literal["last", "best"]


class TrialCounts(BaseModel):
    total: int
    waiting: int
    running: int  # placed, or about to run, or running
    completed: int  # came to their end
    pruned: int  # stopped early
    failed: int
    skipped: int  # never begun: a limit was reached
    cancelled: int
    without_value: int  # of those that came to their end


class SavedAt(BaseModel):
    step: int
    uri: str


class BestTrial(TaskView):
    checkpoint: SavedAt | None


class SweepView(BaseModel):
    job_id: str
    name: str
    status: str
    method: Literal["grid", "random", "list", "tpe"]
    parameters: list[str]
    objective: Objective | None
    trials: TrialCounts
    best: BestTrial | None
    spent_usd: float
    budget_usd: float | None
    drained: str | None  # why no further trial is begun
    note: str | None  # what a person should know of it


class Figure(BaseModel):
    value: float
    delta: float | None  # to the baseline
    is_better: bool | None  # than the baseline; null: neither


class EvaluationCell(BaseModel):
    dataset: str
    phase: Phase
    metrics: dict[str, Figure]
    reason: str | None


class EvaluationRow(BaseModel):
    model: str
    cells: list[EvaluationCell]
    means: dict[str, Figure]  # over all datasets


class EvaluationView(BaseModel):
    job_id: str
    name: str
    status: str
    datasets: list[str]
    metrics: list[str]
    baseline: str | None
    goal: Goal
    rows: list[EvaluationRow]
    next_cursor: int | None
