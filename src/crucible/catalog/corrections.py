"""What the price lists say wrongly, and what of them is not sold here. Every rule is a line of a table in data/ or a
function that gives its reason; none looks at the clock."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from crucible.catalog import facts
from crucible.catalog.listings import Listed

# Their lists repeat the list price, or 0, where a spot price would stand (Azure's: for the H100 sizes).
WITHOUT_SPOT_AT_LIST_PRICE = {"runpod", "vast", "azure"}
WITHOUT_PRICES = {"alibaba", "tencent", "modal"}  # their shapes are known, their prices not or not all
IN_EVERY_ZONE = "p4de.24xlarge"  # where it is really sold, the list has a second line with a spot price
PLACEHOLDER_USD = 700.0  # what the list says for TPUs nobody has priced
SIZES = ("A100", "V100")  # that come with different memories under one name
GPUS_OF_TYPE = {("azure", "Standard_ND96isr_H100_v5"): 8.0}  # a public list says 12


class Corrections:
    def __init__(self, own: Path, memory_of: Mapping[str, float]) -> None:
        self._names = facts.table(own, "source_names.csv")
        self._left_out = facts.table(own, "left_out.csv")
        self._memory_of = memory_of
        self.dropped: Counter[str] = Counter()  # lines by reason

    def apply(self, listed: Iterable[Listed]) -> Iterator[Listed]:
        for line in listed:
            reason = self._reason(line)
            if reason is None:
                yield self._corrected(line)
            else:
                self.dropped[reason] += 1

    def _reason(self, line: Listed) -> str | None:
        for rule in self._left_out:
            patterns = ((line.provider, "provider"), (line.instance_type, "instance_type"), (line.gpu, "gpu"))
            if all(fnmatchcase(value, rule[column]) for value, column in patterns):
                return rule["reason"]
        if line.on_demand == PLACEHOLDER_USD:
            return "a placeholder instead of a price"
        if line.instance_type == IN_EVERY_ZONE and line.spot is None:
            return "listed in every zone of its regions, even where it is not sold"
        if line.on_demand is None and line.spot is None and line.provider not in WITHOUT_PRICES:
            return "listed without any price: not on sale there"
        return None

    def _corrected(self, line: Listed) -> Listed:
        gpu = self._gpu(line)
        return replace(
            line,
            instance_type=_type(line, gpu),
            gpu=gpu,
            gpus=GPUS_OF_TYPE.get((line.provider, line.instance_type), line.gpus),
            gpu_memory_gib=self._memory_of.get(gpu, line.gpu_memory_gib),
            spot=_spot(line),
        )

    def _gpu(self, line: Listed) -> str:
        if line.provider == "vast" and line.gpu in SIZES and line.gpu_memory_gib is not None:
            return _by_memory(line, line.gpu_memory_gib / line.gpus)
        rules = (rule for rule in self._names if (rule["provider"], rule["said"]) == (line.provider, line.gpu))
        return next((rule["gpu"] for rule in rules if fnmatchcase(line.instance_type, rule["instance_type"])), line.gpu)


def _by_memory(line: Listed, memory_gib: float) -> str:
    """Vast calls both sizes by one name; its memory is that of all GPUs together."""
    size = "80GB" if memory_gib > 40 else "40GB" if memory_gib > 32 else "32GB" if memory_gib > 16 else "16GB"
    return f"{line.gpu}-{size}" + ("-PCIe" if "PCIE" in line.instance_type else "")


def _type(line: Listed, gpu: str) -> str:
    """A type of Vast says how many GPUs of which make, not which size of it."""
    is_vague = line.provider == "vast" and line.gpu in SIZES
    return f"{line.instance_type}-{gpu.split('-')[1]}" if is_vague else line.instance_type


def _spot(line: Listed) -> float | None:
    if line.spot is None or line.spot <= 0:
        return None
    if line.provider in WITHOUT_SPOT_AT_LIST_PRICE and line.on_demand is not None and line.spot >= line.on_demand:
        return None
    return line.spot
