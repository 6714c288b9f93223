"""The cycle: take what waits, plan, check, and commit gang by gang. A conflict rejects that placement only.

A task that does not fit on what is offered is not looked at again until something else is offered: ten thousand that
wait cost those that come and go nothing."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from crucible.core import job as jobs
from crucible.core import task as tasks
from crucible.core.check import check_plan
from crucible.core.cycle import Placement, Unplaced, Want, left, plan
from crucible.core.step import held_leases
from crucible.engine.context import Context, log
from crucible.model.attempt import Attempt, AttemptCreated
from crucible.model.change import Change, born, changed
from crucible.model.errors import ProviderError, StaleClaim, StaleVersion
from crucible.model.ids import AttemptId, LeaseId, OrderId, TaskId
from crucible.model.job import Job, JobAllocated
from crucible.model.lease import Lease, LeasePhase, LeaseRequested, Order, OrderPlaced
from crucible.model.offer import Offer, Target
from crucible.model.record import Allocation
from crucible.model.spec import Mode
from crucible.model.task import Task, TaskPlaced
from crucible.model.tree import Tally, TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.store import Claim

# Read, planned and written before the next are looked at: requests are never kept waiting for long.
BATCH = 100
OFFERS_TIMEOUT_S = 30.0
# After a cycle: the news of a burst are looked at together, and the first of them at once. The more wait, the longer a
# cycle takes: it shall take no more than a fifth of the time, and let no free place stay unseen for over half a second.
REST_S = 0.05
REST_PER_WORK = 4
REST_MAX_S = 0.5
# Everybody is looked at so often, whatever is offered: another server may have changed what a task holds.
LOOK_AT_ALL = timedelta(seconds=60)


class Placer:
    def __init__(self, context: Context) -> None:
        self._context = context
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
        context, offers = self._context, await self.offers()
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
        wants = [self._want_of(tree) for tree in trees]
        made = plan(wants, offers)
        check_plan(made, wants, offers)
        for placement in made.placements:
            await self._commit(by_task[placement.task_id], placement, claim)
        await self._explain(by_task, made.unplaced, claim)
        return left(offers, made)

    def _want_of(self, tree: TaskTree) -> Want:
        held = tuple(lease.id for lease in held_leases(tree))
        return Want(tree.task.id, self._context.spec_of(tree.job), held)

    async def offers(self) -> list[Offer]:
        """What every seller has now, less what we have ordered and not yet received."""
        found: list[Offer] = []
        for seller in self._context.sellers.values():
            try:
                offers = await self._context.clock.wait_for(seller.offers(), OFFERS_TIMEOUT_S)
            except (ProviderError, TimeoutError, OSError) as error:
                log.warning("%s has no offers now: %s", seller.name, error)
                continue
            found += await self._less_ordered(seller.name, offers)
        return found

    async def _less_ordered(self, provider: str, offers: Sequence[Offer]) -> list[Offer]:
        coming: Counter[str] = Counter()
        for lease in await self._context.store.open_leases(provider):
            if lease.machine_id is None:
                coming[provider] += lease.gpus
        return [
            offer if offer.free_gpus is None else replace(offer, free_gpus=max(0, offer.free_gpus - coming[provider]))
            for offer in offers
        ]

    # --- committing -------------------------------------------------------------------------------

    async def _commit(self, tree: TaskTree, placement: Placement, claim: Claim) -> None:
        changes, records = self._gang(tree, placement)
        try:
            await self._context.store.commit(changes, records, label="cycle.place", claim=claim)
        except StaleVersion:
            self._news.set()
            return
        self._context.tell(tree.job.id, tree.task.id, changes)

    def _gang(self, tree: TaskTree, placement: Placement) -> tuple[list[Change], tuple[Allocation, ...]]:
        """One attempt with all its leases: what is held, and one order for the rest."""
        context, now = self._context, self._context.clock.now()
        bought, records = ([], ()) if placement.offer is None else self._purchase(tree, placement, placement.offer)
        facts = context.facts(tree.leases)
        deadline = now + context.policy.order_limit + facts.boot_time
        attempt = Attempt(
            id=AttemptId(context.ids.new("attempt")),
            task_id=tree.task.id,
            job_id=tree.job.id,
            number=tree.task.attempts,
            leases=(*placement.reuse, *(c.after.id for c in bought if isinstance(c.after, Lease))),
            created_at=now,
            deadline_at=deadline,
        )
        task_changes = changed(tree.task, [TaskPlaced(now, attempt.id, deadline)], tasks.evolve)[1]
        job_changes = () if placement.offer is None else self._allocated(tree, placement, placement.offer)
        records = tuple(replace(record, attempt_id=attempt.id) for record in records)
        return [*job_changes, *task_changes, born(attempt, AttemptCreated(now)), *bought], records

    def _purchase(
        self, tree: TaskTree, placement: Placement, offer: Offer
    ) -> tuple[list[Change], tuple[Allocation, ...]]:
        context, now = self._context, self._context.clock.now()
        order = Order(
            id=OrderId(context.ids.new("order")),
            job_id=tree.job.id,
            task_id=tree.task.id,
            target=offer.target,
            offer=offer.id,
            instance_type=offer.instance_type,
            count=placement.count,
            gpus=offer.gpus,
            is_spot=offer.is_spot,
            price_per_hour=offer.price_per_hour,
            body={},
            created_at=now,
            deadline_at=now + context.policy.order_limit,
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
            return
        # What a task holds may change without any news here.
        self._misfits.update(miss.task_id for miss in unplaced if not by_task[miss.task_id].leases)
        self._tell_why(changes)

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
