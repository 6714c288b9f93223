"""The cycle: take what waits, plan, check, and commit gang by gang. A conflict rejects that placement only.

Where clouds are enabled, what is bought is what the planner proposes at that moment. Where only counted stock is, a
task that does not fit is not looked at again until something else is offered: ten thousand that wait cost those that
come and go nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from crucible.core import job as jobs
from crucible.core import task as tasks
from crucible.core.check import check_plan
from crucible.core.cycle import Placement, Purchase, Shape, Unplaced, Want, left, plan, shape
from crucible.core.lives import mean_life_s
from crucible.core.relaunch import Relaunch, remaining, said
from crucible.core.step import held_leases
from crucible.engine.context import Context
from crucible.engine.past import past_of
from crucible.engine.planner import Planner, purchase_of
from crucible.engine.shelf import Shelf
from crucible.model.attempt import Attempt, AttemptCreated
from crucible.model.change import Change, born, changed
from crucible.model.errors import StaleClaim, StaleVersion
from crucible.model.ids import AttemptId, LeaseId, OrderId, TaskId
from crucible.model.job import Job, JobAllocated
from crucible.model.lease import Lease, LeasePhase, LeaseRequested, Order, OrderPlaced
from crucible.model.offer import Offer, Target
from crucible.model.record import Allocation
from crucible.model.spec import JobSpec, Mode
from crucible.model.task import Task, TaskPlaced
from crucible.model.tree import Tally, TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.store import Claim

# Read, planned and written before the next are looked at: requests are never kept waiting for long.
BATCH = 100
# After a cycle: the news of a burst are looked at together, and the first of them at once. The more wait, the longer a
# cycle takes: it shall take no more than a fifth of the time, and let no free place stay unseen for over half a second.
REST_S = 0.05
REST_PER_WORK = 4
REST_MAX_S = 0.5
# Everybody is looked at so often, whatever is offered: another server may have changed what a task holds.
LOOK_AT_ALL = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a task wants, and what its next attempt should know."""

    want: Want
    resume_step: int | None = None
    concession: str | None = None  # a limit that it cannot keep any more

    @property
    def hazard_per_hour(self) -> float | None:
        return self.want.purchase.hazard_per_hour if self.want.purchase is not None else None


