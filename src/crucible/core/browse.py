"""Looking around in everything on sale, without a job: which offers there are, the best of each kind, and providers
side by side. No risk is priced in here; a plan does that."""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from crucible.core.offers import UNKNOWN, Bools, Floats, Ints, Listing, OfferTable
from crucible.core.rules import named
from crucible.model.offer import Market
from crucible.model.units import MicroUsd

HOUR_S = 3600


class Sort(StrEnum):
    GPU_PRICE = "gpu_price"  # of one GPU for an hour; of a machine without any, the machine's
    PRICE = "price"
    NAME = "name"


class Grouping(StrEnum):
    PROVIDER = "provider"
    REGION = "region"
    GPU = "gpu"
    INSTANCE_TYPE = "instance_type"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """Empty and None mean any. `gpu` "A100" is every A100; `gpus` is the number in one machine."""

    gpu: str = ""
    gpus: int | None = None
    provider: str = ""
    region: str = ""
    instance_type: str = ""
    market: Market | None = None
    max_price: MicroUsd | None = None
    gpu_memory_gib: float = 0.0
    has_price: bool = False


def matching(table: OfferTable, query: OfferQuery) -> Ints:
    """The rows, in their order."""
    fits = shapes_fit(table, query)[table.shape] & places_fit(table, query)[table.place]
    if query.market is not None:
        fits &= table.market == query.market
    if query.has_price or query.max_price is not None:
        fits &= table.price != UNKNOWN
    if query.max_price is not None:
        fits &= table.price <= query.max_price
    return np.flatnonzero(fits)


def shapes_fit(table: OfferTable, query: OfferQuery) -> Bools:
    shapes = table.shapes
    fits = np.ones(len(shapes.name), dtype=bool)
    if query.provider:
        fits &= shapes.seller == table.seller_code(query.provider)
    if query.gpu:
        wanted = named(query.gpu, table.gpus)
        # A declared slot does for a job, but it is no such GPU. The last entry stands for UNKNOWN, -1: no GPU at all.
        fits_gpu = np.array([*(name in wanted for name in table.gpus), False], dtype=bool)
        fits &= fits_gpu[shapes.gpu]
    if query.gpus is not None:
        fits &= shapes.gpus == query.gpus
    if query.instance_type:
        fits &= np.array([name == query.instance_type for name in shapes.name], dtype=bool)
    return fits & (shapes.gpu_memory_gib >= query.gpu_memory_gib)


def places_fit(table: OfferTable, query: OfferQuery) -> Bools:
    wanted = query.region
    return np.array([not wanted or region == wanted for region in table.places.region], dtype=bool)


def ranked(table: OfferTable, rows: Ints, sort: Sort) -> Ints:
    """Cheapest first, unknown prices last; the id breaks ties."""
    if sort is Sort.NAME:
        return rows
    price = prices(table, rows)
    if sort is Sort.GPU_PRICE:
        price = price / np.maximum(1, table.shapes.gpus[table.shape[rows]])
    return rows[np.argsort(price, kind="stable")]


def prices(table: OfferTable, rows: Ints) -> Floats:
    """Infinite where it is unknown."""
    return np.where(table.price[rows] == UNKNOWN, np.inf, table.price[rows].astype(np.float64))


def after(table: OfferTable, rows: Ints, last: str) -> Ints:
    """Those of `rows` that come after the offer `last`, which may be gone by now. Not for rows that sellers listed."""
    count = len(table) - len(table.live)
    return rows[rows >= bisect_right(range(count), last, key=table.id_of)]


# --- groups -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    offers: int
    priced: int  # of them with a known price
    best: Listing  # by the order that was asked for


def grouped(table: OfferTable, rows: Ints, by: Grouping, limit: int) -> list[Group]:
    """`rows` are ranked; the groups are in the order of their best."""
    key = group_keys(table, rows, by)
    names, first, counts = np.unique(key, return_index=True, return_counts=True)
    known = np.bincount(np.searchsorted(names, key), weights=table.price[rows] != UNKNOWN, minlength=len(names))
    groups: list[Group] = []
    for i in np.argsort(first)[:limit]:
        best = table.listing(int(rows[first[i]]))
        groups.append(Group(group_name(best, by), int(counts[i]), int(known[i]), best))
    return groups


