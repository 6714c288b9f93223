"""Single prices read off public pages later than the lists: they replace the price of the rows they speak of."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from crucible.catalog.listings import Listed

# A price without a type is one of a GPU: RunPod bills by the GPU, so it holds for every number of them.
GPU_OF_RUNPOD = {"H100 SXM": "H100-SXM", "A100 SXM": "A100-80GB", "B300": "B300", "B200": "B200", "H200": "H200-SXM"}
TYPE_OF_VAST = {"1x H100 SXM median": "1x-H100_SXM"}
# RunPod's community machines are not in the lists: their CPUs and memory are unknown, so their prices have no home.
UNUSED = ("RunPod Community",)


@dataclass(frozen=True, slots=True)
class Check:
    provider: str
    type_prefix: str
    gpu: str  # "" for any
    region: str  # "" for all
    usd: float
    per_gpu: bool
    as_of: date
    source: str

    def is_about(self, line: Listed) -> bool:
        return (
            line.provider == self.provider
            and line.instance_type.startswith(self.type_prefix)
            and self.gpu in ("", line.gpu)
            and self.region in ("", line.region)
        )


def read(path: Path) -> tuple[Check, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["vendor"] not in UNUSED]
    return tuple(_check(row) for row in rows)


def apply(lines: Iterable[Listed], checks: Iterable[Check]) -> Iterator[Listed]:
    checks = sorted(checks, key=lambda check: check.as_of, reverse=True)
    for line in lines:
        found = next((check for check in checks if check.is_about(line) and check.as_of >= line.as_of), None)
        if found is None:
            yield line
        else:
            yield from _priced(line, found)


def _priced(line: Listed, check: Check) -> Iterator[Listed]:
    usd = check.usd * line.gpus if check.per_gpu else check.usd
    yield replace(line, on_demand=usd, spot=None, as_of=check.as_of, source=check.source)
    if line.spot is not None:  # of which the check says nothing
        yield replace(line, on_demand=None)


def _check(row: Mapping[str, str]) -> Check:
    vendor, name = row["vendor"].split()[0].lower(), row["instance"]
    is_runpod = vendor == "runpod"
    return Check(
        provider=vendor,
        type_prefix="" if is_runpod else TYPE_OF_VAST.get(name, name),
        gpu=GPU_OF_RUNPOD[name] if is_runpod else "",
        region=row["region"],
        usd=float(row["usd_per_hour"]),
        per_gpu=is_runpod,
        as_of=date.fromisoformat(row["as_of"]),
        source=f"price_spotchecks_2026-11: {row['source']}",
    )
