"""The shapes of an overview: how the jobs that somebody sees stand, in a few numbers."""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from crucible.wire.rest import Status

Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


class OverviewQuery(BaseModel):
    name: Word = ""
    user: Annotated[Word, Field(description="Whose jobs")] = ""
    team: Annotated[Word, Field(description="Jobs of a team")] = ""
    project: Annotated[Word, Field(description="Jobs of a project")] = ""


class GpuCounts(BaseModel):
    held: int  # of machines that are paid for, or yours
    computing: int  # of these, a task runs on


class Overview(BaseModel):
    at: datetime
    jobs: dict[Status, int]  # by state; jobs of steps are left out
    most_counted: int  # of one state: so many may be more
    machines: int
    gpus: GpuCounts
    per_hour_microusd: int  # of what runs now
    per_hour_usd: float