def group_keys(table: OfferTable, rows: Ints, by: Grouping) -> Ints:
    shape = table.shape[rows]
    keys = {
        Grouping.PROVIDER: table.shapes.seller[shape],
        Grouping.REGION: table.place[rows],
        Grouping.GPU: table.shapes.gpu[shape],
        Grouping.INSTANCE_TYPE: shape,
    }
    return keys[by].astype(np.int64)


def group_name(one: Listing, by: Grouping) -> str:
    names = {
        Grouping.PROVIDER: one.target.provider,
        Grouping.REGION: f"{one.target.provider}/{one.target.region}",
        Grouping.GPU: one.gpu or "none",
        Grouping.INSTANCE_TYPE: f"{one.target.provider}/{one.instance_type}",
    }
    return names[by]


# --- side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quote:
    """The cheapest way to hold so many GPUs there."""

    listing: Listing
    count: int
    price_per_hour: MicroUsd  # of all machines
    billed_s: int | None
    total: MicroUsd | None  # for the hours that were asked for, as the provider rounds them


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    provider: str
    is_enabled: bool
    on_demand: Quote | None
    spot: Quote | None
    unit_s: int
    minimum_s: int
    start_s: float
    regions: int
    priced: int  # offers with a price
    offers: int


def side_by_side(table: OfferTable, gpu: str, gpus: int, hours: float | None, enabled: Collection[str]) -> list[Side]:
    """Every provider that has the GPU, the cheapest first; without a known price last."""
    rows = matching(table, OfferQuery(gpu=gpu))
    rows = rows[table.shapes.gpus[table.shape[rows]] > 0]
    sellers = table.shapes.seller[table.shape[rows]]
    sides = [side(table, rows[sellers == code], int(code), gpus, hours, enabled) for code in np.unique(sellers)]
    return sorted(sides, key=lambda one: (cheapest(one), one.provider))


def side(table: OfferTable, rows: Ints, seller: int, gpus: int, hours: float | None, enabled: Collection[str]) -> Side:
    provider = table.sellers.name[seller]
    return Side(
        provider=provider,
        is_enabled=provider in enabled,
        on_demand=quote(table, rows[table.market[rows] == Market.ON_DEMAND], gpus, hours),
        spot=quote(table, rows[table.market[rows] == Market.SPOT], gpus, hours),
        unit_s=int(table.sellers.unit_s[seller]),
        minimum_s=int(table.sellers.minimum_s[seller]),
        start_s=float(table.sellers.start_s[seller]),
        regions=len(np.unique(table.place[rows])),
        priced=int(np.count_nonzero(table.price[rows] != UNKNOWN)),
        offers=len(rows),
    )


def cheapest(side: Side) -> float:
    found = [quote.price_per_hour for quote in (side.on_demand, side.spot) if quote is not None]
    return min(found, default=float("inf"))


def quote(table: OfferTable, rows: Ints, gpus: int, hours: float | None) -> Quote | None:
    """As few machines as it can be done with: GPUs of one machine speak faster with one another than any network."""
    rows = rows[table.price[rows] != UNKNOWN]
    if not len(rows):
        return None
    machines = -(-gpus // table.shapes.gpus[table.shape[rows]])
    rows, least = rows[machines == machines.min()], int(machines.min())
    row = int(rows[np.argmin(table.price[rows])])
    price = MicroUsd(int(table.price[row]) * least)
    if hours is None:
        return Quote(table.listing(row), least, price, None, None)
    seller = table.shapes.seller[table.shape[row]]
    billed = billed_s(hours * HOUR_S, int(table.sellers.unit_s[seller]), int(table.sellers.minimum_s[seller]))
    return Quote(table.listing(row), least, price, billed, MicroUsd(round(price * billed / HOUR_S)))


def billed_s(seconds: float, unit_s: int, minimum_s: int) -> int:
    units = -int(-seconds // unit_s)
    return max(units * unit_s, minimum_s)


def listings(table: OfferTable, rows: Sequence[int] | Ints) -> Iterator[Listing]:
    return (table.listing(int(row)) for row in rows)
