"""When it is time for a checkpoint: as often as the job's spec says, or as often as pays where machines are taken away.
A save costs its time; an interruption costs what was done since the last one."""

from __future__ import annotations

import math
import time
from typing import Optional

from .run_info import init
from .stopping import should_stop

# Where nobody says how long machines last.
DEFAULT_S = 600.0
# The first save of a process proves that saving works, and shows what it costs.
FIRST_S = 60.0
# More often gains less than a minute at each interruption; more seldom trusts a guess with hours of work.
MIN_S, MAX_S = 60.0, 3600.0


def best_interval_s(cost_s: float, mean_life_s: float) -> float:
    """The work between two saves that loses least, by Daly's formula (2006): `cost_s` is how long a save holds the
    training up, `mean_life_s` the mean time between interruptions."""
    if cost_s >= 2 * mean_life_s:
        return mean_life_s
    share = cost_s / (2 * mean_life_s)
    return math.sqrt(2 * cost_s * mean_life_s) * (1 + math.sqrt(share) / 3 + share / 9) - cost_s


class Pace:
    def __init__(self) -> None:
        self._due: Optional[float] = None
        self._asked_at: Optional[float] = None
        self._cost_s: Optional[float] = None
        self._took_s = 0.0
        self._is_stop_told = False

    def is_due(self, now: float, is_stopping: bool) -> bool:
        """True once for every interval, and once more for a stop."""
        due = self._restart(now) if self._due is None else self._due
        if now < due and (self._is_stop_told or not is_stopping):
            return False
        self._is_stop_told = self._is_stop_told or is_stopping
        self._asked_at = now
        self._restart(now)
        return True

    def saved(self, began: float, now: float) -> None:
        """The training goes on. It was held up since it heard that it is time, where it asked: writing the file that
        is saved is part of the price."""
        cost_s = now - (began if self._asked_at is None else self._asked_at)
        self._cost_s = cost_s if self._cost_s is None else (self._cost_s + cost_s) / 2
        self._asked_at = None
        self._restart(now)

    def committed(self, took_s: float) -> None:
        """So long a save takes until the checkpoint is there, whether or not the training waits for it."""
        self._took_s = took_s

    def interval_s(self) -> float:
        run = init()
        if run.checkpoint_interval_s is not None:
            return run.checkpoint_interval_s
        if self._cost_s is None:
            return FIRST_S
        if run.mean_life_s is None:
            return DEFAULT_S
        best = best_interval_s(self._cost_s, run.mean_life_s)
        return min(max(best, self._took_s, MIN_S), MAX_S)

    def _restart(self, now: float) -> float:
        self._due = now + self.interval_s()
        return self._due


pace = Pace()


def should_checkpoint() -> bool:
    """True when it is time to save: once for every interval, and once when a stop came. Cheap enough for every step.
    Let one rank ask and tell the others: the clocks of two never agree."""
    return pace.is_due(time.monotonic(), should_stop())
