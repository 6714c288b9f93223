"""From notices to messages. What a notice becomes is written together with the mark that somebody looked at it, so
that a server that dies anywhere here misses none and makes none twice."""

from functools import partial

from crucible.core.alerts import fan_out
from crucible.engine.context import Context
from crucible.model.errors import StaleClaim

# How often it is looked whether anybody wrote a notice; those of this server say so themselves.
LOOK_S = 5.0
BATCH = 200
NOTICES, DELIVERIES = "notices", "deliveries"


class Telling:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        """For ever; one server at a time."""
        hub = self._context.hub
        while True:
            seen = hub.counter(NOTICES)
            if await self._context.store.has_fresh_notices():
                await self.tell()
            await hub.wait(NOTICES, seen, LOOK_S)

    async def tell(self) -> int:
        """Returns how many notices were looked at."""
        context, looked = self._context, 0
        claim = await context.store.claim("alerts", context.server_id, context.claim_ttl)
        if claim is None:
            return 0
        try:
            while True:
                now = context.clock.now()
                count = await context.store.fan_out(partial(fan_out, now=now), now, BATCH, claim=claim)
                looked += count
                if count < BATCH or not await context.store.renew(claim, context.claim_ttl):
                    break
        except StaleClaim:
            pass
        finally:
            await context.store.release(claim)
        context.hub.notify(DELIVERIES)
        return looked
