"""May this purchase be made, where, and how much of it. It decides and changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from crucible.world.atlas import Atlas
from crucible.world.facts import Market, Sale
from crucible.world.holdings import Holdings
from crucible.world.machine import Launch, Refused, RefusedBy


@dataclass(frozen=True, slots=True)
class Place:
    """Where a purchase is made. All machines of one purchase are in one zone."""

    sale: Sale
    count: int
    max_price: int | None = None  # spot


def admit(ask: Launch, atlas: Atlas, holdings: Holdings, now: float) -> Place:
    """As many as possible up to `most`; fewer than `least` is Refused."""
    if not 1 <= ask.least <= ask.most:
        raise ValueError(f"at least {ask.least} and at most {ask.most} machines is no purchase")
    if ask.reservation is not None:
        return _reserved(ask, atlas, holdings)
    atlas.type(ask.type)
    sales = atlas.sales(ask.region, ask.type, ask.market, ask.zone)
    allowed = min(ask.most, _allowed(ask, atlas, holdings))
    if allowed < ask.least:
        raise Refused(RefusedBy.QUOTA, f"{ask.least} x {ask.type} as {ask.market} in {ask.region} is over the quota")
    if ask.market is Market.SPOT:
        sales = _affordable(ask, sales, atlas, now)
    places = [Place(sale, min(allowed, holdings.room(sale, ask.market)), _limit(ask, sale)) for sale in sales]
    best = min(places, key=lambda place: (-place.count, _price(ask, place.sale, atlas, now), place.sale.zone))
    if best.count < ask.least:
        where = ask.zone or ask.region
        raise Refused(RefusedBy.CAPACITY, f"there is no room for {ask.least} x {ask.type} as {ask.market} in {where}")
    return best


def check_reservable(account: str, sale: Sale, count: int, region: str, atlas: Atlas, holdings: Holdings) -> None:
    """Raises Refused if `count` places cannot be held."""
    if count < 1:
        raise ValueError(f"{count} places are no reservation")
    type = atlas.type(sale.type)
    used = holdings.vcpus(account, region, type.quota, Market.ON_DEMAND)
    if used + count * type.vcpus > atlas.quota(account, region, type.quota, Market.ON_DEMAND):
        raise Refused(RefusedBy.QUOTA, f"{count} x {type.name} in {region} is over the quota")
    if holdings.room(sale, Market.ON_DEMAND) < count:
        raise Refused(RefusedBy.CAPACITY, f"there is no room for {count} x {type.name} in {sale.zone}")


def _reserved(ask: Launch, atlas: Atlas, holdings: Holdings) -> Place:
    """Its places count against capacity and quota since they were reserved."""
    held = holdings.reservation(ask.reservation or "", ask.account)
    asked = (ask.region, ask.type, ask.zone or held.zone, ask.market)
    if held.ended_at is not None or asked != (held.region, held.type, held.zone, Market.ON_DEMAND):
        raise Refused(RefusedBy.UNKNOWN, f"{held.id} holds no {ask.type} as {ask.market} in {ask.zone or ask.region}")
    count = min(ask.most, holdings.unused(held))
    if count < ask.least:
        raise Refused(RefusedBy.CAPACITY, f"{held.id} has room for {count} more, not for {ask.least}")
    return Place(atlas.sale(held.zone, held.type), count)


def _allowed(ask: Launch, atlas: Atlas, holdings: Holdings) -> int:
    """How many machines the quota leaves."""
    type = atlas.type(ask.type)
    quota = atlas.quota(ask.account, ask.region, type.quota, ask.market)
    return max(quota - holdings.vcpus(ask.account, ask.region, type.quota, ask.market), 0) // type.vcpus


def _affordable(ask: Launch, sales: Sequence[Sale], atlas: Atlas, now: float) -> Sequence[Sale]:
    priced = {sale.zone: atlas.line(sale.zone, sale.type).at(now) for sale in sales}
    on_sale = [(sale, price) for sale in sales if (price := priced[sale.zone]) is not None]
    if not on_sale:
        raise Refused(RefusedBy.CAPACITY, f"{ask.type} is not sold as spot in {ask.zone or ask.region} yet")
    affordable = [sale for sale, price in on_sale if price <= _cap(ask, sale)]
    if not affordable:
        lowest = min(price for _, price in on_sale)
        raise Refused(RefusedBy.PRICE, f"the spot price of {ask.type} is {lowest} micro-dollars per hour")
    return affordable


def _limit(ask: Launch, sale: Sale) -> int | None:
    return _cap(ask, sale) if ask.market is Market.SPOT else None


def _cap(ask: Launch, sale: Sale) -> int:
    return sale.on_demand if ask.max_price is None else ask.max_price


def _price(ask: Launch, sale: Sale, atlas: Atlas, now: float) -> int:
    if ask.market is Market.ON_DEMAND:
        return sale.on_demand
    return atlas.line(sale.zone, sale.type).at(now) or 0
