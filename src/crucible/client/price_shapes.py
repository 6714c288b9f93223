"""What the API answers about prices, offers and providers, as types over plain JSON."""

from typing import NotRequired, TypedDict


class Price(TypedDict):
    provider: str
    region: str
    zone: str
    instance_type: str
    gpu: str | None
    gpus: int
    market: str
    price_per_hour_usd: float | None
    as_of: str
    age_s: float
    is_stale: bool
    source: str


class PriceSummary(TypedDict):
    count: int
    priced: int
    stale: int
    newest: str | None
    oldest: str | None


class PricePage(TypedDict):
    items: list[Price]
    next_cursor: str | None
    summary: PriceSummary


class PriceChange(TypedDict):
    provider: str
    region: str
    zone: str
    instance_type: str
    market: str
    price_per_hour_usd: float | None
    as_of: str
    source: str


class PriceSource(TypedDict):
    name: str
    refreshed_at: str | None
    age_s: float | None
    is_stale: bool
    rows: int
    changed: int
    error: str | None
    failed_at: str | None


class PriceSources(TypedDict):
    items: list[PriceSource]
    refresh_every_s: NotRequired[float]
    stale_after_s: NotRequired[float]


class SourceRefreshed(TypedDict):
    source: str
    rows: int
    changed: int
    unknown_types: NotRequired[list[str]]
    error: str | None
    took_s: NotRequired[float]


class Offer(Price):
    id: str
    backend: str
    is_enabled: bool
    gpu_memory_gb: float
    cpus: float
    memory_gb: float
    price_per_gpu_hour_usd: float | None
    availability: float | None
    interruptions_per_hour: float | None
    free_gpus: int | None


class CapacityPool(TypedDict):
    provider: str
    region: str
    zone: str
    gpu: str
    gpus: int
    free: int


class OfferGroup(TypedDict):
    name: str
    offers: int
    priced: int
    best: Offer


class Offers(TypedDict):
    items: list[Offer]
    groups: list[OfferGroup]
    matched: int
    total: int


class Quote(TypedDict):
    instance_type: str
    region: str
    zone: str
    count: int
    gpu: str | None
    gpus: int
    price_per_hour_usd: float
    billed_s: int | None
    total_usd: float | None
    availability: float | None
    interruptions_per_hour: float | None
    as_of: str
    age_s: float
    is_stale: bool
    source: str


class ComparedProvider(TypedDict):
    provider: str
    is_enabled: bool
    on_demand: Quote | None
    spot: Quote | None
    start_s: float
    billing_unit_s: int
    billing_minimum_s: int
    regions: int
    offers: int
    priced: int


class Comparison(TypedDict):
    gpu: str
    gpus: int
    hours: float | None
    items: list[ComparedProvider]
