"""Recorded lives of real spot machines: how often one was lost while it ran, and how long none was to be had."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

SECONDS_PER_HOUR = 3600
_NAME = re.compile(r"(?P<cloud>[a-z]+)-(?P<month>\d\d)-(?P<day>\d\d)-(?P<year>\d{4})")
CPUS_ONLY = ("intel", "c3")  # what the traces call machines without GPUs


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One pool of machines over some days. `losses` counts machines, `held_h` the hours they were held together."""

    provider: str
    zone: str
    machine: str  # "v100_1": one V100
    began: date
    losses: int
    held_h: float
    availability: float  # share of the time in which there was one at all

    @property
    def has_gpus(self) -> bool:
        return not self.machine.startswith(CPUS_ONLY)

    @property
    def per_hour(self) -> float:
        return self.losses / self.held_h

    @property
    def gap_h(self) -> float:
        """How long a pool stays empty once it is."""
        return (1 - self.availability) / self.availability / self.per_hour


def read(folder: Path) -> tuple[Trace, ...]:
    return tuple(_traces(folder))


def _traces(folder: Path) -> Iterator[Trace]:
    for path in sorted(folder.glob("*/*/*/*.json")):
        named = _NAME.fullmatch(path.parent.name)
        if named is None:
            continue
        zone, _, machine = path.stem.partition("_")
        recorded = json.loads(path.read_text(encoding="utf-8"))
        counts = np.asarray(recorded["data"], dtype=np.int64)
        tick_h = recorded["metadata"]["gap_seconds"] / SECONDS_PER_HOUR
        yield Trace(
            provider=named["cloud"],
            zone=zone,
            machine=machine,
            began=date(int(named["year"]), int(named["month"]), int(named["day"])),
            losses=int(np.clip(counts[:-1] - counts[1:], 0, None).sum()),
            held_h=float(counts.sum() * tick_h),
            availability=float((counts > 0).mean()),
        )
