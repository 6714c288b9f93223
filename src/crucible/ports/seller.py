"""Whoever sells machines: this computer, your hosts, a cloud. An adapter translates; it does not retry, choose or
know jobs."""

from collections.abc import Sequence
from typing import Protocol

from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Machine, Order, SellerFacts
from crucible.model.offer import Offer


class Seller(Protocol):
    name: str
    facts: SellerFacts

    async def offers(self) -> Sequence[Offer]: ...

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        """Same order id, same machines; all or none. Raises ProviderError's children only."""
        ...

    async def delete(self, machine: MachineId) -> None:
        """Absent is success. Returning means accepted; the listing says when it is gone."""
        ...

    async def machines(self) -> Sequence[Machine]:
        """Everything that carries our tag, ended machines included as long as the seller remembers them."""
        ...
