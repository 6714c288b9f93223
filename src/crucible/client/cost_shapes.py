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


class IdleCost(TypedDict):
    use: str  # boot, gang, setup, waiting, upload, give_back, spare, unheld
    amount_microusd: int
    amount_usd: float


class JobCosts(Charged):
    job_id: str
    at: str
    posted_microusd: int  # of `so_far`: closed and in the ledger
    posted_usd: float
    budget_microusd: int | None
    budget_usd: float | None
    remaining: Remaining | None  # None: nobody knows, or it is over
    useful_microusd: int  # time in which a rank ran, and data that was moved
    useful_usd: float
    idle_microusd: int  # the rest of `so_far`
    idle_usd: float
    idle_by: list[IdleCost]
    saved_microusd: int  # against prices on demand when the machines were bought
    saved_usd: float
    unpriced_microusd: int  # part of `so_far` of which nobody knew that price
    unpriced_usd: float
    per_step_usd: float | None  # None where progress tells nothing of it
    per_sample_usd: float | None
    per_token_usd: float | None
    by_kind: list[KindCost]
    machines: list[MachineCost]
    intervals: list[Interval]
    postings: list[Posting]


# --- reports --------------------------------------------------------------------------------------------------------


class Sums(TypedDict):
    """`useful` and `idle` are together `cost`."""

    cost_microusd: int
    cost_usd: float
    useful_microusd: int
    useful_usd: float
    idle_microusd: int
    idle_usd: float
    saved_microusd: int  # against the price on demand
    saved_usd: float
    unpriced_microusd: int  # part of the cost of which nobody knew that price
    unpriced_usd: float
    gpu_hours: float
    jobs: int  # each counts once, where its first machine is


class CostRow(Sums):
    key: dict[str, str]  # "-" for none
    job_name: str | None


class Forecast(TypedDict):
    """Of the whole period, if it goes on as in the last `from_days`."""

    total_microusd: int
    total_usd: float
    per_day_microusd: int
    per_day_usd: float
    from_days: float


class CostReport(TypedDict):
    at: str
    from_at: str
    to_at: str
    by: list[str]
    rows: list[CostRow]
    left_out: int  # rows that are only in `total`
    total: Sums
    per_hour_microusd: int  # of what runs now
    per_hour_usd: float
    forecast: Forecast | None


class Idea(TypedDict):
    """Another way to run the rest of a job; those of one job exclude each other."""

    job_id: str
    job_name: str
    move: str  # provider, region, spot, machine
    provider: str
    region: str
    instance_type: str
    count: int
    is_spot: bool
    is_enabled: bool
    now_microusd: int
    now_usd: float
    then_microusd: int
    then_usd: float
    saves_microusd: int
    saves_usd: float
    hours: float | None
    reliability: float


class Available(TypedDict):
    """Estimates, each for itself: they do not add up."""

    ideas: list[Idea]
    jobs: int
    unknown: int
    is_partial: bool


class SavingsReport(TypedDict):
    at: str
    from_at: str
    to_at: str
    by: list[str]
    rows: list[CostRow]
    total: Sums
    available: Available | None
