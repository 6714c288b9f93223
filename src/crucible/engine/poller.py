"""One look at everything a seller lists: it confirms machines, misses them, and removes what nobody owns.

The listing is read before the database: an order is stored before it is called, so a machine of ours always finds its
order there. Nothing without our tag is ever listed, hence never touched."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from crucible.core import lease as leases
from crucible.core import places
from crucible.core.cooling import is_news, rests
from crucible.core.notices import leak
from crucible.core.step import retire
from crucible.engine.accounts import Accounts
from crucible.engine.consoles import Consoles
from crucible.engine.context import Context, listing_of, log
from crucible.engine.telling import NOTICES
from crucible.model.change import Change, changed
from crucible.model.errors import ProviderError, StaleClaim, StaleVersion
from crucible.model.health import PlaceHealth
from crucible.model.ids import LeaseId, MachineId, NodeId, TaskId
from crucible.model.lease import Lease, LeasePhase, Machine, MachineState, Order
from crucible.model.ledger import Cooldown
from crucible.model.record import Record
from crucible.ports.seller import Reaps, Seller
from crucible.ports.store import Claim

LIST_TIMEOUT_S = 60.0
# A node that has missed so many reports is worth a look at its seller's listing, long before it counts as silent.
MISSED_REPORTS = 2
# How often a seller is asked when nothing is changing: first often, for what a server before this one has left.
FIRST_CALM_S = 10.0
FIRST_LOOKS = 20
CALM_S = 30.0
# A look at hundreds of machines takes half a second: it shall take no more than a sixth of the time.
REST_PER_LOOK = 5
# Every task that holds a machine is looked at so often, whatever is heard of it: a wake-up may have died with another
# server, or found the row still claimed by a dead one.
LOOK_AT_ALL_S = 10.0
STRANDED_BATCH = 1000
# That a seller answers is written so often; that it does not any more, at once.
PLACE_EVERY = timedelta(minutes=1)
# A machine without an owner is removed when it has been seen so often: once may be a race.
STRAY_SIGHTINGS = 2
TIDY_EVERY_S = 10.0  # as often as a calm seller is looked at first: what is attached to nothing costs little


class Poller:
    def __init__(self, context: Context, seller: Seller, want_place: Callable[[], None]) -> None:
        self._context = context
        self._want_place = want_place
        self._seller = seller
        self.name = f"{seller.name}/{seller.region}"
        self._busy_s = seller.facts.poll_every.total_seconds()
        self._accounts = Accounts(context, seller)
        self._consoles = Consoles(context, seller)
        self._looks = 0
        self._absences: dict[LeaseId, int] = {}  # listings in a row without its machine, since that is overdue
        self._strays: dict[MachineId, int] = {}
        self._removed: set[MachineId] = set()  # of those, told to go
        self._leftovers: dict[str, int] = {}
        self._tidies_at = 0.0  # monotonic; what was seen once is looked for again at once
        self._looked_at_all: float | None = None
        self._place: PlaceHealth | None = None  # as it was last written
        self._told_removed = 0  # of the machines that nobody owned
        self._nodes: dict[NodeId, TaskId] = {}  # those that this server looks after
        self._listened_to_all: float = 0.0

    async def run(self) -> None:
        """For ever; one server at a time per seller."""
        context, name = self._context, listing_of(self._seller.name, self._seller.region)
        while True:
            seen = context.hub.counter(name)
            claim = await context.store.claim(f"poll:{self.name}", context.server_id, context.claim_ttl)
            wait, began = FIRST_CALM_S, context.clock.monotonic()
            if claim is None:
                self._nodes, self._place = {}, None  # another server looks after them
            else:
                try:
                    wait = await self.sweep()
                except (ProviderError, TimeoutError, OSError, StaleVersion) as error:
                    log.warning("%s cannot be looked through: %s", self.name, error)
                    context.vitals.count("sweeps_cut_short", place=self.name)
                finally:
                    await self._record_place(claim)
                    await context.store.release(claim)
            took = context.clock.monotonic() - began
            rest = max(self._busy_s, min(REST_PER_LOOK * took, FIRST_CALM_S))
            context.vitals.beat(f"polling {self.name}", max(wait, rest))
            await context.clock.sleep(rest)
            await context.hub.wait(name, seen, wait - rest)

    async def _record_place(self, claim: Claim) -> None:
        """How the seller is, for every server and for whoever must hear of it."""
        context, seen = self._context, self._context.vitals.place(self.name)
        now, known = context.clock.now(), await self._known_place()
        if seen.error is not None:
            after, notice = places.failed(known, now, seen.error, context.policy.provider_patience)
        elif seen.last_good_at is not None:
            new, self._told_removed = seen.removed - self._told_removed, seen.removed
            after, notice = places.listed(
                known, now, latency_s=seen.latency_s or 0.0, machines=seen.machines, removed=new
            )
        else:
            return
        if places.is_worth_writing(known, after, PLACE_EVERY) or known.last_good_at is None:
            try:
                await context.store.commit(
                    (), [after, *([] if notice is None else [notice])], label="place", claim=claim
                )
            except StaleClaim:
                return
            self._place = after

    async def _known_place(self) -> PlaceHealth:
        if self._place is None:
            nothing = PlaceHealth(
                provider=self._seller.name, region=self._seller.region, looked_at=self._context.clock.now()
            )
            found = await self._context.store.place_healths()
            self._place = next((one for one in found if one.name == self.name), nothing)
        return self._place

    async def listen(self) -> None:
        """For ever: wakes the tasks whose nodes have fallen silent, whether the seller answers or not; asks the seller
        when one falls behind."""
        every_s = self._context.policy.report_every.total_seconds()
        while True:
            self._context.vitals.beat(f"listening {self.name}", every_s)
            await self._context.clock.sleep(every_s)
            for task_id in self._silent():
                self._context.wakes.wake("task", task_id)
            if self._is_somebody_behind((MISSED_REPORTS + 1) * every_s):
                self._context.look_at(self._seller.name, self._seller.region)

    def _is_somebody_behind(self, within_s: float) -> bool:
        """Heard here, but not for a while; once it counts as silent, its task is looked at instead."""
        now, silence_s = self._context.clock.monotonic(), self._context.policy.silence.total_seconds()
        ages = (now - heard for node in self._nodes if (heard := self._context.heard_at.get(node)) is not None)
        return any(within_s <= age < silence_s for age in ages)

    def _silent(self) -> list[TaskId]:
        """Those not heard here may have been heard elsewhere: the task knows when it looks, but not at every turn."""
        heard_at, now = self._context.heard_at, self._context.clock.monotonic()
        is_turn = now - self._listened_to_all >= LOOK_AT_ALL_S
        self._listened_to_all = now if is_turn else self._listened_to_all
        latest = now - self._context.policy.silence.total_seconds()
        return [
            task_id for node, task_id in self._nodes.items() if heard_at.get(node, latest if is_turn else now) <= latest
        ]

    async def sweep(self) -> float:
        """Returns the seconds until the next look."""
        context, provider, region = self._context, self._seller.name, self._seller.region
        self._looks += 1
        context.failpoint("list.before")
        began = context.clock.now()
        machines = await self._listed()
        context.failpoint("list.after")
        open_leases = await context.store.open_leases(provider, region)
        orders = await context.store.open_orders(provider, region)
        self._nodes = {lease.node_id: lease.task_id for lease in open_leases if lease.node_id is not None}
        await self._accounts.enter(machines, open_leases)
        owned = await self._observe(open_leases, machines)
        await self._remember_look()
        await self._resolve(orders, machines, began)
        await self._reap([m for m in machines if m.id not in owned and m.state is not MachineState.GONE])
        await self._tidy()
        moving = any(is_moving(lease) for lease in open_leases) or bool(orders) or self._strays
        if moving:
            return self._busy_s
        return FIRST_CALM_S if self._looks <= FIRST_LOOKS or self._seller.facts.counts_stock else CALM_S

    async def _listed(self) -> Sequence[Machine]:
        clock, vitals = self._context.clock, self._context.vitals
        began = clock.monotonic()
        try:
            machines = await clock.wait_for(self._seller.machines(), LIST_TIMEOUT_S)
        except (ProviderError, TimeoutError, OSError) as error:
            vitals.unlisted(self.name, error)
            raise
        vitals.listed(self.name, clock.monotonic() - began, len(machines))
        return machines

    async def _observe(self, open_leases: Sequence[Lease], machines: Sequence[Machine]) -> set[MachineId]:
        by_id = {m.id: m for m in machines}
        by_place = {(m.order_id, m.index): m for m in machines}
        owned: set[MachineId] = set()
        for lease in open_leases:
            machine = by_id.get(lease.machine_id) if lease.machine_id else by_place.get((lease.order_id, lease.index))
            if machine is not None:
                owned.add(machine.id)
            await self._note(lease, leases.Found(machine) if machine else self._absent(lease))
            await self._fence(lease)
        missing = {lease.id for lease in open_leases if lease.machine_id not in owned}
        self._absences = {name: times for name, times in self._absences.items() if name in missing}
        return owned

    async def _fence(self, lease: Lease) -> None:
        """A machine that cannot be reached cannot be deleted either; its node has ended its ranks meanwhile."""
        context, facts = self._context, self._seller.facts
        if facts.fence is None or lease.phase is not LeasePhase.CLOSING or lease.started_at is None:
            return
        # What needs no look into the database: most leases close within seconds.
        if leases.is_fenced(lease.started_at, context.clock.now(), context.policy, facts):
            await self._note(lease, leases.Unheard(await self._heard(lease, lease.started_at)))

    async def _heard(self, lease: Lease, started_at: datetime) -> datetime:
        """By any server. While none listened, nobody could be heard: that is not the node's silence."""
        if lease.node_id is None:
            return started_at
        context = self._context
        tree = await context.store.tree(lease.task_id)
        last = [tree.heard.get(lease.node_id, started_at), context.pulse.since]
        here = context.heard_at.get(lease.node_id)
        if here is not None:
            last.append(context.clock.now() - timedelta(seconds=context.clock.monotonic() - here))
        return max(last)

    def _absent(self, lease: Lease) -> leases.Absent:
        context, facts = self._context, self._seller.facts
        if leases.is_overdue(lease, context.clock.now(), context.policy, facts):
            self._absences[lease.id] = self._absences.get(lease.id, 0) + 1
        return leases.Absent(self._absences.get(lease.id, 0))

    async def _note(self, lease: Lease, seen: leases.Observation) -> None:
        context = self._context
        if isinstance(seen, leases.Found):
            seen = leases.Found(await self._consoles.listen(lease, seen.machine))
        events = leases.decide(lease, seen, context.clock.now(), context.policy, self._seller.facts)
        after, changes = changed(lease, events, leases.evolve)
        if changes:
            resting = await self._resting(after, changes)
            await self._commit([*changes, *await self._retired(after)], records=resting)
        if changes or self._needs_a_look(after):
            context.tell_lease(after)
        if after.phase is LeasePhase.CLOSED:
            self._consoles.forget(after)
            self._want_place()

    async def _retired(self, lease: Lease) -> Sequence[Change]:
        """A node goes with its lease: later nobody would look at it again."""
        if lease.phase is not LeasePhase.CLOSED or lease.node_id is None:
            return ()
        self._context.heard_at.pop(lease.node_id, None)
        node = await self._context.store.node(lease.node_id)
        return retire(node, lease.reason or "the lease is closed", self._context.clock.now())

    async def _resting(self, lease: Lease, changes: Sequence[Change]) -> Sequence[Cooldown]:
        """What is not bought again for a while, if the machine was taken back."""
        if not any(is_news(change) for change in changes):
            return ()
        order, _ = await self._context.store.order(lease.order_id)
        return rests(changes, [order], self._context.clock.now(), self._context.policy)

    async def _commit(
        self, changes: Sequence[Change], claim: Claim | None = None, records: Sequence[Record] = ()
    ) -> None:
        try:
            await self._context.store.commit(changes, records, label="lease.seen", claim=claim)
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
        self._strays = {machine.id: self._strays.get(machine.id, 0) + 1 for machine in strays}
        self._removed &= self._strays.keys()
        self._context.failpoint("reap.before")
        for machine in strays:
            if self._strays[machine.id] >= STRAY_SIGHTINGS:
                await self._remove(machine, is_first=self._strays[machine.id] == STRAY_SIGHTINGS)
        self._context.failpoint("reap.after")

    async def _remove(self, machine: Machine, *, is_first: bool) -> None:
        """One that cannot be removed now keeps nobody else, and is said once."""
        if is_first:
            log.warning("removing machine %s of order %s: no lease owns it", machine.id, machine.order_id)
            found = leak(self._seller.name, self._seller.region, machine, self._context.clock.now())
            await self._context.store.commit([], [found], label="notice.leak")
            self._context.hub.notify(NOTICES)
        try:
            await self._context.clock.wait_for(self._seller.delete(machine.id), LIST_TIMEOUT_S)
            if machine.id not in self._removed:
                self._removed.add(machine.id)
                self._context.vitals.removed(self.name)
        except (ProviderError, TimeoutError, OSError) as error:
            if is_first:
                log.warning("machine %s cannot be removed yet: %s", machine.id, error)

    async def _tidy(self) -> None:
        """Disks and addresses that no machine holds and no open order waits for."""
        now = self._context.clock.monotonic()
        if not isinstance(self._seller, Reaps) or (now < self._tidies_at and not self._leftovers):
            return
        self._tidies_at = now + TIDY_EVERY_S
        found = await self._context.clock.wait_for(self._seller.leftovers(), LIST_TIMEOUT_S)
        awaited = {order.id for order in await self._context.store.open_orders(self._seller.name, self._seller.region)}
        left = [one for one in found if one.order_id not in awaited]
        self._leftovers = {one.id: self._leftovers.get(one.id, 0) + 1 for one in left}
        for one in left:
            if self._leftovers[one.id] >= STRAY_SIGHTINGS:
                log.warning("removing %s %s of order %s: no machine holds it", one.kind, one.id, one.order_id)
                await self._context.clock.wait_for(self._seller.remove(one), LIST_TIMEOUT_S)


def is_moving(lease: Lease) -> bool:
    """On its way here, away, or not yet heard of."""
    return lease.phase is not LeasePhase.ACTIVE or lease.node_id is None
