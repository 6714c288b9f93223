"""A price that somebody waits for. What a rule saw last is kept with it, so that a fall is told once, and also if the
server was away when it happened."""

from datetime import datetime

from crucible.core.browse import OfferQuery, Sort, matching, ranked
from crucible.core.offers import Listing, OfferTable
from crucible.model.alert import AlertRule, PriceSeen, PriceWish
from crucible.model.notice import Notice, NoticeKind, Severity, notice_key
from crucible.model.units import MicroUsd, usd


def best(table: OfferTable, wish: PriceWish) -> Listing | None:
    """The cheapest GPU of that kind now."""
    query = OfferQuery(gpu=wish.gpu, provider=wish.provider, market=wish.market, has_price=True)
    rows = ranked(table, matching(table, query), Sort.GPU_PRICE)
    return table.listing(int(rows[0])) if len(rows) else None


def per_gpu(listing: Listing) -> MicroUsd:
    return MicroUsd((listing.price or 0) // max(1, listing.gpus))


def watched(rule: AlertRule, listing: Listing, now: datetime) -> tuple[PriceSeen, Notice | None]:
    """What the rule has seen now, and what it has to tell. A rule that has seen nothing begins with this price; one
    that waits for a price below another tells at once if it is."""
    wish, price, seen = rule.price, per_gpu(listing), rule.price_seen
    assert wish is not None
    is_below = wish.below is not None and price < wish.below and (seen is None or seen.last >= wish.below)
    has_dropped = wish.drop is not None and seen is not None and price <= seen.peak * (1 - wish.drop)
    if is_below or has_dropped:
        return PriceSeen(price, price), _told(rule, wish, listing, price, seen, now)
    return PriceSeen(price, price if seen is None else MicroUsd(max(price, seen.peak))), None


def _told(
    rule: AlertRule, wish: PriceWish, listing: Listing, price: MicroUsd, seen: PriceSeen | None, now: datetime
) -> Notice:
    where = f"{listing.target.provider}/{listing.target.region} {listing.instance_type}"
    market = listing.market.name.lower().replace("_", " ")
    before = "" if seen is None else f", after {_dollars(seen.peak)}"
    return Notice(
        key=notice_key(f"price:{rule.id}", str(int(now.timestamp() * 1000))),
        at=now,
        kind=NoticeKind.PRICE,
        severity=Severity.INFO,
        title=f"{wish.gpu} at {_dollars(price)} an hour: {where}",
        text=f"one GPU of {listing.instance_type} costs {_dollars(price)} an hour{before} ({market}, {listing.source})",
        team=rule.team,
        user_id=rule.user_id,
        details={"rule": rule.id, "gpu": wish.gpu, "price_per_gpu_hour_usd": usd(price), "offer": listing.id},
    )


def _dollars(amount: MicroUsd) -> str:
    return f"${usd(amount):.4f}".rstrip("0").rstrip(".")
