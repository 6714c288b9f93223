"""The shapes of reports of costs. Money is there twice: whole micro-dollars to reckon with, dollars to read."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from crucible.wire.rest import Request

MAX_ROWS = 10_000

Word = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
By = Annotated[
    str,
    Field(
        max_length=100,
        pattern=r"^[a-z_,]*$",
        description="One or two of team, project, user, provider, region, gpu, instance_type, market, kind, job, day,"
        " hour, with a comma between them",
    ),
]
Zone = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_+/-]+$", description="Whose days and months: UTC …")]


class Period(Request):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    from_: Annotated[datetime | None, Field(alias="from", description="A whole hour; else this month")] = None
    to: datetime | None = None
    tz: Zone = "UTC"
    team: Word | None = None
    project: Word | None = None
    user: Word | None = None
    provider: Word | None = None
    region: Word | None = None
    gpu: Word | None = None
    instance_type: Word | None = None
    market: Word | None = None
    kind: Word | None = None
    job: Word | None = None


class CostsQuery(Period):
    by: By = "team"
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 1000
    forecast: Annotated[bool, Field(description="What the whole period will come to")] = False
    format: Literal["json", "csv"] = "json"


class SavingsQuery(Period):
    by: By = "market"
    available: Annotated[bool, Field(description="Also what could be saved on what runs or waits now")] = True


class Sums(BaseModel):
    """`useful` and `idle` are together `cost`; `saved` is against the price on demand; `unpriced` is the part of
    `cost` of which nobody knew that price."""

    cost_microusd: int
    cost_usd: float
    useful_microusd: int
    useful_usd: float
    idle_microusd: int
    idle_usd: float
    saved_microusd: int
    saved_usd: float
    unpriced_microusd: int
    unpriced_usd: float
    gpu_hours: float
    jobs: int  # each counts once, where its first machine is


class Row(Sums):
    key: dict[str, str]  # "-" for no team, no project, no GPU
    job_name: str | None = None  # by job


class Forecast(BaseModel):
    """Of the whole period, if it goes on as in the last `from_days`."""

    total_microusd: int
    total_usd: float
    per_day_microusd: int
    per_day_usd: float
    from_days: float


class CostReport(BaseModel):
    at: datetime
    from_at: datetime
    to_at: datetime
    by: list[str]
    rows: list[Row]
    left_out: int  # rows beyond `limit`; they are in `total`
    total: Sums
    per_hour_microusd: int  # of what runs now
    per_hour_usd: float
    forecast: Forecast | None


class Idea(BaseModel):
    """Another way to run the rest of a job. Those of one job exclude each other."""

    job_id: str
    job_name: str
    move: Literal["provider", "region", "spot", "machine"]
    provider: str
    region: str
    instance_type: str
    count: int
    is_spot: bool
    is_enabled: bool  # this server buys there
    now_microusd: int  # what the rest costs as it is
    now_usd: float
    then_microusd: int
    then_usd: float
    saves_microusd: int
    saves_usd: float
    hours: float | None  # of the whole job, that way
    reliability: float


class Available(BaseModel):
    """Estimates, each for itself: they do not add up, and are in no other figure."""

    ideas: list[Idea]
    jobs: int  # that were looked at
    unknown: int  # of these, nobody knows what the rest costs
    is_partial: bool  # there are more jobs than were looked at


class SavingsReport(BaseModel):
    at: datetime
    from_at: datetime
    to_at: datetime
    by: list[str]
    rows: list[Row]
    total: Sums
    available: Available | None