class Placer:
    def __init__(self, context: Context, shelf: Shelf, planner: Planner) -> None:
        self._context = context
        self._shelf = shelf
        self._planner = planner
        self._buys = not all(seller.facts.counts_stock for seller in context.sellers.values())
        self._news = asyncio.Event()
        self._misfits: set[TaskId] = set()  # fit on nothing of what was left on offer
        self._left: list[Offer] = []
        self._look_at_all_at = context.clock.monotonic()

    def want(self) -> None:
        self._news.set()

    async def run(self) -> None:
        context = self._context
        while True:
            await context.clock.wait(self._news, context.policy.capacity_retry.total_seconds())
            self._news.clear()
            began = context.clock.monotonic()
            claim = await context.store.claim("cycle", context.server_id, context.claim_ttl)
            if claim is None:
                continue
            try:
                await self.cycle(claim)
            except StaleClaim:
                pass
            finally:
                await context.store.release(claim)
            took = context.clock.monotonic() - began
            await context.clock.sleep(min(max(REST_S, REST_PER_WORK * took), REST_MAX_S))

    async def cycle(self, claim: Claim) -> None:
        """In the order of their turn, until nobody is left who might fit."""
        context, offers = self._context, await self._shelf.offers()
        self._recall(offers)
        looked_at, is_more = set(self._misfits), True
        while is_more:
            trees = await context.store.waiting(context.clock.now(), BATCH, without=looked_at)
            looked_at.update(tree.task.id for tree in trees)
            offers = await self._place(trees, offers, claim)
            is_more = len(trees) == BATCH
        self._left = offers

    def _recall(self, offers: list[Offer]) -> None:
        now = self._context.clock.monotonic()
        if offers != self._left or now >= self._look_at_all_at:
            self._misfits.clear()
            self._look_at_all_at = now + LOOK_AT_ALL.total_seconds()

    async def _place(self, trees: Sequence[TaskTree], offers: list[Offer], claim: Claim) -> list[Offer]:
        """Returns what is left."""
        by_task = {tree.task.id: tree for tree in trees}
        asks = {tree.task.id: await self._ask_of(tree) for tree in trees}
        wants = [ask.want for ask in asks.values()]
        made = plan(wants, offers)
        check_plan(made, wants, offers)
        for placement in made.placements:
            await self._commit(by_task[placement.task_id], placement, asks[placement.task_id], claim)
        await self._explain(by_task, made.unplaced, claim)
        return left(offers, made)

    async def _ask_of(self, tree: TaskTree) -> Ask:
        spec, held = self._context.spec_of(tree.job), held_leases(tree)
        whole, past = Want(tree.task.id, spec, tuple(lease.id for lease in held)), await past_of(self._context, tree)
        if not self._buys:
            return Ask(whole, past.saved_step)
        if held and len(held) == self._gang_size(tree):
            return Ask(replace(whole, gang=Shape(len(held), held[0].gpus)), past.saved_step)
        rest = remaining(spec, past)
        found = await self._best_buy(tree, rest)
        if found is None:
            return Ask(replace(whole, held=(), why_not=f"waits: {await self._planner.why_nothing(rest)}"))
        concession = said(found, rest, self._context.clock.now())
        if self._context.seller(found.way.first.target).facts.counts_stock:
            here = tuple(lease.id for lease in held if lease.target == found.way.first.target)
            return Ask(replace(whole, held=here), past.saved_step, concession)
        purchase = purchase_of(found.way)
        want = replace(whole, held=self._alike(tree, held, purchase), purchase=purchase)
        return Ask(want, past.saved_step, concession)

    async def _best_buy(self, tree: TaskTree, rest: JobSpec) -> Relaunch | None:
        """For what is left of the job. Its limits hold; only one that has run already goes on without them."""
        if tree.job.started_at is not None:
            return await self._planner.relaunch(rest)
        found = await self._planner.purchase(rest)
        return None if found is None else Relaunch(found)

    def _gang_size(self, tree: TaskTree) -> int:
        """Of the gang that the task had last: what it holds of that may be all it needs."""
        return len(tree.attempt.leases) if tree.attempt else shape(self._context.spec_of(tree.job).resources).nodes

    def _alike(self, tree: TaskTree, held: Sequence[Lease], purchase: Purchase) -> tuple[LeaseId, ...]:
        """What the task holds of the very kind that is bought: a gang is of one kind, in one place and market."""
        kinds = {order.id: (order.target, order.instance_type, order.zone, order.is_spot) for order in tree.orders}
        kind = purchase.offer.target, purchase.offer.instance_type, purchase.zone, purchase.offer.is_spot
        return tuple(lease.id for lease in held if kinds.get(lease.order_id) == kind)

    # --- committing -------------------------------------------------------------------------------

    async def _commit(self, tree: TaskTree, placement: Placement, ask: Ask, claim: Claim) -> None:
        changes, records = self._gang(tree, placement, ask)
        try:
            await self._context.store.commit(changes, records, label="cycle.place", claim=claim)
        except StaleVersion:
            self._news.set()
            return
        self._planner.look_again()
        self._context.tell(tree.job.id, tree.task.id, changes)

    def _gang(self, tree: TaskTree, placement: Placement, ask: Ask) -> tuple[list[Change], tuple[Allocation, ...]]:
        """One attempt with all its leases: what is held, and one order for the rest."""
        context, now = self._context, self._context.clock.now()
        bought, records = self._purchase(tree, placement, placement.offer, ask) if placement.offer else ([], ())
        facts = context.facts(tree.leases) if placement.offer is None else context.seller(placement.offer.target).facts
        deadline = now + context.policy.order_limit + facts.boot_time
        attempt = Attempt(
            id=AttemptId(context.ids.new("attempt")),
            task_id=tree.task.id,
            job_id=tree.job.id,
            number=tree.task.attempts,
            leases=(*placement.reuse, *(c.after.id for c in bought if isinstance(c.after, Lease))),
            created_at=now,
            deadline_at=deadline,
            resume_step=ask.resume_step,
            mean_life_s=self._mean_life_s(tree, placement, ask),
            reason=ask.concession,
        )
        placed = TaskPlaced(now, attempt.id, deadline, ask.concession)
        task_changes = changed(tree.task, [placed], tasks.evolve)[1]
        job_changes = () if placement.offer is None else self._allocated(tree, placement, placement.offer)
        records = tuple(replace(record, attempt_id=attempt.id) for record in records)
        return [*job_changes, *task_changes, born(attempt, AttemptCreated(now)), *bought], records

    def _mean_life_s(self, tree: TaskTree, placement: Placement, ask: Ask) -> float | None:
        """Of the gang: what it holds was bought with its own risk, what is bought now with the plan's."""
        orders = {order.id: order for order in tree.orders}
        held = [orders.get(lease.order_id) for lease in tree.leases if lease.id in placement.reuse]
        hazards = [order.hazard_per_hour for order in held if order is not None]
        return mean_life_s([*hazards, *([ask.hazard_per_hour] * placement.count)])

    def _purchase(
        self, tree: TaskTree, placement: Placement, offer: Offer, ask: Ask
    ) -> tuple[list[Change], tuple[Allocation, ...]]:
        context, now = self._context, self._context.clock.now()
        order = Order(
            id=OrderId(context.ids.new("order")),
            job_id=tree.job.id,
            task_id=tree.task.id,
            target=offer.target,
            offer=offer.id,
            zone=placement.zone,
            instance_type=offer.instance_type,
            count=placement.count,
            gpus=offer.gpus,
            is_spot=offer.is_spot,
            price_per_hour=offer.price_per_hour,
            body={},
            created_at=now,
            deadline_at=now + context.policy.order_limit,
            hazard_per_hour=ask.hazard_per_hour,
        )
        leases = [self._lease(order, index) for index in range(placement.count)]
        hours = context.spec_of(tree.job).resources.estimated_hours
        allocation = Allocation(
            job_id=order.job_id,
            task_id=order.task_id,
            attempt_id=AttemptId(""),
            order_id=order.id,
            target=order.target,
            instance_type=order.instance_type,
            count=order.count,
            is_spot=order.is_spot,
            price_per_hour=order.price_per_hour,
            estimated_hours=hours,
            estimated_cost=MicroUsd(round(order.price_per_hour * order.count * (hours or 0))),
            created_at=now,
        )
        changes = [born(order, OrderPlaced(now)), *(born(lease, LeaseRequested(now)) for lease in leases)]
        return changes, (allocation,)

    def _lease(self, order: Order, index: int) -> Lease:
        return Lease(
            id=LeaseId(self._context.ids.new("lease")),
            order_id=order.id,
            job_id=order.job_id,
            task_id=order.task_id,
            target=order.target,
            index=index,
            gpus=order.gpus,
            price_per_hour=order.price_per_hour,
            created_at=order.created_at,
            deadline_at=order.deadline_at,
            phase=LeasePhase.REQUESTED,
        )

    def _allocated(self, tree: TaskTree, placement: Placement, offer: Offer) -> tuple[Change, ...]:
        """The job shows where it went; saying the same again is no news."""
        job, target = tree.job, offer.target
        event = JobAllocated(
            self._context.clock.now(),
            target.provider,
            target.region,
            target.backend,
            offer.instance_type,
            placement.shape.nodes,
            offer.is_spot,
        )
        selected = Target(job.selected_provider or "", job.selected_region or "", job.selected_backend or "")
        machines = job.selected_instance_type, job.selected_count, job.selected_spot
        if selected == target and machines == (offer.instance_type, placement.shape.nodes, offer.is_spot):
            return ()
        return changed(job, [event], jobs.evolve)[1]

    async def _explain(self, by_task: dict[TaskId, TaskTree], unplaced: Sequence[Unplaced], claim: Claim) -> None:
        """All at once: whoever changed meanwhile is looked at again together with the others."""
        changes: list[Change] = []
        for miss in unplaced:
            changes += self._explained(by_task[miss.task_id], miss.reason)
        try:
            if changes:
                await self._context.store.commit(changes, label="cycle.explain", claim=claim)
        except StaleVersion:
            self._news.set()
            return None
        # What a task holds may change without any news here, and so may what a cloud refuses.
        if self._buys:
            return self._tell_why(changes)
        self._misfits.update(miss.task_id for miss in unplaced if not by_task[miss.task_id].leases)
        return self._tell_why(changes)

    def _tell_why(self, changes: Sequence[Change]) -> None:
        know = {change.after.id for change in changes if isinstance(change.after, Job)}
        for job_id in know:
            self._context.hub.notify(job_id)
        for change in changes:
            if isinstance(change.after, Task) and change.after.job_id not in know:
                self._context.wakes.wake("job", change.after.job_id)

    def _explained(self, tree: TaskTree, reason: str) -> tuple[Change, ...]:
        """Why the task waits; if it is its job's only one, the job says so in the same breath."""
        now = self._context.clock.now()
        task, changes = changed(tree.task, tasks.explained(tree.task, reason, None, now), tasks.evolve)
        if not changes or tree.job.execution_mode is not Mode.SINGLE_CLUSTER:
            return changes
        tally = Tally({task.phase: 1}, task.reason, ever_placed=task.attempts > 0)
        return changes + changed(tree.job, jobs.decide(tree.job, tally, now), jobs.evolve)[1]
