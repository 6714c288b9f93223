"""Which offers count against a quota, what they take of it, and what is left."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from crucible.core.offers import Bools, Floats, Ints, OfferTable
from crucible.model.quota import Holding, Measure, Quota, is_of


def is_under(quota: Quota, table: OfferTable, rows: Ints) -> Bools:
    """Which offers count against it."""
    seller = table.seller_code(quota.provider)
    if quota.region is None:
        under: Bools = table.seller[rows] == seller
    else:
        under = table.place[rows] == table.places.find(seller, quota.region)
    if quota.market is not None:
        under &= table.market[rows] == quota.market
    if quota.families:
        under &= of_families(table, quota.families)[table.shape[rows]]
    return under


def of_families(table: OfferTable, families: tuple[str, ...]) -> Bools:
    """Per shape. Every plan asks, for every region: names are read once per table."""
    key = ("families", families)
    if key not in table.numbered:
        table.numbered[key] = np.array([is_of(families, name) for name in table.shapes.name], dtype=np.int64)
    return table.numbered[key].astype(np.bool_)


def drawn(quota: Quota, table: OfferTable, rows: Ints, nodes: Ints) -> Floats:
    """What a gang of each takes of it."""
    return (nodes * each_shape(quota, table)[table.shape[rows]]).astype(np.float64)


def each_shape(quota: Quota, table: OfferTable) -> Floats:
    """What one machine of each shape takes of it, if it counts."""
    shapes = table.shapes
    each = {Measure.MACHINES: np.ones(len(shapes.name)), Measure.GPUS: shapes.gpus, Measure.CPUS: shapes.cpus}
    return each[quota.measure].astype(np.float64)


# --- what is in use -----------------------------------------------------------------------------------------


def in_use(quotas: Sequence[Quota], held: Sequence[Holding], table: OfferTable) -> tuple[Quota, ...]:
    """With what is held of each."""
    return tuple(replace(quota, used=quota.used + held_under(quota, held, table)) for quota in quotas)


def freed(quotas: Sequence[Quota], held: Sequence[Holding], table: OfferTable) -> tuple[Quota, ...]:
    """As if those machines were not there: for a plan that counts them itself. Nobody has to give them back because a
    quota was lowered since."""
    return tuple(spared(quota, held_under(quota, held, table)) for quota in quotas)


def spared(quota: Quota, held: int) -> Quota:
    used = max(quota.used - held, 0)
    return replace(quota, used=used, most=max(quota.most, used + held))


def held_under(quota: Quota, held: Iterable[Holding], table: OfferTable) -> int:
    mine = [one for one in held if quota.holds_for(one.provider, one.region, one.market, one.instance_type)]
    return round(sum(one.machines * each_of(quota, one, table) for one in mine))


def each_of(quota: Quota, one: Holding, table: OfferTable) -> float:
    """What a machine takes; of a type that nobody knows any more, nothing but its place."""
    if quota.measure is Measure.MACHINES:
        return 1.0
    seller = table.seller_code(one.provider)
    for shape in (i for i, name in enumerate(table.shapes.name) if name == one.instance_type):
        if table.shapes.seller[shape] == seller:
            return float(each_shape(quota, table)[shape])
    return 0.0


# --- one gang -----------------------------------------------------------------------------------------------


def over(quota: Quota, table: OfferTable, nodes: Ints) -> Bools | None:
    """Offers of which one gang is more than is left; None if there are none, as is told by their types alone. `nodes`
    are per shape."""
    too_much = nodes * each_shape(quota, table) > quota.left
    too_much &= table.shapes.seller == table.seller_code(quota.provider)
    if quota.families:
        too_much &= of_families(table, quota.families)
    if not too_much.any():
        return None
    found: Bools = too_much[table.shape]
    if quota.region is not None:
        found &= table.place == table.places.find(table.seller_code(quota.provider), quota.region)
    if quota.market is not None:
        found &= np.equal(table.market, quota.market)
    return found
