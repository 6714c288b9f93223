"""Everything on sale as columns: a hundred thousand offers are filtered and priced at once. A row is one instance type
in one zone and one market. What depends only on the type stands in `shapes`, what depends only on the region in
`places`, what depends only on the provider in `sellers`; so most questions are asked a thousand times, not a hundred
thousand. Rows are in the order of their ids, which breaks ties."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crucible.model.catalog import Billing, Hazard, InstanceType, Lane, Price
from crucible.model.ids import OfferId
from crucible.model.offer import Fabric, Market, Offer, Target
from crucible.model.quota import Quota
from crucible.model.units import MicroUsd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]  # as wide as an index: numpy would widen them at every look
Bools = npt.NDArray[np.bool_]

UNKNOWN = -1  # a price nobody states, a stock without end, a name that is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Sellers:
    """One entry per provider; a code is an index into each."""

    name: tuple[str, ...]
    unit_s: Ints
    minimum_s: Ints
    start_s: Floats
    egress_usd_per_gb: Floats  # NaN: unknown
    max_nodes: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """One entry per instance type of a provider."""

    name: tuple[str, ...]
    seller: Codes
    gpu: Codes  # into OfferTable.gpus; UNKNOWN: none
    gpus: Ints
    gpu_memory_gib: Floats
    cpus: Floats
    memory_gib: Floats
    disk_gib: Floats  # NaN: unknown
    network_gbps: Floats  # NaN: unknown
    fabric: Ints
    backend: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """One entry per region of a provider, sold or only a home of data; the lanes are square matrices over them."""

    region: tuple[str, ...]
    seller: Codes
    usd_per_gb: Floats  # [from, to]; NaN: unknown
    gbps: Floats

    def find(self, provider: int, region: str) -> int:
        """UNKNOWN if there is no such region."""
        for index, name in enumerate(self.region):
            if name == region and self.seller[index] == provider:
                return index
        return UNKNOWN


@dataclass(frozen=True, kw_only=True)
class OfferTable:
    """What follows from the columns and is asked by every plan is worked out once per table."""

    sellers: Sellers
    shapes: Shapes
    places: Places
    gpus: tuple[str, ...]
    zones: tuple[str, ...]
    sources: tuple[str, ...]
    # --- columns, one entry per offer
    shape: Codes
    place: Codes
    zone: Codes
    market: npt.NDArray[np.int8]
    price: Ints  # micro-dollars of one machine for an hour; UNKNOWN
    hazard: Floats  # interruptions of one machine per hour; 0 where it cannot be taken away, NaN: unknown
    availability: Floats  # NaN: unknown
    as_of: Ints  # seconds since 1970
    source: Codes
    stock: Codes  # into `stocks`; UNKNOWN: not limited by what we know
    # --- own machines: what several rows draw from, and what is free of it
    stocks: tuple[str, ...]
    free_gpus: tuple[int, ...]
    live: Mapping[int, Offer]  # rows that a seller itself listed just now
    # Rows that were refused a moment ago and are not asked for again yet: why, and until when.
    cooling: Mapping[int, str] = field(default_factory=dict)
    quotas: tuple[Quota, ...] = ()  # of the accounts that machines are bought with, as far as they are known

    def __len__(self) -> int:
        return len(self.shape)

    @cached_property
    def by_price(self) -> Ints:
        """Rows, cheapest first; those without a price last."""
        return np.lexsort((self.price, self.price == UNKNOWN))

    @cached_property
    def is_spot(self) -> Bools:
        return np.equal(self.market, Market.SPOT)

    @cached_property
    def has_no_price(self) -> Bools:
        return np.equal(self.price, UNKNOWN)

    @cached_property
    def is_steady(self) -> Bools:
        """Cannot be taken away."""
        return np.equal(self.hazard, 0)

    @cached_property
    def has_no_hazard(self) -> Bools:
        return np.isnan(self.hazard)

    @cached_property
    def seller(self) -> Codes:
        return self.shapes.seller[self.shape]

    @cached_property
    def stocked(self) -> Ints:
        """Rows that can run out."""
        return np.flatnonzero(self.stock != UNKNOWN)

    @cached_property
    def _enabled(self) -> dict[frozenset[str], Bools]:
        return {}

    def enabled_places(self, enabled: frozenset[str]) -> Bools:
        """Per place, whether "aws" or "aws/us-east-1" is among them. Of every plan the same is asked."""
        if enabled not in self._enabled:
            names = [
                (self.sellers.name[seller], region)
                for seller, region in zip(self.places.seller, self.places.region, strict=True)
            ]
            said = [name in enabled or f"{name}/{region}" in enabled for name, region in names]
            self._enabled[enabled] = np.array(said, dtype=bool)
        return self._enabled[enabled]

    @cached_property
    def numbered(self) -> dict[Hashable, Ints]:
        """Numbers per row that somebody worked out and will ask for again, by what they are about."""
        return {}

    @cached_property
    def worked_out(self) -> dict[str, Floats]:
        """Matrices over places that follow from the columns, by name; whoever needs one first makes it."""
        return {}

    def seller_code(self, provider: str) -> int:
        return self.sellers.name.index(provider) if provider in self.sellers.name else UNKNOWN

    def gpu_code(self, gpu: str) -> int:
        return self.gpus.index(gpu) if gpu in self.gpus else UNKNOWN

    @cached_property
    def emptied(self) -> "OfferTable":
        """As if nobody used the own machines or any quota, and nothing had been refused: the largest machine of a stock
        is the whole stock."""
        whole = dict.fromkeys(self.stocks, 0)
        for offer in self.live.values():
            if offer.stock in whole:
                whole[offer.stock] = max(whole[offer.stock], offer.gpus)
        live = {row: replace(offer, free_machines=offer.all_machines) for row, offer in self.live.items()}
        free_gpus, quotas = tuple(whole[stock] for stock in self.stocks), tuple(replace(q, used=0) for q in self.quotas)
        return replace(self, free_gpus=free_gpus, live=live, cooling={}, quotas=quotas)

    def listing(self, row: int) -> "Listing":
        shape, place = int(self.shape[row]), int(self.place[row])
        shapes, price = self.shapes, int(self.price[row])
        gpu, stock = int(shapes.gpu[shape]), int(self.stock[row])
        return Listing(
            row=row,
            id=self.id_of(row),
            target=Target(
                self.sellers.name[shapes.seller[shape]],
                self.places.region[place],
                shapes.backend[shape],
            ),
            zone=self.zones[self.zone[row]],
            instance_type=shapes.name[shape],
            gpu=None if gpu == UNKNOWN else self.gpus[gpu],
            gpus=int(shapes.gpus[shape]),
            gpu_memory_gib=float(shapes.gpu_memory_gib[shape]),
            cpus=float(shapes.cpus[shape]),
            memory_gib=float(shapes.memory_gib[shape]),
            market=Market(int(self.market[row])),
            price=None if price == UNKNOWN else MicroUsd(price),
            as_of=datetime.fromtimestamp(int(self.as_of[row]), UTC),
            source=self.sources[self.source[row]],
            hazard_per_hour=known(self.hazard[row]),
            availability=known(self.availability[row]),
            free_gpus=None if stock == UNKNOWN else self.free_gpus[stock],
            cooling=self.cooling.get(row),
            free_machines=self.live[row].free_machines if row in self.live else None,
            stock=None if stock == UNKNOWN else self.stocks[stock],
            quotas=self._quotas_of(row),
            on_demand=self._on_demand(row),
        )

    def _on_demand(self, row: int) -> MicroUsd | None:
        firm = row if self.market[row] == Market.ON_DEMAND else on_demand_sibling(self, row)
        price = UNKNOWN if firm == UNKNOWN else int(self.price[firm])
        return None if price == UNKNOWN else MicroUsd(price)

    def _quotas_of(self, row: int) -> tuple[Quota, ...]:
        shape, region = int(self.shape[row]), self.places.region[self.place[row]]
        provider, name = self.sellers.name[self.shapes.seller[shape]], self.shapes.name[shape]
        return tuple(q for q in self.quotas if q.holds_for(provider, region, Market(int(self.market[row])), name))

    def row_of(self, offer: OfferId) -> int:
        """UNKNOWN if it is not for sale."""
        for row, listed in self.live.items():
            if listed.id == offer:
                return row
        provider, region, zone = (*offer.split("/"), "", "")[:3]
        named = "" if zone == "-" else zone
        place = self.places.find(self.seller_code(provider), region)
        code = self.zones.index(named) if named in self.zones else UNKNOWN
        here = np.flatnonzero((self.place == place) & (self.zone == code))
        return next((row for row in here.tolist() if self.id_of(row) == offer), UNKNOWN)

    def id_of(self, row: int) -> OfferId:
        live = self.live.get(row)
        if live is not None:
            return live.id
        shape, place = int(self.shape[row]), int(self.place[row])
        return offer_id(
            self.sellers.name[self.shapes.seller[shape]],
            self.places.region[place],
            self.zones[self.zone[row]],
            self.shapes.name[shape],
            Market(int(self.market[row])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One row as a value."""

    row: int
    id: OfferId
    target: Target
    zone: str
    instance_type: str
    gpu: str | None
    gpus: int
    gpu_memory_gib: float
    cpus: float
    memory_gib: float
    market: Market
    price: MicroUsd | None
    as_of: datetime
    source: str
    hazard_per_hour: float | None
    availability: float | None
    free_gpus: int | None
    cooling: str | None = None  # why it is not asked for at the moment
    free_machines: int | None = None  # own machines: so many can be had
    stock: str | None = None  # that `free_gpus` are of
    quotas: tuple[Quota, ...] = ()  # that it counts against
    on_demand: MicroUsd | None = None  # what it costs where it is not taken away; None: nobody says


