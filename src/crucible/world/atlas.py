"""What is on sale where, found by name. It knows nothing of who holds what."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from crucible.world.facts import Account, Facts, MachineType, Market, Sale, Zone
from crucible.world.machine import Refused, RefusedBy
from crucible.world.prices import PriceLine

_T = TypeVar("_T")


class Atlas:
    """Every lookup of something that is not there is Refused(UNKNOWN)."""

    def __init__(self, facts: Facts) -> None:
        self._types = {type.name: type for type in facts.types}
        self._zones = {zone.name: zone for zone in facts.zones}
        self._accounts = {account.id: account for account in facts.accounts}
        self._usual = {(sale.zone, sale.type): sale for sale in facts.sales}
        self._sales = dict(self._usual)
        self.lines = {place: PriceLine(sale.spot) for place, sale in self._sales.items() if sale.spot}

    def account(self, id: str) -> Account:
        return _found(self._accounts.get(id), f"there is no account {id}")

    def type(self, name: str) -> MachineType:
        return _found(self._types.get(name), f"there is no type {name}")

    def zone(self, name: str) -> Zone:
        return _found(self._zones.get(name), f"there is no zone {name}")

    def sale(self, zone: str, type: str) -> Sale:
        return _found(self._sales.get((zone, type)), f"{type} is not sold in {zone}")

    def set_capacity(self, zone: str, type: str, market: Market, machines: int | None) -> None:
        """None: what the facts say."""
        sale, usual = self.sale(zone, type), self._usual[zone, type]
        if market is Market.SPOT:
            sale = replace(sale, spot_capacity=usual.spot_capacity if machines is None else machines)
        else:
            sale = replace(sale, on_demand_capacity=usual.on_demand_capacity if machines is None else machines)
        self._sales[zone, type] = sale

    def line(self, zone: str, type: str) -> PriceLine:
        return _found(self.lines.get((zone, type)), f"{type} is not sold as spot in {zone}")

    def sales(self, region: str, type: str, market: Market, zone: str | None = None) -> Sequence[Sale]:
        """Where a purchase may be made: in the zone that was named, else in any of the region."""
        names = [zone] if zone else sorted(known.name for known in self._zones.values() if known.region == region)
        if not names or any(self.zone(name).region != region for name in names):
            raise Refused(RefusedBy.UNKNOWN, f"there is no zone {zone or 'at all'} in {region}")
        found = [self._sales[name, type] for name in names if (name, type) in self._sales]
        if market is Market.SPOT:
            found = [sale for sale in found if (sale.zone, sale.type) in self.lines]
        if not found:
            raise Refused(RefusedBy.UNKNOWN, f"{type} is not sold as {market} in {zone or region}")
        return found

    def quota(self, account: str, region: str, pool: str, market: Market) -> int:
        owner = self.account(account)
        return owner.quotas.get((region, pool, market), owner.default_quota)


def _found(thing: _T | None, message: str) -> _T:
    if thing is None:
        raise Refused(RefusedBy.UNKNOWN, message)
    return thing
