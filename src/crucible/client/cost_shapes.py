"""What the API answers about costs, as types over plain JSON. Money is there twice: whole micro-dollars to reckon with,
dollars to read."""

from typing import TypedDict


class Charged(TypedDict):
    so_far_microusd: int
    so_far_usd: float
    per_hour_microusd: int
    per_hour_usd: float


class KindCost(Charged):
    kind: str  # compute, storage, address, transfer


class MachineCost(Charged):
    machine_id: str
    provider: str
    region: str
    order_id: str
    lease_id: str | None
    started_at: str
    ended_at: str | None  # until when it is charged for; None while it runs
    is_estimate: bool  # nobody told when it ended


class Interval(TypedDict):
    """One stretch of one machine at one rate: `rate` for every `per_s` seconds."""

    machine_id: str
    provider: str
    kind: str
    lease_id: str | None
    from_at: str
    to_at: str | None  # None: open
    rate_microusd: int
    rate_usd: float
    per_s: int
    amount_microusd: int  # up to now while it is open
    amount_usd: float
    is_estimate: bool


class Entry(TypedDict):
    account: str
    amount_microusd: int
    amount_usd: float


class Posting(TypedDict):
    """Its entries add up to nothing."""

    id: str
    at: str
    memo: str
    kind: str
    entries: list[Entry]


class Remaining(TypedDict):
    """An estimate. `high`: nine of ten such jobs cost less."""

    basis: str  # progress, plan
    hours: float
    hours_high: float
    likely_microusd: int
    likely_usd: float
    high_microusd: int
    high_usd: float


class JobCosts(Charged):
    job_id: str
    at: str
    posted_microusd: int  # of `so_far`: closed and in the ledger
    posted_usd: float
    budget_microusd: int | None
    budget_usd: float | None
    remaining: Remaining | None  # None: nobody knows, or it is over
    by_kind: list[KindCost]
    machines: list[MachineCost]
    intervals: list[Interval]
    postings: list[Posting]
