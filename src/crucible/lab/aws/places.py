"""What the world sells where, found by the names that Amazon's requests use."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from crucible.lab.aws.errors import AwsError, invalid
from crucible.lab.aws.names import derived
from crucible.world.facts import Facts, MachineType, Sale, Zone

_ARM = re.compile(r"[a-z]+\d+g[a-z]*$|p6e-gb")  # Graviton and Grace


class Places:
    def __init__(self, facts: Facts) -> None:
        self.types: dict[str, MachineType] = {type.name: type for type in facts.types}
        self.sales: dict[tuple[str, str], Sale] = {(sale.zone, sale.type): sale for sale in facts.sales}
        self._zones = {zone.name: zone for zone in facts.zones}
        self._by_region: defaultdict[str, list[Zone]] = defaultdict(list)
        for zone in sorted(facts.zones, key=lambda zone: zone.name):
            self._by_region[zone.region].append(zone)

    @cached_property
    def regions(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_region))

    def zones(self, region: str) -> Sequence[Zone]:
        return self._by_region.get(region, ())

    def zone(self, region: str, name: str) -> Zone:
        """By its name or its id."""
        found = [zone for zone in self.zones(region) if name in (zone.name, zone.id)]
        if not found:
            invalid(f"Invalid availability zone: [{name}]")
        return found[0]

    def zone_of(self, name: str) -> Zone:
        return self._zones[name]

    def type(self, name: str) -> MachineType:
        if name not in self.types:
            invalid(f"Invalid value '{name}' for InstanceType.")
        return self.types[name]

    def selling(self, region: str, type: str) -> Sequence[Zone]:
        """The zones of a region that sell it."""
        return [zone for zone in self.zones(region) if (zone.name, type) in self.sales]

    def types_in(self, region: str) -> Sequence[MachineType]:
        names = {type for zone, type in self.sales if self._zones[zone].region == region}
        return [self.types[name] for name in sorted(names)]

    def check_sold(self, region: str, type: str, zone: str | None) -> None:
        """Raises AwsError unless `type` can be had in the zone, or anywhere in the region."""
        self.type(type)
        selling = [found.name for found in self.selling(region, type)]
        if not selling:
            raise AwsError(
                "Unsupported",
                "The requested configuration is currently not supported. "
                f"Please check the documentation for supported configurations: {type} is not offered in {region}.",
            )
        if zone is not None and zone not in selling:
            raise AwsError(
                "Unsupported",
                f"Your requested instance type ({type}) is not supported in your requested Availability Zone ({zone}). "
                "Please retry your request by not specifying an Availability Zone or choosing "
                f"{', '.join(selling)}.",
            )


def architecture(type: str) -> str:
    family = type.partition(".")[0]
    return "arm64" if _ARM.match(family) else "x86_64"


def subnet_id(account: str, zone: str) -> str:
    """Every zone has one default subnet."""
    return derived("subnet", account, zone)
