"""The shipped catalog as a world: the same types, zones, prices and hazards that plans are made from. What no catalog
says (how many machines a zone has, what an account may hold) is decided here."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from crucible.catalog import Catalog
from crucible.model.catalog import InstanceType
from crucible.model.errors import InvalidRequest
from crucible.model.offer import Fabric
from crucible.model.offer import Market as OfferMarket
from crucible.world.facts import Account, Facts, MachineType, PricePoint, Sale, Terms, Zone

PROVIDER = "aws"
# Machines of one type in one zone. GPUs that everybody wants are fewer; there is always less of spot.
CAPACITY = {"g": 400, "p": 32}
SPOT_SHARE = 0.5
# vCPUs of each kind in each region: 50 of the largest machines, 1,200 of the smallest.
QUOTA = 9_600
# From the order to a running machine, and from the order to end it to its end, as clouds need.
BOOT_S, STOP_S = (20.0, 60.0), (2.0, 8.0)

_ZONE_ID = re.compile(r"(?P<region>[a-z]+\d)-(?:(?P<city>[a-z]+)(?P<site>\d)-)?az(?P<number>\d+)")

# The spot prices of a zone and a type whose last known price is given.
Lines = Callable[[str, str, int], tuple[PricePoint, ...]]


@dataclass(frozen=True, slots=True)
class Offered:
    """One type in one zone, as the catalog has it."""

    region: str
    zone_id: str
    type: str
    on_demand: int | None
    spot: int | None
    hazard: float


def facts(
    catalog: Catalog,
    regions: Collection[str],
    account: str,
    lines: Lines,
    *,
    boot_scale: float = 1.0,
    hazard: float = 1.0,
) -> Facts:
    """`lines` is asked for the spot prices of every zone and type that has any."""
    offered = offers(catalog, regions)
    kinds = {kind.name: kind for kind in catalog.types() if kind.provider == PROVIDER}
    pools = {name: quota_pool(name) for name in kinds}
    zones = {(one.zone_id, one.region): zone_of(one.zone_id, one.region) for one in offered}
    return Facts(
        types=tuple(machine_type(kinds[name]) for name in sorted({one.type for one in offered})),
        zones=tuple(sorted(zones.values(), key=lambda zone: zone.name)),
        sales=tuple(
            sale(one, zones[one.zone_id, one.region], CAPACITY[pools[one.type]], hazard, lines) for one in offered
        ),
        accounts=(Account(id=account, default_quota=QUOTA),),
        terms=Terms(minimum_s=next(b.minimum_s for b in catalog.billing() if b.provider == PROVIDER)),
        boot_s=_scaled(BOOT_S, boot_scale),
        stop_s=_scaled(STOP_S, boot_scale),
    )


def known_regions(catalog: Catalog) -> tuple[str, ...]:
    prefix = f"{PROVIDER}:"
    return tuple(sorted(place[len(prefix) :] for place in catalog.rows.places if place.startswith(prefix)))


def offers(catalog: Catalog, regions: Collection[str]) -> tuple[Offered, ...]:
    """Everything on sale there. A zone that sells a type only as spot sells it on demand at the region's price; what a
    whole region sells only as spot is left out: bids need a price that limits them."""
    unknown = sorted(set(regions) - set(known_regions(catalog)))
    if unknown:
        raise InvalidRequest(
            f"the catalog knows no region {unknown[0]!r}; it has {', '.join(known_regions(catalog))}", field="regions"
        )
    rows = _rows(catalog, regions)
    usual: dict[tuple[str, str], int] = {}
    for (region, _, type), row in rows.items():
        if row.on_demand is not None:
            usual[region, type] = max(row.on_demand, usual.get((region, type), 0))
    return tuple(
        Offered(region, zone, type, row.on_demand or usual.get((region, type)), row.spot, row.hazard)
        for (region, zone, type), row in sorted(rows.items())
        if zone and (region, type) in usual
    )


@dataclass(slots=True)
class _Row:
    on_demand: int | None = None
    spot: int | None = None
    hazard: float = 0.0


def _rows(catalog: Catalog, regions: Collection[str]) -> Mapping[tuple[str, str, str], _Row]:
    columns = catalog.rows
    wanted = {code: place.partition(":")[2] for code, place in enumerate(columns.places) if _is_in(place, regions)}
    found: dict[tuple[str, str, str], _Row] = {}
    fields = (columns.shape, columns.place, columns.zone, columns.market, columns.price, columns.hazard)
    for shape, place, zone, market, price, hazard in zip(*(column.tolist() for column in fields), strict=True):
        if place not in wanted or price < 0:
            continue
        row = found.setdefault((wanted[place], columns.zones[zone], catalog.shapes[shape].name), _Row())
        if market == OfferMarket.SPOT:
            row.spot, row.hazard = price, hazard if hazard == hazard else 0.0  # not a number: not known
        else:
            row.on_demand = price
    return found


def _is_in(place: str, regions: Collection[str]) -> bool:
    provider, _, region = place.partition(":")
    return provider == PROVIDER and region in regions


def sale(one: Offered, zone: Zone, capacity: int, hazard: float, lines: Lines) -> Sale:
    assert one.on_demand is not None  # offers() gives none without
    return Sale(
        zone=zone.name,
        type=one.type,
        on_demand=one.on_demand,
        spot=lines(one.zone_id, one.type, one.spot) if one.spot is not None else (),
        on_demand_capacity=capacity,
        spot_capacity=int(capacity * SPOT_SHARE),
        hazard_per_hour=one.hazard * hazard,
    )


def zone_of(zone_id: str, region: str) -> Zone:
    """The vendor shuffles letters for each account; here az1 is a. A zone of a city is us-west-2-lax-1a."""
    parts = _ZONE_ID.fullmatch(zone_id)
    if parts is None:
        return Zone(name=zone_id, id=zone_id, region=region)
    letter = chr(ord("a") + int(parts["number"]) - 1)
    city = f"-{parts['city']}-{parts['site']}" if parts["city"] else ""
    return Zone(name=f"{region}{city}{letter}", id=zone_id, region=region)


def machine_type(kind: InstanceType) -> MachineType:
    return MachineType(
        name=kind.name,
        vcpus=int(kind.cpus),
        memory_mib=int(kind.memory_gib * 1024),
        gpus=kind.gpus,
        gpu=kind.gpu,
        gpu_memory_mib=int(kind.gpu_memory_gib * 1024),
        quota=quota_pool(kind.name),
        has_fast_fabric=kind.fabric is not Fabric.STANDARD,
        network=f"{kind.network_gbps:g} Gigabit" if kind.network_gbps else "Up to 25 Gigabit",
    )


def quota_pool(type: str) -> str:
    """The vendor counts vCPUs of all P types together, and of all G types."""
    return "p" if type.startswith("p") else "g"


def _scaled(span: tuple[float, float], scale: float) -> tuple[float, float]:
    return span[0] * scale, span[1] * scale
