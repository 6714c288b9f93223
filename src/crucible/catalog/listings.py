"""Public price lists in one form. Each reader translates the words of one list; it corrects nothing and leaves nothing
out, except what its list says in two lines."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from crucible.catalog import facts

# Modal sells GPUs, cores and memory apart. A machine of ours is a GPU with what a data loader needs beside it.
MODAL_CORES, MODAL_MEMORY_GIB = 4, 32
MODAL_CORE_USD_S, MODAL_GIB_USD_S = 0.0000131, 0.00000222  # modal.com/pricing, 2026-09
MODAL_COUNTS = (1, 2, 4, 8)
# "any": Modal runs it where it likes. A broad region costs half as much again (modal.com/docs/guide/region-selection).
MODAL_REGIONS = {"any": 1.0, "us": 1.5, "eu": 1.5, "uk": 1.5, "ap": 1.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of a price list. Prices are dollars an hour of the whole machine."""

    provider: str
    instance_type: str
    gpu: str  # as the list calls it
    gpus: float
    gpu_memory_gib: float | None  # of all its GPUs or of one: lists differ
    cpus: float | None
    memory_gib: float | None
    region: str
    zone: str
    on_demand: float | None
    spot: float | None
    as_of: date
    source: str


def read(data: Path, own: Path) -> Iterator[Listed]:
    """Everything that is sold, from the lists in `data` and our own in `own`."""
    yield from skypilot(data / "catalog" / "offers.csv")
    yield from google(data / "catalog" / "gcp_gpu_offers_total.csv")
    for provider in ("alibaba", "tencent"):
        yield from unpriced(provider, data / "catalog" / f"{provider}_instance_types.csv", own)
    yield from modal(own)


def skypilot(path: Path) -> Iterator[Listed]:
    """All but Google's, whose lines there are accelerators without a host."""
    for row in _rows(path):
        if row["provider"] == "gcp" and not row["gpu_name"].startswith("tpu"):
            continue
        yield Listed(
            provider=row["provider"],
            instance_type=row["instance_type"],
            gpu=row["gpu_name"],
            gpus=float(row["gpu_count"]),
            gpu_memory_gib=_number(row["gpu_mem_gb_each"]),
            cpus=_number(row["vcpus"]),
            memory_gib=_number(row["mem_gib"]),
            region=_region(row["provider"], row["region"]),
            zone=row["zone"],
            on_demand=_number(row["price_ondemand_usd_hr"]),
            spot=_number(row["price_spot_usd_hr"]),
            as_of=date.fromisoformat(row["as_of"][:10]),
            source=row["source"] if "/" in row["source"] else "skypilot-catalog",
        )


def google(path: Path) -> Iterator[Listed]:
    for row in _rows(path):
        name, gpu, count = row["machine_type"], row["gpu_name"], row["gpu_count"]
        yield Listed(
            provider="gcp",
            # To an N1 machine GPUs are attached: the type alone does not say which.
            instance_type=f"{name}+{gpu}x{count}" if name.startswith("n1-") else name,
            gpu=gpu,
            gpus=float(count),
            gpu_memory_gib=None,
            cpus=float(row["vcpus"]),
            memory_gib=float(row["mem_gib"]),
            region=row["region"],
            zone=row["zone"],
            on_demand=_number(row["total_od_usd_hr"]),
            spot=_number(row["total_spot_usd_hr"]),
            as_of=date.fromisoformat(row["as_of"]),
            source="skypilot-catalog v8/gcp/vms.csv, host and GPUs summed",
        )


def unpriced(provider: str, path: Path, own: Path) -> Iterator[Listed]:
    """Shapes without a price, in every region of the provider's public list: which of them sells which type is not
    known, so the price there is not known either."""
    regions = [row for row in facts.table(own, "regions.csv") if row["provider"] == provider]
    for row in _rows(path):
        for region in regions:
            yield Listed(
                provider=provider,
                instance_type=row["instance_type"],
                gpu=row["gpu"],
                gpus=float(row["gpu_count"]),
                gpu_memory_gib=float(row["gpu_mem_gb"]),
                cpus=float(row["vcpus"]),
                memory_gib=float(row["mem_gib"]),
                region=region["region"],
                zone="",
                on_demand=None,
                spot=None,
                as_of=date.fromisoformat(region["as_of"]),
                source=f"shape: {path.name}; {region['source']}",
            )


def modal(own: Path) -> Iterator[Listed]:
    beside = (MODAL_CORES * MODAL_CORE_USD_S + MODAL_MEMORY_GIB * MODAL_GIB_USD_S) * 3600
    for row in facts.table(own, "modal.csv"):
        rate = _number(row["usd_per_s"])
        for count in MODAL_COUNTS:
            for region, factor in MODAL_REGIONS.items():
                yield Listed(
                    provider="modal",
                    instance_type=f"{row['gpu']}:{count}",
                    gpu=row["gpu"],
                    gpus=count,
                    gpu_memory_gib=None,
                    cpus=2.0 * MODAL_CORES * count,  # a physical core is two virtual ones
                    memory_gib=float(MODAL_MEMORY_GIB * count),
                    region=region,
                    zone="",
                    on_demand=None if rate is None else (rate * 3600 + beside) * count * factor,
                    spot=None,
                    as_of=date.fromisoformat(row["as_of"]),
                    source=row["source"],
                )


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _number(text: str) -> float | None:
    return float(text) if text else None


def _region(provider: str, said: str) -> str:
    """Vast writes "Oregon, US, NA"; the country is what its search takes."""
    return said.split(",")[-2].strip() if provider == "vast" else said
