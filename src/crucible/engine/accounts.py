"""The books of one seller: every listing says since when each machine has run and at what price, and what follows from
that is written before anything else is done about it. What is in the books is worked out from the seller's own words,
so whoever dies half way has lost nothing."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from crucible.core import ledger
from crucible.engine.context import Context, log
from crucible.model.errors import NotFound, StaleVersion
from crucible.model.ids import LeaseId, MachineId, OrderId
from crucible.model.lease import Lease, Machine, MachineState, Order
from crucible.model.ledger import Posting, Usage
from crucible.ports.seller import Seller

# Orders whose machines are being charged; the oldest is asked for again.
ORDERS_REMEMBERED = 4096


class Accounts:
    def __init__(self, context: Context, seller: Seller) -> None:
        self._context = context
        self._seller = seller
        self._orders: dict[OrderId, Order | None] = {}
        self._known: dict[MachineId, tuple[Usage, ...]] = {}
        self._closed: set[MachineId] = set()  # ended and fully charged, still listed

    async def enter(self, machines: Sequence[Machine], leases: Sequence[Lease]) -> None:
        """Everything that the listing says about money, in one transaction."""
        charged = [machine for machine in machines if machine.started_at is not None and machine.id not in self._closed]
        await self._learn([machine.id for machine in charged])
        lease_of = {lease.machine_id: lease.id for lease in leases if lease.machine_id is not None}
        news: list[Usage | Posting] = []
        for machine in charged:
            news += await self._due(machine, lease_of.get(machine.id))
        news += await self._vanished(machines, leases)
        await self._write(news)
        # One whose end is only known to have happened is looked at again: its seller may yet say when.
        ended = {one.id for one in machines if one.state is MachineState.GONE and one.ended_at is not None}
        self._closed = {machine.id for machine in machines if machine.id in ended}
        self._known = {name: known for name, known in self._known.items() if name not in ended}

    async def _learn(self, machines: Sequence[MachineId]) -> None:
        unknown = [machine for machine in machines if machine not in self._known]
        if unknown:
            found = await self._context.store.usages(self._seller.name, unknown)
            self._known |= {machine: tuple(found.get(machine, ())) for machine in unknown}

    async def _due(self, machine: Machine, lease_id: LeaseId | None) -> Sequence[Usage | Posting]:
        order = await self._order(machine.order_id)
        if order is None:
            return ()
        known, terms = self._known[machine.id], self._seller.facts.terms
        return ledger.account(known, machine, order, lease_id, terms, self._context.clock.now())

    async def _order(self, order_id: OrderId) -> Order | None:
        """None: it carries our tag, and nobody here ever ordered it; the sweep removes it."""
        if order_id not in self._orders:
            if len(self._orders) >= ORDERS_REMEMBERED:
                self._orders.clear()
            try:
                self._orders[order_id] = (await self._context.store.order(order_id))[0]
            except NotFound:
                log.warning("%s lists machines of order %s, which is not in the books", self._seller.name, order_id)
                self._orders[order_id] = None
        return self._orders[order_id]

    async def _vanished(self, machines: Sequence[Machine], leases: Sequence[Lease]) -> Sequence[Usage | Posting]:
        """Machines that are charged for, listed no more and held by nobody: they ended, and nobody said when."""
        present = {machine.id for machine in machines} | {lease.machine_id for lease in leases}
        gone: dict[MachineId, list[Usage]] = {}
        for usage in await self._context.store.open_usages(self._seller.name, self._seller.region):
            if usage.machine_id not in present:
                gone.setdefault(usage.machine_id, []).append(usage)
        news: list[Usage | Posting] = []
        for machine_id, usages in gone.items():
            at = await self._last_seen(usages)
            known = (await self._context.store.usages(self._seller.name, [machine_id]))[machine_id]
            news += ledger.gone(known, at, self._seller.facts.terms)
        return news

    async def _last_seen(self, usages: Sequence[Usage]) -> datetime:
        lease_id = usages[0].lease_id
        lease = None if lease_id is None else await self._context.store.lease(lease_id)
        now = self._context.clock.now()
        return now if lease is None else lease.missing_since or lease.ended_at or now

    async def _write(self, news: Sequence[Usage | Posting]) -> None:
        if not news:
            return
        try:
            await self._context.store.commit((), news, label="ledger")
        except StaleVersion:
            self._known.clear()  # another server has written meanwhile: look again with the next listing
            raise
        self._remember([entry for entry in news if isinstance(entry, Usage)])
        for job_id in {entry.job_id for entry in news}:
            self._context.hub.notify(job_id)

    def _remember(self, usages: Sequence[Usage]) -> None:
        for usage in usages:
            known: Mapping[tuple[str, datetime], Usage] = {
                (str(one.rate.kind), one.from_at): one for one in self._known.get(usage.machine_id, ())
            }
            merged = {**known, (str(usage.rate.kind), usage.from_at): usage}
            self._known[usage.machine_id] = tuple(sorted(merged.values(), key=lambda one: one.from_at))
