"""An offer table with newer prices: a price replaces the row of its key, or adds one if the type is known. The table it
starts from stays as it is, so that a price which is withdrawn gives way to the catalog's again."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from crucible.core.offers import UNKNOWN, Bools, Codebook, Floats, Ints, OfferTable, codes, ints, more_places, offer_id
from crucible.model.catalog import Price
from crucible.model.errors import InvariantBroken
from crucible.model.offer import Market

EVERY_ZONE = "*"  # a negotiated price mostly holds in a whole region


def with_prices(table: OfferTable, prices: Iterable[Price]) -> OfferTable:
    """A price of a type that the table does not know is left out. Of two with the same key the last counts; one for
    every zone counts less than one for a zone."""
    if table.live:
        raise InvariantBroken("prices come before what sellers list now: with_prices, then with_live")
    known = known_types(table)
    told = [price for price in prices if (price.provider, price.instance_type) in known]
    if not told:
        return table
    told = zoned(table, told)
    table, place, zone, source = named(table, told)
    new = {
        "shape": codes(known[price.provider, price.instance_type] for price in told),
        "place": place,
        "zone": zone,
        "market": np.array([price.market for price in told], dtype=np.int8),
        "price": ints(UNKNOWN if price.price is None else price.price for price in told),
        "as_of": ints(int(price.as_of.timestamp()) for price in told),
        "source": source,
    }
    row, is_there = rows_of(table, new)
    return added(replaced(table, new, row, is_there), told, new, ~is_there)


def known_types(table: OfferTable) -> dict[tuple[str, str], int]:
    sellers = table.sellers.name
    kinds = zip(table.shapes.seller.tolist(), table.shapes.name, strict=True)
    return {(sellers[seller], name): code for code, (seller, name) in enumerate(kinds)}


def zoned(table: OfferTable, told: Sequence[Price]) -> list[Price]:
    """With a price for every zone told for each that the table has there; where it has none, without a zone."""
    wide = [price for price in told if price.zone == EVERY_ZONE]
    if not wide:
        return list(told)
    zones: dict[tuple[str, str, str, Market], list[str]] = {}
    for row in np.flatnonzero(np.isin(table.shape, [known_types(table)[p.provider, p.instance_type] for p in wide])):
        one = table.listing(int(row))
        zones.setdefault((one.target.provider, one.target.region, one.instance_type, one.market), []).append(one.zone)
    spread = [
        replace(price, zone=zone)
        for price in wide
        for zone in zones.get((price.provider, price.region, price.instance_type, price.market), [""])
    ]
    return [*spread, *(price for price in told if price.zone != EVERY_ZONE)]


def named(table: OfferTable, told: Sequence[Price]) -> tuple[OfferTable, Any, Any, Any]:
    """The table with a code for every region, zone and source, and the codes of `told`."""
    sellers, zones, sources = Codebook(table.sellers.name), Codebook(table.zones), Codebook(table.sources)
    regions = Codebook(
        f"{table.sellers.name[seller]}:{region}"
        for seller, region in zip(table.places.seller, table.places.region, strict=True)
    )
    place = codes(regions.code(f"{price.provider}:{price.region}") for price in told)
    zone = codes(zones.code(price.zone) for price in told)
    source = codes(sources.code(price.source) for price in told)
    places = more_places(table.places, regions.names, sellers)
    return replace(table, places=places, zones=zones.names, sources=sources.names), place, zone, source


def rows_of(table: OfferTable, new: dict[str, npt.NDArray[Any]]) -> tuple[Ints, Bools]:
    """Which row has the key of each new price, and whether there is one."""
    if not len(table):
        return np.zeros(len(new["shape"]), dtype=np.int64), np.zeros(len(new["shape"]), dtype=bool)
    columns = {name: getattr(table, name) for name in ("shape", "place", "zone", "market")}
    old_keys, new_keys = keys(table, columns), keys(table, new)
    order = np.argsort(old_keys)
    row = order[np.searchsorted(old_keys, new_keys, sorter=order).clip(max=len(order) - 1)]
    return row, old_keys[row] == new_keys


def keys(table: OfferTable, columns: dict[str, npt.NDArray[Any]]) -> Ints:
    """One number for shape, place, zone and market."""
    key = columns["shape"].astype(np.int64) * len(table.places.region) + columns["place"]
    found: Ints = (key * len(table.zones) + columns["zone"]) * len(Market) + columns["market"]
    return found


def replaced(table: OfferTable, new: dict[str, npt.NDArray[Any]], row: Ints, is_there: Bools) -> OfferTable:
    columns = {name: getattr(table, name).copy() for name in ("price", "as_of", "source")}
    for name, column in columns.items():
        column[row[is_there]] = new[name][is_there]
    return replace(table, **columns)


def added(table: OfferTable, told: Sequence[Price], new: dict[str, npt.NDArray[Any]], is_new: Bools) -> OfferTable:
    """Where the ids say: they are the order of the rows."""
    by_id = {
        offer_id(p.provider, p.region, p.zone, p.instance_type, p.market): i for i, p in enumerate(told) if is_new[i]
    }
    if not by_id:
        return table
    names = sorted(by_id)
    rows = ints(by_id[name] for name in names)
    old_id = cache(table.id_of)  # most of them are asked for again and again
    at = [bisect_left(range(len(table)), name, key=old_id) for name in names]
    hazard, availability = risk_of(table, new)
    more = {name: column[rows] for name, column in new.items()}
    more |= {"hazard": hazard[rows], "availability": availability[rows], "stock": np.full(len(rows), UNKNOWN)}
    columns: dict[str, Any] = {name: np.insert(getattr(table, name), at, column) for name, column in more.items()}
    return replace(table, **columns)


def risk_of(table: OfferTable, new: dict[str, npt.NDArray[Any]]) -> tuple[Floats, Floats]:
    """What is known of the same type in the same region, whatever the zone; NaN otherwise."""
    spot = table.market == Market.SPOT
    known = dict(
        zip(
            zip(table.shape[spot].tolist(), table.place[spot].tolist(), strict=True),
            zip(table.hazard[spot].tolist(), table.availability[spot].tolist(), strict=True),
            strict=True,
        )
    )
    nothing = (np.nan, np.nan)
    found = [known.get(key, nothing) for key in zip(new["shape"].tolist(), new["place"].tolist(), strict=True)]
    columns = np.array(found, dtype=np.float64).reshape(-1, 2)
    is_spot = new["market"] == Market.SPOT
    return np.where(is_spot, columns[:, 0], 0.0), np.where(is_spot, columns[:, 1], np.nan)
