"""Shapes of what came of predictions. Requests are validated by these classes; answers are written by hand and
described here for the OpenAPI document."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from crucible.wire.rest import Request

# Rows that one answer may be made from; the newest count.
MAX_PREDICTIONS = 10_000
WEEKS = 12

Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class AccuracyQuery(Request):
    gpu: Word | None = None
    model_class: Word | None = None
    framework: Word | None = None
    team: Word | None = None
    provider: Word | None = None
    by: Annotated[
        str, Field(max_length=60, pattern=r"^[a-z_,]*$", description="gpu, class, framework, team, provider, week")
    ] = "gpu,class"
    limit: Annotated[int, Field(ge=1, le=MAX_PREDICTIONS)] = 1000


class Accuracy(BaseModel):
    """Errors are shares of what happened: 0.1 is 10 % off."""

    count: int
    median_error: float
    p90_error: float
    bias: float  # above 0: predictions were too high
    within: float  # share of predictions that were at most `goal` off
    goal: float


class AccuracyGroup(BaseModel):
    key: dict[str, str]  # what its jobs have in common; empty for all jobs together
    hours: Accuracy | None
    cost: Accuracy | None
    within_range: float | None  # share of the jobs that cost no more than the upper end that was told


class AccuracyReport(BaseModel):
    jobs: int  # completed ones that were looked at
    since: datetime | None  # the end of the oldest of them
    overall: AccuracyGroup
    groups: list[AccuracyGroup]
    trend: list[AccuracyGroup]  # of the last weeks in which jobs ended, each by its Monday
