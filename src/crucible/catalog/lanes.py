"""What moving data between two regions costs and how fast it goes: measured pairs first, then what a provider says of
its own network. Pairs that are in neither are not guessed: the provider's internet price is in billing.csv."""

import csv
import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from crucible.model.catalog import Lane

BITS_PER_GBIT = 1e9


def read(data: Path, regions: Iterable[str]) -> tuple[Lane, ...]:
    """Lanes between `regions` ("provider:region") and all regions that were measured."""
    measured = {(lane.source, lane.target): lane for lane in _measured(data / "skyplane_profiles")}
    known = sorted({*regions, *(source for source, _ in measured)})
    inside = _inside_prices(data / "catalog" / "egress.csv")
    lanes = dict(measured)
    for lane in _inside(known, inside):
        lanes.setdefault((lane.source, lane.target), lane)
    return tuple(lanes[pair] for pair in sorted(lanes))


def _measured(folder: Path) -> Iterator[Lane]:
    rates = {
        (_region(row["src_region"]), _region(row["dst_region"])): float(row["throughput_recieved"]) / BITS_PER_GBIT
        for row in _rows(folder / "throughput.csv.gz")
    }
    for row in _rows(folder / "cost.csv.gz"):
        pair = _region(row["src"]), _region(row["dest"])
        rate = rates.get(pair)
        yield Lane(
            source=pair[0],
            target=pair[1],
            usd_per_gb=float(row["cost"]),
            gbps=None if rate is None else round(rate, 3),
        )


def _inside(regions: Iterable[str], price_of: Mapping[str, float]) -> Iterator[Lane]:
    """Staying in a region is free; between two of one provider its usual price holds."""
    by_provider: dict[str, list[str]] = {}
    for region in regions:
        by_provider.setdefault(region.partition(":")[0], []).append(region)
    for provider, own in by_provider.items():
        for source in own:
            yield Lane(source=source, target=source, usd_per_gb=0.0, gbps=None)
            if provider in price_of:
                for target in own:
                    yield Lane(source=source, target=target, usd_per_gb=price_of[provider], gbps=None)


def _inside_prices(path: Path) -> dict[str, float]:
    """Providers that charge nothing for traffic charge nothing between their regions either."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    prices = {row["provider"]: float(row["usd_per_gb"]) for row in rows if row["kind"] == "inter_region"}
    free = {row["provider"]: 0.0 for row in rows if row["kind"] == "internet" and float(row["usd_per_gb"]) == 0}
    return free | prices


def _region(said: str) -> str:
    """Google's regions are given as one of their zones."""
    is_zone = said.startswith("gcp:") and said[-2] == "-" and said[-1].isalpha()
    return said[:-2] if is_zone else said


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
