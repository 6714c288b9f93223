"""Whoever knows prices: a provider's API, a list that an operator keeps. A source tells everything it knows at once; it
does not store, compare or choose."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from crucible.model.catalog import Price
from crucible.model.offer import Fabric, Market


class Prices(Protocol):
    name: str  # unique among the sources of a server

    async def prices(self) -> Sequence[Price]:
        """Everything, or ProviderError's children: what is left out is taken for withdrawn."""
        ...


class PriceKey(NamedTuple):
    provider: str
    region: str
    zone: str
    instance_type: str
    market: Market


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFacts:
    """What is known of the machine that a price is for. Written beside the price for people who read the tables."""

    gpu_type: str | None = None
    gpus_per_instance: int | None = None
    memory_per_gpu_gb: float | None = None
    interconnect: Fabric | None = None
    spot_availability: float | None = None  # share of the time, 0 … 1
    interruption_rate: float | None = None  # of one machine, per hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A source as it was met last. A success takes the error away."""

    name: str
    refreshed_at: datetime | None = None  # the last success
    rows: int = 0
    changed: int = 0  # new, changed or withdrawn at that time
    error: str | None = None
    failed_at: datetime | None = None


class PriceMark(NamedTuple):
    """Differs whenever the stored prices do."""

    rows: int
    newest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceQuery:
    """Which history; an empty word means any."""

    provider: str = ""
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    market: Market | None = None
    since: datetime | None = None
    limit: int = 1000  # the newest so many


def key_of(price: Price) -> PriceKey:
    return PriceKey(price.provider, price.region, price.zone, price.instance_type, price.market)
