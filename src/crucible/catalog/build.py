"""Makes the shipped files from public sources: the same sources give the same files, byte for byte. What the sources
get wrong is put right in `corrections`, what they do not say stays unknown."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from crucible.catalog import columns, facts, interruptions, lanes, listings, spotchecks
from crucible.catalog.corrections import Corrections
from crucible.catalog.listings import Listed
from crucible.core.offers import OfferTable, make_table
from crucible.model.catalog import Billing, Gpu, Hazard, InstanceType, Lane, Price
from crucible.model.errors import NotFound
from crucible.model.offer import Fabric, Market
from crucible.model.units import MicroUsd

TYPES, LANES, HAZARDS = "instance_types.csv", "lanes.csv", "hazards.csv"
BUILT = (TYPES, LANES, HAZARDS, columns.FILE)
BACKENDS = {"modal": "modal"}  # who starts the work itself; everyone else sells machines
NEEDED = (
    "catalog/offers.csv",
    "catalog/gcp_gpu_offers_total.csv",
    "catalog/alibaba_instance_types.csv",
    "catalog/tencent_instance_types.csv",
    "catalog/egress.csv",
    "skyplane_profiles/cost.csv.gz",
    "skyplane_profiles/throughput.csv.gz",
    "spot_traces",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    files: Mapping[str, bytes]
    rows: Mapping[str, int]  # by provider
    types: int
    dropped: Mapping[str, int]  # lines of the sources by the reason for which they are not sold here
    differing: tuple[str, ...]  # files that were other than the sources say


def build(data: Path, out: Path) -> Report:
    """Write the files made from `data` into `out`, which holds our own facts already."""
    report = make(data, out)
    for name in report.differing:
        (out / name).write_bytes(report.files[name])
    return report


def make(data: Path, own: Path) -> Report:
    """The same without writing: `differing` says what a build would change."""
    _require(data)
    memory_of = {gpu.name: gpu.memory_gib for gpu in facts.read(own, "gpus.csv", Gpu)}
    corrections = Corrections(own, memory_of)
    lines = list(spotchecks.apply(corrections.apply(listings.read(data, own)), _checks(data)))
    types, prices = instance_types(lines, own), price_rows(lines)
    ways = lanes.read(data, {f"{price.provider}:{price.region}" for price in prices})
    newest = max(price.as_of for price in prices if price.market is Market.SPOT).date()
    sold = {kind.name for kind in types if kind.provider == "aws"}
    hazards = tuple(interruptions.estimate(data, own, sold, newest))
    table = make_table(types, prices, facts.read(own, "billing.csv", Billing), hazards, ways)
    made = _files(types, ways, hazards, table)
    return Report(
        files=made,
        rows=Counter(price.provider for price in prices),
        types=len(types),
        dropped=corrections.dropped,
        differing=tuple(name for name in BUILT if _stored(own / name) != made[name]),
    )


def instance_types(lines: Iterable[Listed], own: Path) -> tuple[InstanceType, ...]:
    networks = facts.table(own, "networks.csv")
    types: dict[tuple[str, str], InstanceType] = {}
    for line in lines:
        types.setdefault((line.provider, line.instance_type), _instance_type(line, networks))
    return tuple(types[key] for key in sorted(types))


def price_rows(lines: Iterable[Listed]) -> tuple[Price, ...]:
    """One per market that has a price; of several for one machine the newest, of equally new ones the least."""
    found: dict[tuple[object, ...], Price] = {}
    for price in (price for line in lines for price in _prices(line)):
        key = price.provider, price.region, price.zone, price.instance_type, price.market
        if key not in found or _precedence(price) > _precedence(found[key]):
            found[key] = price
    return tuple(found.values())


def _precedence(price: Price) -> tuple[datetime, int]:
    return price.as_of, -(price.price or 0)


def _prices(line: Listed) -> Iterator[Price]:
    markets = {Market.ON_DEMAND: line.on_demand, Market.SPOT: line.spot}
    is_unknown = all(usd is None for usd in markets.values())
    for market, usd in markets.items():
        if usd is not None or (is_unknown and market is Market.ON_DEMAND):
            yield Price(
                provider=line.provider,
                region=line.region,
                zone=line.zone,
                instance_type=line.instance_type,
                market=market,
                price=None if usd is None else MicroUsd(round(usd * 1_000_000)),
                as_of=datetime(line.as_of.year, line.as_of.month, line.as_of.day, tzinfo=UTC),
                source=line.source,
            )


def _instance_type(line: Listed, networks: Iterable[Mapping[str, str]]) -> InstanceType:
    network = next((row for row in networks if _is_about(row, line)), None)
    return InstanceType(
        provider=line.provider,
        name=line.instance_type,
        gpu=line.gpu,
        gpus=int(line.gpus),
        gpu_memory_gib=line.gpu_memory_gib or 0.0,
        cpus=line.cpus or 0.0,
        memory_gib=line.memory_gib or 0.0,
        network_gbps=float(network["network_gbps"]) if network else None,
        fabric=Fabric[network["fabric"].upper()] if network else Fabric.STANDARD,
        backend=BACKENDS.get(line.provider, "vm"),
        source=f"{line.source}; {network['source']}" if network else line.source,
    )


def _is_about(network: Mapping[str, str], line: Listed) -> bool:
    return network["provider"] == line.provider and fnmatchcase(line.instance_type, network["instance_type"])


def _files(
    types: tuple[InstanceType, ...], ways: tuple[Lane, ...], hazards: tuple[Hazard, ...], table: OfferTable
) -> dict[str, bytes]:
    return {
        TYPES: facts.write(InstanceType, types).encode(),
        LANES: facts.write(Lane, ways).encode(),
        HAZARDS: facts.write(Hazard, hazards).encode(),
        columns.FILE: columns.write(columns.of_table(table)),
    }


def _checks(data: Path) -> Iterator[spotchecks.Check]:
    for path in sorted((data / "catalog").glob("price_spotchecks_*.csv")):
        yield from spotchecks.read(path)


def _stored(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _require(data: Path) -> None:
    missing = [name for name in NEEDED if not (data / name).exists()]
    if missing:
        raise NotFound(
            f"{data} lacks {', '.join(missing)}: name the folder of the sources with --data or CRUCIBLE_DATA"
        )