def on_demand_sibling(table: OfferTable, row: int) -> int:
    """The same type in the same zone on demand; ids are sorted, so it stands close by."""
    for other in range(max(0, row - 2), min(len(table), row + 3)):
        is_same = table.shape[other] == table.shape[row] and table.place[other] == table.place[row]
        is_sold = table.market[other] == Market.ON_DEMAND and table.price[other] != UNKNOWN
        if is_same and is_sold and table.zone[other] == table.zone[row]:
            return other
    return UNKNOWN


def offer_id(provider: str, region: str, zone: str, instance_type: str, market: Market) -> OfferId:
    return OfferId(f"{provider}/{region}/{zone or '-'}/{instance_type}/{market.name.lower().replace('_', '-')}")


def known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# --- making a table -----------------------------------------------------------------------------------


class Codebook:
    """Numbers for names, in the order in which they come."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._codes: dict[str, int] = {}
        for name in names:
            self.code(name)

    def code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._codes)


def make_table(
    types: Iterable[InstanceType],
    prices: Iterable[Price],
    billing: Iterable[Billing] = (),
    hazards: Iterable[Hazard] = (),
    lanes: Iterable[Lane] = (),
) -> OfferTable:
    """From values, for tests, builds and refreshes; a shipped catalog is read as columns. A price of a type that is not
    among `types` is left out."""
    types = sorted(types, key=lambda t: (t.provider, t.name))
    billing, lanes = list(billing), list(lanes)
    key_of = {(t.provider, t.name): index for index, t in enumerate(types)}
    rows = sorted(
        (p for p in prices if (p.provider, p.instance_type) in key_of),
        key=lambda p: offer_id(p.provider, p.region, p.zone, p.instance_type, p.market),
    )
    sellers, gpus, zones, sources = Codebook(), Codebook(), Codebook([""]), Codebook()
    for name in (*(t.provider for t in types), *(b.provider for b in billing)):
        sellers.code(name)
    regions = Codebook(f"{p.provider}:{p.region}" for p in rows)
    for lane in lanes:
        regions.code(lane.source)
        regions.code(lane.target)
    for region in regions.names:
        sellers.code(region.partition(":")[0])
    risk = HazardBook(hazards)
    return OfferTable(
        sellers=seller_columns(sellers.names, billing),
        shapes=shape_columns(types, sellers, gpus),
        places=place_columns(regions.names, sellers, lanes),
        gpus=gpus.names,
        shape=codes(key_of[p.provider, p.instance_type] for p in rows),
        place=codes(regions.code(f"{p.provider}:{p.region}") for p in rows),
        zone=codes(zones.code(p.zone) for p in rows),
        market=np.array([p.market for p in rows], dtype=np.int8),
        price=ints(UNKNOWN if p.price is None else p.price for p in rows),
        hazard=floats(risk.per_hour(p) for p in rows),
        availability=floats(risk.availability(p) for p in rows),
        as_of=ints(int(p.as_of.timestamp()) for p in rows),
        source=codes(sources.code(p.source) for p in rows),
        stock=np.full(len(rows), UNKNOWN, dtype=np.int64),
        zones=zones.names,
        sources=sources.names,
        stocks=(),
        free_gpus=(),
        live={},
    )


class HazardBook:
    """The most particular estimate there is: of the type in its region, of the region, of the provider."""

    def __init__(self, hazards: Iterable[Hazard]) -> None:
        self._by_key = {(h.provider, h.region, h.instance_type): h for h in hazards}

    def find(self, provider: str, region: str, instance_type: str) -> Hazard | None:
        keys = ((provider, region, instance_type), (provider, "", instance_type), (provider, region, ""))
        return next((self._by_key[key] for key in (*keys, (provider, "", "")) if key in self._by_key), None)

    def per_hour(self, price: Price) -> float | None:
        if price.market is not Market.SPOT:
            return 0.0
        found = self.find(price.provider, price.region, price.instance_type)
        return found.per_hour if found else None

    def availability(self, price: Price) -> float | None:
        if price.market is not Market.SPOT:
            return None
        found = self.find(price.provider, price.region, price.instance_type)
        return found.availability if found else None


# What is assumed of a provider that nobody described: bills by the second, a few machines at most.
PLAIN = Billing(provider="", unit_s=1, minimum_s=0, start_s=0.0, egress_usd_per_gb=None, max_nodes=8, source="default")


def seller_columns(names: Sequence[str], billing: Iterable[Billing]) -> Sellers:
    by_name = {b.provider: b for b in billing}
    known_rules = [by_name.get(name, PLAIN) for name in names]
    return Sellers(
        name=tuple(names),
        unit_s=ints(b.unit_s for b in known_rules),
        minimum_s=ints(b.minimum_s for b in known_rules),
        start_s=floats(b.start_s for b in known_rules),
        egress_usd_per_gb=floats(b.egress_usd_per_gb for b in known_rules),
        max_nodes=ints(b.max_nodes for b in known_rules),
    )


def shape_columns(types: Sequence[InstanceType], sellers: Codebook, gpus: Codebook) -> Shapes:
    return Shapes(
        name=tuple(t.name for t in types),
        seller=codes(sellers.code(t.provider) for t in types),
        gpu=codes(UNKNOWN if t.gpu is None else gpus.code(t.gpu) for t in types),
        gpus=ints(t.gpus for t in types),
        gpu_memory_gib=floats(t.gpu_memory_gib for t in types),
        cpus=floats(t.cpus for t in types),
        memory_gib=floats(t.memory_gib for t in types),
        disk_gib=floats(t.disk_gib for t in types),
        network_gbps=floats(t.network_gbps for t in types),
        fabric=ints(t.fabric for t in types),
        backend=tuple(t.backend for t in types),
    )


def place_columns(regions: Sequence[str], sellers: Codebook, lanes: Iterable[Lane]) -> Places:
    at = {region: index for index, region in enumerate(regions)}
    usd, gbps = (np.full((len(regions), len(regions)), np.nan) for _ in range(2))
    for lane in lanes:
        where = at[lane.source], at[lane.target]
        usd[where] = lane.usd_per_gb
        gbps[where] = np.nan if lane.gbps is None else lane.gbps
    return Places(
        region=tuple(region.partition(":")[2] for region in regions),
        seller=codes(sellers.code(region.partition(":")[0]) for region in regions),
        usd_per_gb=usd,
        gbps=gbps,
    )


def codes(values: Iterable[int]) -> Codes:
    return np.array(list(values), dtype=np.int64)


def ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


# --- what sellers list themselves ---------------------------------------------------------------------


def with_live(table: OfferTable, offers: Sequence[Offer], now: datetime) -> OfferTable:
    """The same with what sellers list just now, own machines above all: rows with a stock that can run out."""
    if not offers:
        return table
    sellers, gpus = Codebook(table.sellers.name), Codebook(table.gpus)
    regions = Codebook(
        f"{table.sellers.name[s]}:{r}" for s, r in zip(table.places.seller, table.places.region, strict=True)
    )
    stocks, sources, zones = Codebook(), Codebook(table.sources), Codebook(table.zones)
    free: dict[str, int] = {}
    for offer in offers:
        sellers.code(offer.target.provider)
        regions.code(f"{offer.target.provider}:{offer.target.region}")
        zones.code(offer.zone)
        if offer.stock is not None and offer.free_gpus is not None:
            stocks.code(offer.stock)
            free[offer.stock] = offer.free_gpus
    first = len(table)
    count = len(offers)
    first_shape = len(table.shapes.name)
    return replace(
        table,
        sellers=more_sellers(table.sellers, sellers.names),
        shapes=more_shapes(table.shapes, offers, sellers, gpus),
        places=more_places(table.places, regions.names, sellers),
        gpus=gpus.names,
        sources=(*sources.names, *(() if "live" in sources.names else ("live",))),
        shape=joined(table.shape, np.arange(first_shape, first_shape + count)),
        place=joined(table.place, [regions.code(f"{o.target.provider}:{o.target.region}") for o in offers]),
        zones=zones.names,
        zone=joined(table.zone, [zones.code(o.zone) for o in offers]),
        market=joined(table.market, [Market.SPOT if o.is_spot else Market.ON_DEMAND for o in offers]),
        price=joined(table.price, [o.price_per_hour for o in offers]),
        hazard=joined(table.hazard, [np.nan if o.is_spot else 0.0 for o in offers]),
        availability=joined(table.availability, np.full(count, np.nan)),
        as_of=joined(table.as_of, np.full(count, int(now.timestamp()))),
        source=joined(table.source, np.full(count, sources.code("live"))),
        stock=joined(table.stock, [UNKNOWN if o.stock not in free else stocks.code(o.stock) for o in offers]),
        stocks=stocks.names,
        free_gpus=tuple(free[name] for name in stocks.names),
        live={first + i: offer for i, offer in enumerate(offers)},
    )


def joined(column: npt.NDArray[Any], more: object) -> npt.NDArray[Any]:
    return np.concatenate([column, np.asarray(more).astype(column.dtype)])


def more_sellers(sellers: Sellers, names: Sequence[str]) -> Sellers:
    new = seller_columns(names[len(sellers.name) :], ())
    return Sellers(
        name=tuple(names),
        unit_s=joined(sellers.unit_s, new.unit_s),
        minimum_s=joined(sellers.minimum_s, new.minimum_s),
        start_s=joined(sellers.start_s, new.start_s),
        egress_usd_per_gb=joined(sellers.egress_usd_per_gb, new.egress_usd_per_gb),
        max_nodes=joined(sellers.max_nodes, new.max_nodes),
    )


def more_shapes(shapes: Shapes, offers: Sequence[Offer], sellers: Codebook, gpus: Codebook) -> Shapes:
    unknown = np.full(len(offers), np.nan)
    return Shapes(
        name=(*shapes.name, *(o.instance_type for o in offers)),
        seller=joined(shapes.seller, [sellers.code(o.target.provider) for o in offers]),
        gpu=joined(shapes.gpu, [UNKNOWN if o.gpu is None else gpus.code(o.gpu) for o in offers]),
        gpus=joined(shapes.gpus, [o.gpus for o in offers]),
        gpu_memory_gib=joined(shapes.gpu_memory_gib, [o.gpu_memory_gib for o in offers]),
        cpus=joined(shapes.cpus, [o.cpus for o in offers]),
        memory_gib=joined(shapes.memory_gib, [o.memory_gib for o in offers]),
        disk_gib=joined(shapes.disk_gib, unknown),
        network_gbps=joined(shapes.network_gbps, unknown),
        # Own machines of one zone stand side by side.
        fabric=joined(shapes.fabric, [Fabric.HIGH for _ in offers]),
        backend=(*shapes.backend, *(o.target.backend for o in offers)),
    )


def more_places(places: Places, regions: Sequence[str], sellers: Codebook) -> Places:
    old, new = len(places.region), len(regions)
    usd, gbps = (np.full((new, new), np.nan) for _ in range(2))
    usd[:old, :old] = places.usd_per_gb
    gbps[:old, :old] = places.gbps
    more = regions[old:]
    return Places(
        region=(*places.region, *(region.partition(":")[2] for region in more)),
        seller=joined(places.seller, [sellers.code(region.partition(":")[0]) for region in more]),
        usd_per_gb=usd,
        gbps=gbps,
    )
