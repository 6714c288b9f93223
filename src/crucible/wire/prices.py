"""Shapes of prices, offers and comparisons. Requests are validated by these classes; answers are written by hand and
described here for the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

MAX_ITEMS = 500
MAX_GPUS = 100_000
MAX_HOURS = 24 * 366 * 10  # ten years

# Names as providers write them; an empty one means any.
Word = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
GpuWish = Annotated[
    str,
    Field(
        max_length=60,
        pattern=r"^([A-Za-z0-9][A-Za-z0-9 ._-]*(:[1-9][0-9]{0,4})?)?$",
        description="A GPU and how many of them in one machine: H100, A100-80GB, H100:8",
    ),
]
Market = Literal["on_demand", "spot", "reserved"]
Cursor = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00-\x1f\x7f]*$", description="`next_cursor` of a page")]


class PriceListQuery(BaseModel):
    provider: Word = ""
    region: Word = ""
    instance_type: Word = ""
    gpu: GpuWish = ""
    market: Market | Literal[""] = ""
    limit: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = 100
    cursor: Cursor = ""


class PriceHistoryQuery(BaseModel):
    provider: Word = ""
    region: Word = ""
    zone: Word = ""
    instance_type: Word = ""
    market: Market | Literal[""] = ""
    since: datetime | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_ITEMS, description="The newest so many")] = 200


class OfferListQuery(BaseModel):
    gpu: GpuWish = ""
    provider: Word = ""
    region: Word = ""
    instance_type: Word = ""
    spot: Annotated[bool | None, Field(description="true: only spot; false: only on demand")] = None
    max_price: Annotated[float | None, Field(ge=0, le=1e9, description="Of one machine for an hour, in dollars")] = None
    gpu_memory: Annotated[float, Field(ge=0, le=1e6, description="Of one GPU at least, in GB")] = 0.0
    group_by: Literal["", "provider", "region", "gpu", "instance_type"] = ""
    sort: Literal["gpu_price", "price", "name"] = "gpu_price"
    limit: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = 50


class CompareQuery(BaseModel):
    gpu: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$")]
    gpus: Annotated[int, Field(ge=1, le=MAX_GPUS, description="In all")] = 1
    hours: Annotated[float | None, Field(gt=0, le=MAX_HOURS)] = None


# --- answers --------------------------------------------------------------------------------------------


class PriceItem(BaseModel):
    """A price older than an hour is used, and said to be stale. null: on offer, but nobody says for how much."""

    provider: str
    region: str
    zone: str
    instance_type: str
    gpu: str | None
    gpus: int
    market: Market
    price_per_hour_usd: float | None
    as_of: datetime
    age_s: float
    is_stale: bool
    source: str


class PriceSummary(BaseModel):
    """Of everything that matches, not only of the page."""

    count: int
    priced: int
    stale: int
    newest: datetime | None
    oldest: datetime | None


class PricePage(BaseModel):
    items: list[PriceItem]
    next_cursor: str | None
    summary: PriceSummary


class PriceChange(BaseModel):
    provider: str
    region: str
    zone: str
    instance_type: str
    market: Market
    price_per_hour_usd: float | None
    as_of: datetime
    source: str


class PriceHistory(BaseModel):
    """Changes only, oldest first."""

    items: list[PriceChange]


class PriceSource(BaseModel):
    name: str
    refreshed_at: datetime | None
    age_s: float | None
    is_stale: bool
    rows: int
    changed: int
    error: str | None
    failed_at: datetime | None


class PriceSources(BaseModel):
    """In the order in which they are believed."""

    items: list[PriceSource]
    refresh_every_s: float
    stale_after_s: float


class SourceRefreshed(BaseModel):
    source: str
    rows: int
    changed: int
    unknown_types: list[str]
    error: str | None
    took_s: float


class PricesRefreshed(BaseModel):
    items: list[SourceRefreshed]


class OfferItem(PriceItem):
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


class CapacityPool(BaseModel):
    provider: str
    region: str
    zone: str
    gpu: str
    gpus: int
    free: int


class Capacity(BaseModel):
    items: list[CapacityPool]


class OfferGroup(BaseModel):
    name: str
    offers: int
    priced: int
    best: OfferItem


class Offers(BaseModel):
    """With `group_by` there are groups and no items."""

    items: list[OfferItem]
    groups: list[OfferGroup]
    matched: int
    total: int


class Quote(BaseModel):
    """The cheapest way to hold so many GPUs there, with as few machines as possible."""

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
    as_of: datetime
    age_s: float
    is_stale: bool
    source: str


class ComparedProvider(BaseModel):
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


class Comparison(BaseModel):
    gpu: str
    gpus: int
    hours: float | None
    items: list[ComparedProvider]
