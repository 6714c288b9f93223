"""What accounts may have at a time, as their sellers say: asked once an hour beside everything else, so that no plan
waits for it. From a quota that nobody knows, or that was told too long ago, nothing follows."""

import asyncio
from datetime import timedelta

from crucible.engine.context import Context, log
from crucible.model.errors import ProviderError
from crucible.model.quota import Quota
from crucible.ports.seller import Quotas, Seller

# People change a quota a few times a year; one that was raised is used an hour later at the latest.
EVERY = timedelta(hours=1)
AGAIN = timedelta(minutes=5)  # after one that could not be read
# As old as this it is not believed any more.
OLDEST = timedelta(hours=24)
TIMEOUT_S = 60.0


class QuotaBook:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._told: dict[tuple[str, str], tuple[float, tuple[Quota, ...]]] = {}  # by seller, with their time; monotonic

    def known(self) -> tuple[Quota, ...]:
        """All that are young enough, in the order of the sellers; `used` is nothing yet."""
        oldest = self._context.clock.monotonic() - OLDEST.total_seconds()
        told = [self._told[place] for place in self._context.sellers if place in self._told]
        return tuple(quota for at, quotas in told if at > oldest for quota in quotas)

    async def run(self) -> None:
        while True:
            rest_s = (EVERY if await self.ask() else AGAIN).total_seconds()
            self._context.vitals.beat("quotas", rest_s)
            await self._context.clock.sleep(rest_s)

    async def ask(self) -> bool:
        """Whether all who can tell have. One that fails keeps nobody else waiting."""
        sellers = [seller for seller in self._context.sellers.values() if isinstance(seller, Quotas)]
        return all(await asyncio.gather(*(self._ask(seller) for seller in sellers)))

    async def _ask(self, seller: Seller) -> bool:
        assert isinstance(seller, Quotas)
        clock = self._context.clock
        try:
            found = tuple(await clock.wait_for(seller.quotas(), TIMEOUT_S))
        except (ProviderError, TimeoutError, OSError) as error:
            log.warning("the quotas of %s %s cannot be read now: %s", seller.name, seller.region, error)
            return False
        self._told[seller.name, seller.region] = clock.monotonic(), found
        return True
