"""What spot machines lived through with us in the last weeks, read now and then. What it means for a plan is decided in
`core.lives`."""

from collections.abc import Sequence
from datetime import timedelta

from crucible.engine.context import Context
from crucible.model.lease import SpotLives

# Older lives say little about the machines of today.
WINDOW = timedelta(days=30)
# A plan's risk moves with hundreds of hours, not with minutes.
LOOK_AGAIN_S = 300.0


class Lives:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: Sequence[SpotLives] = ()
        self._looked_at = float("-inf")

    async def known(self) -> Sequence[SpotLives]:
        """The same object until something else is known."""
        clock = self._context.clock
        if clock.monotonic() - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = clock.monotonic()
            now = clock.now()
            lives = await self._context.store.spot_lives(now - WINDOW, now)
            self._known = self._known if tuple(lives) == tuple(self._known) else lives
        return self._known
