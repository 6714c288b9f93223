"""What sellers that count their own stock have now, less what we have ordered and not yet received."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from crucible.core.cooling import is_resting
from crucible.engine.context import Context, log
from crucible.model.errors import ProviderError
from crucible.model.offer import Offer
from crucible.ports.seller import Seller

OFFERS_TIMEOUT_S = 30.0


class Shelf:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def offers(self) -> list[Offer]:
        found: list[Offer] = []
        for seller in self._context.sellers.values():
            if not seller.facts.counts_stock:
                continue
            try:
                offers = await self._context.clock.wait_for(seller.offers(), OFFERS_TIMEOUT_S)
            except (ProviderError, TimeoutError, OSError) as error:
                log.warning("%s has no offers now: %s", seller.name, error)
                continue
            found += await self._less_ordered(seller, offers)
        return found

    async def on_sale(self) -> list[Offer]:
        """The same without what was refused a moment ago and would be again."""
        resting = await self._context.store.cooldowns(self._context.clock.now())
        return [offer for offer in await self.offers() if not is_resting(offer, resting)]

    async def _less_ordered(self, seller: Seller, offers: Sequence[Offer]) -> list[Offer]:
        coming: Counter[str] = Counter()
        machines = 0
        for lease in await self._context.store.open_leases(seller.name, seller.region):
            if lease.machine_id is None:
                coming[seller.name] += lease.gpus
                machines += 1
        return [less(offer, coming[seller.name], machines) for offer in offers]


def less(offer: Offer, gpus: int, machines: int) -> Offer:
    if offer.free_machines is not None:
        return replace(offer, free_machines=max(0, offer.free_machines - machines))
    return offer if offer.free_gpus is None else replace(offer, free_gpus=max(0, offer.free_gpus - gpus))
