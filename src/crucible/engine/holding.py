"""A claim for as long as a piece of work takes: renewed while it goes on, given back at its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from crucible.engine.context import Context
from crucible.model.errors import Busy
from crucible.ports.store import Claim

LOOK_S = 0.2


@asynccontextmanager
async def holding(context: Context, name: str, patience_s: float = 0.0) -> AsyncIterator[Claim]:
    """Raises Busy if another worker has it for longer than `patience_s`."""
    until = context.clock.monotonic() + patience_s
    owner = f"{context.server_id}/{context.random.token()}"  # two requests of one server exclude each other too
    while (claim := await context.store.claim(name, owner, context.claim_ttl)) is None:
        if context.clock.monotonic() >= until:
            raise Busy("somebody else is at it; try again in a moment", retry_after_s=LOOK_S)
        await context.clock.sleep(LOOK_S)
    renewing = asyncio.ensure_future(_renew(context, claim))
    try:
        yield claim
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        await context.store.release(claim)


async def _renew(context: Context, claim: Claim) -> None:
    """Until it is lost: then whatever is written under it is refused."""
    while await context.store.renew(claim, context.claim_ttl):
        await context.clock.sleep(context.claim_ttl.total_seconds() / 3)
