"""Who this process is within its job, read from the environment. Changes nothing."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Optional, Tuple

RUN_DIR = "CRUCIBLE_RUN_DIR"


@dataclass(frozen=True)
class Run:
    """A script outside Crucible is rank 0 of 1, unless another launcher (torchrun, say) set RANK and WORLD_SIZE."""

    rank: int
    world_size: int
    local_rank: int
    node_rank: int
    job_id: Optional[str]
    attempt: int  # counts from 1; 0 outside Crucible
    is_crucible: bool
    devices: Tuple[str, ...]
    checkpoint_interval_s: Optional[float]  # what the job's spec advises
    mean_life_s: Optional[float] = None  # of the job's machines together, where they can be taken away


def init() -> Run:
    """Optional, and may be called again: other launchers set their variables late."""
    return Run(
        rank=_number("RANK", 0),
        world_size=_number("WORLD_SIZE", 1),
        local_rank=_number("LOCAL_RANK", 0),
        node_rank=_number("NODE_RANK", 0),
        job_id=os.environ.get("CRUCIBLE_JOB_ID") or os.environ.get("JOB_ID") or None,
        attempt=_number("CRUCIBLE_ATTEMPT", 0),
        is_crucible=RUN_DIR in os.environ,
        devices=tuple(d.strip() for d in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if d.strip()),
        checkpoint_interval_s=_seconds("CRUCIBLE_CHECKPOINT_INTERVAL_S"),
        mean_life_s=_seconds("CRUCIBLE_MEAN_LIFE_S"),
    )


def _number(name: str, default: int) -> int:
    try:
        return int(os.environ.get(name, default))
    except ValueError:  # someone else's variable of the same name
        return default


def _seconds(name: str) -> Optional[float]:
    """None as well for what is not a length of time."""
    try:
        seconds = float(os.environ[name])
    except (KeyError, ValueError):
        return None
    return seconds if 0 < seconds < math.inf else None
