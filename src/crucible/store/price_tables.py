"""The tables of prices: what is charged now, and every change of it. A row is one instance type in one zone and one
market; seed 000's two prices of a row are generated columns."""

from sqlalchemy import CheckConstraint, Column, Computed, Index, Numeric, Table, UniqueConstraint

from crucible.store.columns import Serial, dollars, key, metadata, moment, money, number, whole, word

MARKETS = "market IN ('on_demand', 'spot', 'reserved')"


def price_of(market: str) -> Computed:
    return Computed(f"CASE WHEN market = '{market}' THEN price_per_hour_microusd / 1000000.0 END", persisted=True)


gpu_pricing = Table(
    "gpu_pricing",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    word("provider"),
    word("region"),
    word("zone"),
    word("instance_type"),
    word("market"),
    word("gpu_type", null=True),
    whole("gpus_per_instance", null=True),
    number("memory_per_gpu_gb", null=True),
    word("interconnect", null=True),
    money("price_per_hour_microusd", null=True),
    dollars("price_per_hour", "price_per_hour_microusd"),
    Column("on_demand_price_per_hour", Numeric(20, 6), price_of("on_demand")),
    Column("spot_price_per_hour", Numeric(20, 6), price_of("spot")),
    number("spot_availability", null=True),
    number("interruption_rate", null=True),
    moment("as_of"),
    word("source"),
    word("feed"),
    moment("last_updated"),
    UniqueConstraint("provider", "region", "zone", "instance_type", "market"),
    CheckConstraint(MARKETS, name="market"),
    CheckConstraint("price_per_hour_microusd >= 0", name="price"),
)
Index("ix_gpu_pricing_updated", gpu_pricing.c.last_updated)
Index("ix_gpu_pricing_of_feed", gpu_pricing.c.feed)

# Who tells prices, as it was met last: a success takes the error away.
price_feeds = Table(
    "price_feeds",
    metadata,
    key("name"),
    moment("refreshed_at", null=True),
    whole("rows"),
    whole("changed"),
    word("error", null=True),
    moment("failed_at", null=True),
)

price_history = Table(
    "price_history",
    metadata,
    Column("id", Serial, primary_key=True, autoincrement=True),
    word("provider"),
    word("region"),
    word("zone"),
    word("instance_type"),
    word("market"),
    money("price_per_hour_microusd", null=True),
    dollars("price_per_hour", "price_per_hour_microusd"),
    moment("as_of"),
    word("source"),
    CheckConstraint(MARKETS, name="market"),
)
Index("ix_price_history_of_type", price_history.c.provider, price_history.c.instance_type, price_history.c.as_of)
Index("ix_price_history_oldest", price_history.c.as_of)
