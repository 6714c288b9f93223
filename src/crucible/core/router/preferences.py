"""What the user wants and knows, beside the code. Refuses nothing: bounds are the API's business."""

from dataclasses import dataclass
from enum import StrEnum


class OptimizeFor(StrEnum):
    COST = "cost"
    SPEED = "speed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """Seed 003's user preferences and requirements. None: nobody says."""

    optimize_for: OptimizeFor | None = None  # None: a balance
    allowed_backends: tuple[str, ...] = ()  # empty: all
    max_cost_usd: float | None = None
    data_privacy: bool = False  # the data may not be on shared infrastructure
    duration_hours: float | None = None
    interruptible: bool | None = None
    gpus: int | None = None
    gpu_memory_gb: float | None = None
    checkpoint_frequency_minutes: int | None = None
    dataset_size_gb: float | None = None
