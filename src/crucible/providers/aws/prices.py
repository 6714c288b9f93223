"""What Amazon charges in one region now: on demand from its price list, spot from its spot history. It tells everything
or an error, and stores nothing. A source for each region, so that a region in trouble keeps only its own prices old."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crucible.model.catalog import Price
from crucible.model.offer import Market
from crucible.model.units import MicroUsd, micro_usd
from crucible.providers.aws.account import PRICING_REGION, Account, Calls
from crucible.providers.aws.errors import PROVIDER
from crucible.providers.aws.spot_prices import PRODUCT

SOURCE_ON_DEMAND = "AWS Price List"
SOURCE_SPOT = "AWS spot price history"
# The list has no zones: the price holds in all of them.
EVERY_ZONE = "*"
# Of the many products that are called by one instance type, the plain machine.
PLAIN = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}
GPU_FAMILY = "GPU instance"


class AwsPrices:
    """`types`: those that anybody could plan with; None: every type with GPUs."""

    def __init__(
        self,
        region: str,
        *,
        account: Account | None = None,
        types: Collection[str] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.name = f"{PROVIDER}:{region}"
        self._calls = Calls(account or Account(), region)
        self._types = None if types is None else frozenset(types)
        self._now = now

    async def prices(self) -> Sequence[Price]:
        return await self._calls.look(self._prices)

    def close(self) -> None:
        self._calls.close()

    def _prices(self) -> Sequence[Price]:
        on_demand = dict(self._on_demand())
        types = sorted(on_demand if self._types is None else self._types)
        return [
            *(
                self._price(EVERY_ZONE, name, Market.ON_DEMAND, price, SOURCE_ON_DEMAND)
                for name, price in sorted(on_demand.items())
            ),
            *(
                self._price(zone, name, Market.SPOT, price, SOURCE_SPOT)
                for (zone, name), price in sorted(self._spot(types).items())
            ),
        ]

    def _on_demand(self) -> Iterator[tuple[str, MicroUsd]]:
        wanted = {**PLAIN, "regionCode": self._calls.region}
        if self._types is None:
            wanted["instanceFamily"] = GPU_FAMILY
        filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
        pricing = self._calls.client("pricing", region=PRICING_REGION)
        for page in pricing.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters):
            for text in page["PriceList"]:
                product = json.loads(text)
                name = product["product"]["attributes"].get("instanceType")
                price = hourly(product)
                if name and price is not None and (self._types is None or name in self._types):
                    yield name, price

    def _spot(self, types: Sequence[str]) -> Mapping[tuple[str, str], MicroUsd]:
        """The newest of each zone and type; zones by their ids, which mean the same place in every account."""
        if not types:
            return {}
        ec2, ids = self._calls.client(), self._zone_ids()
        newest: dict[tuple[str, str], tuple[datetime, MicroUsd]] = {}
        pages = ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=list(types), ProductDescriptions=[PRODUCT], StartTime=self._now()
        )
        for page in pages:
            for entry in page["SpotPriceHistory"]:
                zone = entry.get("AvailabilityZoneId") or ids.get(entry["AvailabilityZone"], entry["AvailabilityZone"])
                told = entry["Timestamp"], micro_usd(entry["SpotPrice"])
                key = zone, entry["InstanceType"]
                newest[key] = max(newest.get(key, told), told)
        return {key: price for key, (_, price) in newest.items()}

    def _zone_ids(self) -> Mapping[str, str]:
        zones = self._calls.client().describe_availability_zones()["AvailabilityZones"]
        return {zone["ZoneName"]: zone["ZoneId"] for zone in zones}

    def _price(self, zone: str, instance_type: str, market: Market, price: MicroUsd, source: str) -> Price:
        return Price(
            provider=PROVIDER,
            region=self._calls.region,
            zone=zone,
            instance_type=instance_type,
            market=market,
            price=price,
            as_of=self._now(),  # when it was asked, it held
            source=source,
        )


def hourly(product: Mapping[str, Any]) -> MicroUsd | None:
    """What an hour costs on demand; None for a product that is sold otherwise."""
    for term in product.get("terms", {}).get("OnDemand", {}).values():
        for dimension in term.get("priceDimensions", {}).values():
            dollars = dimension.get("pricePerUnit", {}).get("USD")
            if dollars is not None and dimension.get("unit") == "Hrs" and micro_usd(dollars) > 0:
                return micro_usd(dollars)
    return None
