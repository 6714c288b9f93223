"""Whoever sells machines: this computer, your hosts, a cloud's region. An adapter translates; it does not retry, choose
or know jobs. There is one per provider and region, so that a region in trouble troubles nobody else."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Leftover, Machine, Order, SellerFacts
from crucible.model.offer import Offer
from crucible.model.quota import Quota


class Seller(Protocol):
    name: str  # the provider
    region: str
    facts: SellerFacts

    async def offers(self) -> Sequence[Offer]:
        """What it counts itself, as own machines do. A cloud lists nothing here: its offers are the catalog's."""
        ...

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        """Same order id, same machines; all or none. Raises ProviderError's children only."""
        ...

    async def delete(self, machine: MachineId) -> None:
        """Absent is success. Returning means accepted; the listing says when it is gone."""
        ...

    async def machines(self) -> Sequence[Machine]:
        """Everything that carries our tag, ended machines included as long as the seller remembers them."""
        ...


# --- abilities that not every seller has: each its own small Protocol ------------------------------------------


@runtime_checkable
class Prepares(Protocol):
    async def prepare(self, order: Order) -> Mapping[str, Any]:
        """The exact request, whatever must be looked up for it included. It is stored before `create` is called, so
        that a repeated call is the same call. Raises ProviderError's children only."""
        ...


@runtime_checkable
class Reaps(Protocol):
    async def leftovers(self) -> Sequence[Leftover]:
        """What carries our tag, costs money, and belongs to no machine."""
        ...

    async def remove(self, leftover: Leftover) -> None:
        """Absent is success."""
        ...


@runtime_checkable
class Remembers(Protocol):
    async def last_words(self, machine: MachineId) -> str | None:
        """The end of what a machine wrote to its console; None where there is nothing."""
        ...


@runtime_checkable
class Quotas(Protocol):
    async def quotas(self) -> Sequence[Quota]:
        """What its account may have at a time in this region, whoever uses it; none where it does not say. `used` is
        left at nothing. Asked once an hour. Raises ProviderError's children only."""
        ...


@runtime_checkable
class Examines(Protocol):
    async def health(self) -> Mapping[str, Any]:
        """For `crucible doctor`: {"status": "healthy" | "degraded" | "down", "problems": [{"problem", "fix"}], …}.
        Never raises."""
        ...
