"""What this computer has to give: GPUs of one model each, or declared slots where there are none. Labelled for what
they are: a slot is never called a GPU of some model."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from crucible.model.ids import OfferId
from crucible.model.offer import Counted, Offer, Target
from crucible.model.units import GIB, NOTHING
from crucible.providers.local.gpus import Detection, Gpu

TARGET = Target("local", "local", "local")
SLOT = "slot"
# One offer per size; no computer holds more GPUs.
MAX_SIZE = 64


@dataclass(frozen=True, slots=True)
class Stock:
    """Devices that can stand in for each other."""

    name: str  # "local:gpus"; with several models "local:gpus:A100"
    model: str
    memory_gib: float
    devices: tuple[str, ...]

    def offer_id(self, gpus: int) -> OfferId:
        _, _, model = self.name.removeprefix("local:").partition(":")
        return OfferId(f"local/{model}/{gpus}" if model else f"local/{gpus}")


def stocks(detection: Detection, declared: int | None, memory_gib: float) -> tuple[Stock, ...]:
    """`declared` bounds what is given out of real GPUs, and stands for slots where there are none."""
    if not detection.gpus:
        slots = tuple(str(index) for index in range(declared or 0))
        return (Stock("local:gpus", SLOT, memory_gib, slots),) if slots else ()
    given = detection.gpus[:declared]
    models = sorted({(gpu.model, gpu.memory_gib) for gpu in given})
    return tuple(stock_of(model, memory, given, is_only=len(models) == 1) for model, memory in models)


def stock_of(model: str, memory_gib: float, gpus: Sequence[Gpu], *, is_only: bool) -> Stock:
    name = "local:gpus" if is_only else f"local:gpus:{model}-{memory_gib:g}"
    devices = tuple(gpu.index for gpu in gpus if (gpu.model, gpu.memory_gib) == (model, memory_gib))
    return Stock(name, model, memory_gib, devices)


def offers_of(held: Sequence[Stock], taken: frozenset[str]) -> list[Offer]:
    """A machine without GPUs, and every size that each stock can fill."""
    offers = [offer(None, 0, 0)]
    for stock in held:
        free = len(set(stock.devices) - taken)
        offers += [offer(stock, gpus, free) for gpus in range(1, min(len(stock.devices), MAX_SIZE) + 1)]
    return offers


def offer(stock: Stock | None, gpus: int, free: int) -> Offer:
    return Offer(
        id=stock.offer_id(gpus) if stock else OfferId("local/0"),
        target=TARGET,
        instance_type=f"local-{gpus}gpu",
        gpu=stock.model if stock else None,
        gpus=gpus,
        gpu_memory_gib=stock.memory_gib if stock else 0,
        cpus=cpus(),
        memory_gib=memory_gib(),
        price_per_hour=NOTHING,
        stock=stock.name if stock else None,
        free_gpus=free if stock else None,
        counted=Counted(len(stock.devices), free) if stock else None,
    )


def cpus() -> int:
    """Those this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
