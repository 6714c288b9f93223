"""One look at everything a seller lists: it confirms machines, misses them, and removes what nobody owns.

The listing is read before the database: an order is stored before it is called, so a machine of ours always finds its
order there. Nothing without our tag is ever listed, hence never touched."""

from collections.abc import Sequence
from datetime import datetime

from crucible.core import lease as leases
from crucible.engine.context import Context, log
from crucible.model.change import Change, changed
from crucible.model.errors import ProviderError, StaleClaim, StaleVersion
from crucible.model.ids import MachineId
from crucible.model.lease import Lease, LeasePhase, Machine, MachineState, Order
from crucible.ports.seller import Seller
from crucible.ports.store import Claim

LIST_TIMEOUT_S = 60.0
# How often a seller is asked when nothing is changing, and while something is.
CALM_S = 10.0
BUSY_S = 0.5
# Every task that holds a machine is looked at so often, whatever is heard of it: a wake-up may have died with another
# server, or found the row still claimed by a dead one.
LOOK_AT_ALL_S = 10.0
STRANDED_BATCH = 1000
# A machine without an owner is removed when it has been seen so often: once may be a race.
STRAY_SIGHTINGS = 2


class Poller:
    def __init__(self, context: Context, seller: Seller) -> None:
        self._context = context
        self._seller = seller
        self._strays: dict[MachineId, int] = {}
        self._looked_at_all: float | None = None

    async def run(self) -> None:
        """For ever; one server at a time per seller."""
        context, name = self._context, f"seller:{self._seller.name}"
        while True:
            seen = context.hub.counter(name)
            claim = await context.store.claim(f"poll:{self._seller.name}", context.server_id, context.claim_ttl)
            wait = CALM_S
            if claim is not None:
                try:
                    wait = await self.sweep()
                except (ProviderError, TimeoutError, OSError) as error:
                    log.warning("%s cannot be listed: %s", self._seller.name, error)
                finally:
                    await context.store.release(claim)
            await context.clock.sleep(BUSY_S)
            await context.hub.wait(name, seen, wait - BUSY_S)

    async def sweep(self) -> float:
        """Returns the seconds until the next look."""
        context = self._context
        context.failpoint("list.before")
        began = context.clock.now()
        machines = await context.clock.wait_for(self._seller.machines(), LIST_TIMEOUT_S)
        context.failpoint("list.after")
        open_leases = await context.store.open_leases(self._seller.name)
        orders = await context.store.open_orders(self._seller.name)
        owned = await self._observe(open_leases, machines)
        await self._remember_look()
        await self._resolve(orders, machines, began)
        await self._reap([m for m in machines if m.id not in owned and m.state is not MachineState.GONE])
        moving = any(lease.phase is not LeasePhase.ACTIVE for lease in open_leases) or bool(orders) or self._strays
        return BUSY_S if moving else CALM_S

    async def _observe(self, open_leases: Sequence[Lease], machines: Sequence[Machine]) -> set[MachineId]:
        by_id = {m.id: m for m in machines}
        by_place = {(m.order_id, m.index): m for m in machines}
        owned: set[MachineId] = set()
        for lease in open_leases:
            machine = by_id.get(lease.machine_id) if lease.machine_id else by_place.get((lease.order_id, lease.index))
            if machine is not None:
                owned.add(machine.id)
            await self._note(lease, leases.Found(machine) if machine else leases.Absent())
        return owned

    async def _note(self, lease: Lease, seen: leases.Observation) -> None:
        context = self._context
        events = leases.decide(lease, seen, context.clock.now(), context.policy, self._seller.facts)
        after, changes = changed(lease, events, leases.evolve)
        if changes:
            await self._commit(changes)
        if changes or self._needs_a_look(after):
            context.tell_lease(after)
        if after.phase is LeasePhase.CLOSED and after.node_id is not None:
            context.heard_at.pop(after.node_id, None)

    async def _commit(self, changes: Sequence[Change], claim: Claim | None = None) -> None:
        try:
            await self._context.store.commit(changes, label="lease.seen", claim=claim)
        except (StaleVersion, StaleClaim):
            pass  # somebody else knows better; the next look sees it

    def _needs_a_look(self, lease: Lease) -> bool:
        """Its task must notice silence, its order an overdue delete."""
        if lease.phase is not LeasePhase.ACTIVE or self._looks_at_all():
            return True
        return lease.node_id is not None and self._context.is_quiet(lease.node_id)

    def _looks_at_all(self) -> bool:
        return self._looked_at_all is None or self._context.clock.monotonic() - self._looked_at_all >= LOOK_AT_ALL_S

    async def _remember_look(self) -> None:
        if not self._looks_at_all():
            return
        self._looked_at_all = self._context.clock.monotonic()
        for task_id in await self._context.store.stranded(STRANDED_BATCH):
            self._context.wakes.wake("task", task_id)

    async def _resolve(self, orders: Sequence[Order], machines: Sequence[Machine], began: datetime) -> None:
        for order in orders:
            count = sum(m.order_id == order.id and m.state is not MachineState.GONE for m in machines)
            seen = leases.Listed(count, began)
            events = leases.decide_order(
                order, seen, self._context.clock.now(), self._context.policy, self._seller.facts
            )
            changes = changed(order, events, leases.evolve_order)[1]
            if changes:
                await self._settle(order, changes)
            self._context.wakes.wake("order", order.id)

    async def _settle(self, order: Order, changes: Sequence[Change]) -> None:
        """Under the order's claim: who makes the purchase right now knows more than a listing."""
        context = self._context
        claim = await context.store.claim(f"order:{order.id}", context.server_id, context.claim_ttl)
        if claim is None:
            return
        try:
            await self._commit(changes, claim)
        finally:
            await context.store.release(claim)

    async def _reap(self, strays: Sequence[Machine]) -> None:
        counts = {m.id: self._strays.get(m.id, 0) + 1 for m in strays}
        self._strays = counts
        for machine in strays:
            if counts[machine.id] >= STRAY_SIGHTINGS:
                log.warning("removing machine %s of order %s: no lease owns it", machine.id, machine.order_id)
                await self._seller.delete(machine.id)
