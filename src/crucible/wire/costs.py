"""The shapes of what a job costs. Money is there twice: whole micro-dollars to reckon with, dollars to read."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel

Kind = Literal["compute", "storage", "address", "transfer"]


class Charged(BaseModel):
    so_far_microusd: int
    so_far_usd: float
    per_hour_microusd: int  # of what runs now
    per_hour_usd: float


class KindCost(Charged):
    kind: Kind


class MachineCost(Charged):
    machine_id: str
    provider: str
    region: str
    order_id: str
    lease_id: str | None
    started_at: datetime
    ended_at: datetime | None  # until when it is charged for; null while it runs
    is_estimate: bool  # nobody told when it ended


class Interval(BaseModel):
    """One stretch of one machine at one rate: `rate` for every `per_s` seconds."""

    machine_id: str
    provider: str
    kind: Kind
    lease_id: str | None
    from_at: datetime
    to_at: datetime | None  # null: open
    rate_microusd: int
    rate_usd: float
    per_s: int
    amount_microusd: int  # up to now while it is open
    amount_usd: float
    is_estimate: bool


class Entry(BaseModel):
    account: str
    amount_microusd: int
    amount_usd: float


class Posting(BaseModel):
    """Its entries add up to nothing."""

    id: str
    at: datetime
    memo: str
    kind: Kind
    entries: list[Entry]


class Remaining(BaseModel):
    """An estimate. `high`: nine of ten such jobs cost less."""

    basis: Literal["progress", "plan"]
    hours: float
    hours_high: float
    likely_microusd: int
    likely_usd: float
    high_microusd: int
    high_usd: float


class IdleCost(BaseModel):
    use: Literal["upload", "setup", "gang", "boot", "give_back", "waiting", "spare", "unheld"]
    amount_microusd: int
    amount_usd: float


class JobCosts(Charged):
    job_id: str
    at: datetime
    posted_microusd: int  # of `so_far`: closed and in the ledger
    posted_usd: float
    budget_microusd: int | None
    budget_usd: float | None
    remaining: Remaining | None  # null: nobody knows, or it is over
    useful_microusd: int  # time in which a rank ran, and data that was moved
    useful_usd: float
    idle_microusd: int  # the rest of `so_far`
    idle_usd: float
    idle_by: list[IdleCost]
    saved_microusd: int  # against prices on demand when the machines were bought
    saved_usd: float
    unpriced_microusd: int  # part of `so_far` of which nobody knew that price
    unpriced_usd: float
    per_step_usd: float | None  # null where progress tells nothing of it
    per_sample_usd: float | None
    per_token_usd: float | None
    by_kind: list[KindCost]
    machines: list[MachineCost]
    intervals: list[Interval]
    postings: list[Posting]
