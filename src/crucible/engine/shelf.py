"""What sellers that count their own stock have now, less what we have ordered and not yet received."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

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

    async def _less_ordered(self, seller: Seller, offers: Sequence[Offer]) -> list[Offer]:
        coming: Counter[str] = Counter()
        for lease in await self._context.store.open_leases(seller.name, seller.region):
            if lease.machine_id is None:
                coming[seller.name] += lease.gpus
        return [
            offer
            if offer.free_gpus is None
            else replace(offer, free_gpus=max(0, offer.free_gpus - coming[seller.name]))
            for offer in offers
        ]
