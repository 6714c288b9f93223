"""The catalog in memory. What the files say is given as values; the offer table is made once, from columns."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np

from crucible.catalog import columns as price_columns
from crucible.catalog import facts
from crucible.catalog.columns import Columns
from crucible.core.offers import UNKNOWN, Codebook, OfferTable, Places, codes, seller_columns, shape_columns
from crucible.model.catalog import Billing, Gpu, Hazard, InstanceType, Lane, Price
from crucible.model.offer import Market
from crucible.model.units import MicroUsd


def load(folder: Path = facts.SHIPPED) -> "Catalog":
    return Catalog(folder, tuple(facts.read(folder, "instance_types.csv", InstanceType)), price_columns.read(folder))


@dataclass(frozen=True)
class Catalog:
    folder: Path
    shapes: tuple[InstanceType, ...]
    rows: Columns

    def __len__(self) -> int:
        return len(self.rows.shape)

    @cached_property
    def table(self) -> OfferTable:
        rows, count = self.rows, len(self)
        billing = self.billing()
        sellers = Codebook(t.provider for t in self.shapes)
        gpus = Codebook()
        for name in (*(b.provider for b in billing), *(place.partition(":")[0] for place in rows.places)):
            sellers.code(name)
        return OfferTable(
            sellers=seller_columns(sellers.names, billing),
            shapes=shape_columns(self.shapes, sellers, gpus),
            places=Places(
                region=tuple(place.partition(":")[2] for place in rows.places),
                seller=codes(sellers.code(place.partition(":")[0]) for place in rows.places),
                usd_per_gb=rows.usd_per_gb,
                gbps=rows.gbps,
            ),
            gpus=gpus.names,
            zones=rows.zones,
            sources=rows.sources,
            shape=rows.shape,
            place=rows.place,
            zone=rows.zone,
            market=rows.market,
            price=rows.price,
            hazard=rows.hazard,
            availability=rows.availability,
            as_of=rows.as_of,
            source=rows.source,
            stock=np.full(count, UNKNOWN, dtype=np.int64),
            stocks=(),
            free_gpus=(),
            live={},
        )

    @property
    def as_of(self) -> datetime | None:
        """Of the newest price that is known; None without any."""
        known = self.rows.as_of[self.rows.price != UNKNOWN]
        return datetime.fromtimestamp(int(known.max()), UTC) if len(known) else None

    @cached_property
    def gpus(self) -> Mapping[str, Gpu]:
        """By every name a person may write: its own, that of its family ("A100"), another spelling ("A6000"). A family
        stands for the least of its members, so that nothing is promised that one of them cannot hold."""
        own = {gpu.name: gpu for gpu in facts.read(self.folder, "gpus.csv", Gpu)}
        named = dict(own)
        for gpu in sorted(own.values(), key=lambda gpu: (gpu.memory_gib, gpu.tflops, gpu.name)):
            for family in families(gpu.name):
                named.setdefault(family, gpu)
        for written, name in self.spellings.items():
            named.setdefault(written, named[name])
        return named

    @cached_property
    def spellings(self) -> Mapping[str, str]:
        """Other ways to write a GPU or a family of them, and the name we use."""
        return {row["written"]: row["gpu"] for row in facts.table(self.folder, "gpu_names.csv")}

    def types(self) -> tuple[InstanceType, ...]:
        """In the order of the table's shapes."""
        return self.shapes

    def prices(self) -> Iterator[Price]:
        """One per row of the table, in its order."""
        for shape, place, zone, market, price, as_of, source in self._rows():
            kind = self.shapes[shape]
            yield Price(
                provider=kind.provider,
                region=self.rows.places[place].partition(":")[2],
                zone=self.rows.zones[zone],
                instance_type=kind.name,
                market=Market(market),
                price=None if price == UNKNOWN else MicroUsd(price),
                as_of=datetime.fromtimestamp(as_of, UTC),
                source=self.rows.sources[source],
            )

    def _rows(self) -> Iterator[tuple[int, ...]]:
        rows = self.rows
        names = (rows.shape, rows.place, rows.zone, rows.market, rows.price, rows.as_of, rows.source)
        return zip(*(column.tolist() for column in names), strict=True)

    def billing(self) -> tuple[Billing, ...]:
        return tuple(facts.read(self.folder, "billing.csv", Billing))

    def hazards(self) -> tuple[Hazard, ...]:
        return tuple(facts.read(self.folder, "hazards.csv", Hazard))

    def lanes(self) -> tuple[Lane, ...]:
        return tuple(facts.read(self.folder, "lanes.csv", Lane))


def families(gpu: str) -> Iterator[str]:
    """The names of which `gpu` is one: of A100-80GB-PCIe these are A100-80GB and A100."""
    while "-" in gpu:
        gpu = gpu.rpartition("-")[0]
        yield gpu
