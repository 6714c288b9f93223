"""Offers that were refused a moment ago, or whose machines were taken back: they stay on the table, marked, so that a
plan says why it passes them by."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from crucible.core.offers import Bools, OfferTable
from crucible.model.change import Change
from crucible.model.errors import CredentialsRejected, NoCapacity, OrderRejected, ProviderError, Scope
from crucible.model.lease import Lease, Order
from crucible.model.ledger import Cooldown
from crucible.model.offer import Market, Offer
from crucible.model.policy import Policy


def cooldown(order: Order, error: ProviderError, now: datetime, policy: Policy) -> Cooldown:
    """What a refusal says about the next purchase."""
    scope, pause = reach(error, policy)
    is_narrow, is_regional = scope is Scope.ZONE, scope is not Scope.ACCOUNT
    return Cooldown(
        provider=order.target.provider,
        region=order.target.region if is_regional else "",
        zone=order.zone if is_narrow else "",
        instance_type=order.instance_type if is_regional else "",
        market=market_of(order) if is_regional else "",
        until=now + pause,
        reason=error.message,
    )


def reach(error: ProviderError, policy: Policy) -> tuple[Scope, timedelta]:
    match error:
        case CredentialsRejected():
            return Scope.ACCOUNT, policy.credentials_cooldown
        case OrderRejected():
            return Scope.ZONE, policy.rejected_cooldown
        case NoCapacity(scope=scope):
            return scope, policy.capacity_cooldown
        case _:
            return Scope.ZONE, policy.capacity_cooldown


def rests(changes: Iterable[Change], orders: Iterable[Order], now: datetime, policy: Policy) -> tuple[Cooldown, ...]:
    """Where spot machines were taken back by these changes: the next one there would soon go the same way."""
    known = {order.id: order for order in orders if order.is_spot}
    taken = [each.after for each in changes if isinstance(each.after, Lease) and is_news(each)]
    return tuple(rest(known[lease.order_id], lease, now, policy) for lease in taken if lease.order_id in known)


def is_news(change: Change) -> bool:
    """Its machine was taken, and nobody has said so before."""
    was_known = isinstance(change.before, Lease) and change.before.was_taken
    return isinstance(change.after, Lease) and change.after.was_taken and not was_known


def rest(order: Order, lease: Lease, now: datetime, policy: Policy) -> Cooldown:
    return Cooldown(
        provider=order.target.provider,
        region=order.target.region,
        zone=order.zone,
        instance_type=order.instance_type,
        market=market_of(order),
        until=now + policy.taken_cooldown,
        reason=f"a machine was taken back there: {lease.reason or 'nobody says why'}",
    )


def market_of(order: Order) -> str:
    return (Market.SPOT if order.is_spot else Market.ON_DEMAND).name.lower()


def cooled(table: OfferTable, cooldowns: Sequence[Cooldown]) -> OfferTable:
    """The same with the rows that `cooldowns` speak of marked."""
    marks: dict[int, str] = {}
    for one in cooldowns:
        said = f"{one.reason}; asked again after {one.until:%H:%M:%S} UTC"
        marks |= dict.fromkeys((int(row) for row in np.flatnonzero(matching(table, one))), said)
    return replace(table, cooling=marks) if marks else table


def is_resting(offer: Offer, cooldowns: Iterable[Cooldown]) -> bool:
    """The same of one offer that a seller counts itself."""
    market = (Market.SPOT if offer.is_spot else Market.ON_DEMAND).name.lower()
    mine = (offer.target.region, offer.zone, offer.instance_type, market)
    return any(
        one.provider == offer.target.provider
        and all(wanted in ("", own) for wanted, own in zip(spoken_of(one), mine, strict=True))
        for one in cooldowns
    )


def spoken_of(one: Cooldown) -> tuple[str, str, str, str]:
    return one.region, one.zone, one.instance_type, one.market


def matching(table: OfferTable, one: Cooldown) -> Bools:
    found: Bools = table.seller == table.seller_code(one.provider)
    if one.region:
        found &= chosen(table.places.region, one.region)[table.place]
    if one.zone:
        found &= chosen(table.zones, one.zone)[table.zone]
    if one.instance_type:
        found &= chosen(table.shapes.name, one.instance_type)[table.shape]
    if one.market:
        found &= table.market == Market[one.market.upper()]
    return found


def chosen(names: Iterable[str], name: str) -> Bools:
    return np.array([each == name for each in names], dtype=bool)
