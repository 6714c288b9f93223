"""One region of Tiny as a seller. It translates: orders into requests, answers into machines, their errors into ours.
It does not retry, choose or know jobs."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from crucible.core.boot import Cloud, script
from crucible.model.errors import CredentialsRejected, ProviderError
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Machine, Order, SellerFacts
from crucible.model.ledger import Terms
from crucible.model.offer import Offer
from crucible_tiny import listing
from crucible_tiny.wire import PROVIDER, NotThere, Wire

# Whatever is bought carries both: by the first it is found again, by the second it is whose.
DEPLOYMENT, ORDER = "crucible:deployment", "crucible:order"
LAST_WORDS = 2048

FACTS = SellerFacts(
    idempotent_create=True,  # the same token never buys twice
    visibility=timedelta(seconds=5),  # a new machine may be missing from the list so long
    boot_time=timedelta(minutes=5),  # from create to an enrolled agent, at worst
    counts_stock=True,  # offers() says what there is; False: the catalog does
    powers_off=True,  # a machine that switches itself off costs nothing any more
    poll_every=timedelta(seconds=1),
    orphan_after=timedelta(minutes=15),  # a machine that hears no server so long powers off
    terms=Terms(unit_s=1, minimum_s=0),
)

# How a machine of Tiny learns who it is.
CLOUD = Cloud(
    endpoint="http://169.254.0.1",
    endpoint_variable="TINY_METADATA",
    token_path="/token",  # noqa: S106
    token_header="Tiny-Token",  # noqa: S106
    token_ttl_header="Tiny-Token-Seconds",  # noqa: S106
    machine_id_path="/id",
    address_path="/address",
    notice_path="/notice",
    hint_path="/hint",
)


class TinyRegion:
    name = PROVIDER
    facts = FACTS

    def __init__(self, region: str, deployment: str, wire: Wire) -> None:
        self.region = region
        self._deployment = deployment
        self._wire = wire

    # --- the port -------------------------------------------------------------------------------------

    async def offers(self) -> Sequence[Offer]:
        return [listing.offer(one, self.region) for one in await self._ask("GET", "/types")]

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        request = {
            "token": order.id,
            "type": order.instance_type,
            "count": order.count,
            "tags": {DEPLOYMENT: self._deployment, ORDER: order.id},
            "user_data": script(order, boot, CLOUD),
        }
        bought = await asyncio.to_thread(self._wire.ask, "POST", "/machines", request, is_purchase=True)
        return sorted((listing.machine(one) for one in bought), key=lambda machine: machine.index)

    async def delete(self, machine: MachineId) -> None:
        if not listing.MACHINE_ID.fullmatch(machine):  # it was never sold here, and must not become a path
            return
        try:
            await self._ask("DELETE", f"/machines/{machine}")
        except NotThere:
            return

    async def machines(self) -> Sequence[Machine]:
        tag = quote(f"{DEPLOYMENT}={self._deployment}", safe="")
        return [listing.machine(one) for one in await self._ask("GET", f"/machines?tag={tag}")]

    # --- abilities: leave out what your seller cannot do --------------------------------------------------

    async def last_words(self, machine: MachineId) -> str | None:
        if not listing.MACHINE_ID.fullmatch(machine):
            return None
        try:
            said = str((await self._ask("GET", f"/machines/{machine}/console"))["text"])
        except NotThere:
            return None
        return said[-LAST_WORDS:] or None

    async def health(self) -> Mapping[str, Any]:
        try:
            types = await self._ask("GET", "/types")
        except CredentialsRejected as error:
            return self._down(error, "set CRUCIBLE_TINY_KEY to a key that Tiny knows")
        except ProviderError as error:
            return self._down(error, "check the network and CRUCIBLE_TINY_URL")
        return {"status": "healthy", "region": self.region, "types": len(types), "problems": []}

    def _down(self, error: ProviderError, fix: str) -> Mapping[str, Any]:
        return {"status": "down", "region": self.region, "problems": [{"problem": error.message, "fix": fix}]}

    async def _ask(self, method: str, path: str) -> Any:
        """In a thread: a slow answer keeps nobody else waiting."""
        return await asyncio.to_thread(self._wire.ask, method, path)
