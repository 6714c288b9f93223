"""What an account may have of a provider at a time, whatever is for sale."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from crucible.core.offers import Bools, Floats, Ints, OfferTable
from crucible.model.offer import Market


class Measure(StrEnum):
    MACHINES = "machines"
    GPUS = "GPUs"
    CPUS = "vCPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    provider: str
    most: int
    measure: Measure = Measure.MACHINES
    region: str | None = None  # None: in all of them together
    market: Market | None = None  # None: spot and on demand together
    family: str = ""  # how the names of the instance types begin

    def __str__(self) -> str:
        where = self.provider if self.region is None else f"{self.provider}/{self.region}"
        kind = "" if self.market is None else f" {self.market.name.lower().replace('_', '-')}"
        return f"{where}{kind}{f' {self.family}*' if self.family else ''}: {self.most} {self.measure}"


def is_under(quota: Quota, table: OfferTable, rows: Ints) -> Bools:
    """Which offers count against it."""
    seller = table.seller_code(quota.provider)
    if quota.region is None:
        under: Bools = table.seller[rows] == seller
    else:
        under = table.place[rows] == table.places.find(seller, quota.region)
    if quota.market is not None:
        under &= table.market[rows] == quota.market
    if quota.family:
        family = np.array([name.startswith(quota.family) for name in table.shapes.name], dtype=bool)
        under &= family[table.shape[rows]]
    return under


def drawn(quota: Quota, table: OfferTable, rows: Ints, nodes: Ints) -> Floats:
    """What a gang of each takes of it."""
    shape = table.shape[rows]
    each = {
        Measure.MACHINES: np.ones(len(rows)),
        Measure.GPUS: table.shapes.gpus[shape],
        Measure.CPUS: table.shapes.cpus[shape],
    }
    return (nodes * each[quota.measure]).astype(np.float64)
