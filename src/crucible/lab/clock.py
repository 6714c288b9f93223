"""The Lab's own time: wall time when it starts, and from then on as fast as was asked. A step of this computer's clock
moves nothing."""

import time
from collections.abc import Callable


class LabClock:
    def __init__(
        self,
        speed: float = 1.0,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.speed = speed
        self._monotonic = monotonic
        self.started_at = wall()
        self._anchored_at = monotonic()

    def now(self) -> float:
        """Seconds since 1970 in the world."""
        return self.started_at + self._elapsed() * self.speed

    def real_delay(self, world_s: float) -> float:
        """How long we wait here until so much time has passed there."""
        return max(0.0, world_s / self.speed)

    def wall_at(self, at: float) -> float:
        """When a moment of the world comes by the clock of this computer, which is also the clock of its machines."""
        return self.started_at + (at - self.started_at) / self.speed

    def _elapsed(self) -> float:
        return self._monotonic() - self._anchored_at
