"""Since when this server has listened without a break. A process that stood still, or could not reach its database, has
heard nobody meanwhile, and must not blame the nodes for that."""

from datetime import datetime, timedelta

from crucible.ports.clock import Clock

# The pulse is felt every second; a longer gap than this was no busy moment.
BLIND_AFTER = timedelta(seconds=10)


class Pulse:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.now()
        self._felt_at: float | None = None

    def beat(self) -> None:
        """The engine has looked into its database just now."""
        self._notice_gap()
        self._felt_at = self._clock.monotonic()

    @property
    def since(self) -> datetime:
        self._notice_gap()
        return self._since

    def _notice_gap(self) -> None:
        if self._felt_at is not None and self._clock.monotonic() - self._felt_at > BLIND_AFTER.total_seconds():
            self._since = self._clock.now()
