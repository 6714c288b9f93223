"""Prices and offers in the words of wire.prices, each with its age."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from crucible.core.browse import Group, Quote, Side
from crucible.core.offers import Listing
from crucible.engine.prices import Refreshed, is_stale
from crucible.model.catalog import Price
from crucible.model.units import MicroUsd, usd
from crucible.ports.prices import Feed


@dataclass(frozen=True, slots=True)
class PriceViews:
    now: datetime
    stale_after: timedelta
    enabled: Collection[str]

    def price(self, one: Listing) -> dict[str, Any]:
        return {
            "provider": one.target.provider,
            "region": one.target.region,
            "zone": one.zone,
            "instance_type": one.instance_type,
            "gpu": one.gpu,
            "gpus": one.gpus,
            "market": one.market.name.lower(),
            "price_per_hour_usd": dollars(one.price),
            **self.dated(one.as_of),
            "source": one.source,
        }

    def offer(self, one: Listing) -> dict[str, Any]:
        per_gpu = None if one.price is None or not one.gpus else usd(one.price) / one.gpus
        return self.price(one) | {
            "id": one.id,
            "backend": one.target.backend,
            "is_enabled": f"{one.target.provider}/{one.target.region}" in self.enabled,
            "gpu_memory_gb": one.gpu_memory_gib,
            "cpus": one.cpus,
            "memory_gb": one.memory_gib,
            "price_per_gpu_hour_usd": per_gpu,
            "availability": one.availability,
            "interruptions_per_hour": one.hazard_per_hour,
            "free_gpus": one.free_gpus,
        }

    def group(self, group: Group) -> dict[str, Any]:
        return {"name": group.name, "offers": group.offers, "priced": group.priced, "best": self.offer(group.best)}

    def side(self, side: Side) -> dict[str, Any]:
        return {
            "provider": side.provider,
            "is_enabled": side.is_enabled,
            "on_demand": self.quote(side.on_demand),
            "spot": self.quote(side.spot),
            "start_s": side.start_s,
            "billing_unit_s": side.unit_s,
            "billing_minimum_s": side.minimum_s,
            "regions": side.regions,
            "offers": side.offers,
            "priced": side.priced,
        }

    def quote(self, quote: Quote | None) -> dict[str, Any] | None:
        if quote is None:
            return None
        one = quote.listing
        return {
            "instance_type": one.instance_type,
            "region": one.target.region,
            "zone": one.zone,
            "count": quote.count,
            "gpu": one.gpu,
            "gpus": one.gpus * quote.count,
            "price_per_hour_usd": usd(quote.price_per_hour),
            "billed_s": quote.billed_s,
            "total_usd": dollars(quote.total),
            "availability": one.availability,
            "interruptions_per_hour": one.hazard_per_hour,
            **self.dated(one.as_of),
            "source": one.source,
        }

    def change(self, price: Price) -> dict[str, Any]:
        return {
            "provider": price.provider,
            "region": price.region,
            "zone": price.zone,
            "instance_type": price.instance_type,
            "market": price.market.name.lower(),
            "price_per_hour_usd": dollars(price.price),
            "as_of": price.as_of,
            "source": price.source,
        }

    def source(self, feed: Feed) -> dict[str, Any]:
        met = feed.refreshed_at
        return {
            "name": feed.name,
            "refreshed_at": met,
            "age_s": None if met is None else self.age_s(met),
            "is_stale": met is None or is_stale(met, self.now, self.stale_after),
            "rows": feed.rows,
            "changed": feed.changed,
            "error": feed.error,
            "failed_at": feed.failed_at,
        }

    def refreshed(self, one: Refreshed) -> dict[str, Any]:
        return {
            "source": one.source,
            "rows": one.rows,
            "changed": one.changed,
            "unknown_types": one.unknown_types,
            "error": one.error,
            "took_s": round(one.took_s, 3),
        }

    def dated(self, as_of: datetime) -> dict[str, Any]:
        return {
            "as_of": as_of,
            "age_s": self.age_s(as_of),
            "is_stale": is_stale(as_of, self.now, self.stale_after),
        }

    def age_s(self, at: datetime) -> float:
        return max(0.0, round((self.now - at).total_seconds(), 3))


def dollars(amount: MicroUsd | None) -> float | None:
    return None if amount is None else usd(amount)
