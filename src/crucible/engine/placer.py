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
from crucible.core.budget_words import waits
from crucible.core.check import check_plan
from crucible.core.cycle import (
    Placement,
    Plan,
    Purchase,
    Shape,
    Unplaced,
    Want,
    free_gpus,
    left,
    place,
    plan,
    shape,
    within,
    within_quotas,
    without,
)
from crucible.core.lives import mean_life_s
from crucible.core.relaunch import Relaunch, remaining, said
from crucible.core.scale import is_elastic, resized, sizes
from crucible.core.step import held_leases
from crucible.core.waiting import Waits, kind_of
from crucible.engine.context import Context
from crucible.engine.crews import CrewDesk, End, Prepare
from crucible.engine.growth import Growth
from crucible.engine.metrics import CYCLE, REJECTIONS
from crucible.engine.past import past_of
from crucible.engine.planner import Planner, purchase_of
from crucible.engine.purchases import Bought, allocated, buy, funded
from crucible.engine.purse import Purse
from crucible.engine.shelf import Shelf
from crucible.model.attempt import Attempt, AttemptCreated
from crucible.model.change import Change, born, changed
from crucible.model.errors import StaleClaim, StaleVersion
from crucible.model.ids import AttemptId, LeaseId, TaskId
from crucible.model.job import Job
from crucible.model.lease import Lease
from crucible.model.offer import Market, Offer
from crucible.model.quota import Holding
from crucible.model.record import Allocation
from crucible.model.spec import JobSpec, Mode
from crucible.model.sweep import Params
from crucible.model.task import Task, TaskGiven, TaskPlaced
from crucible.model.tree import Tally, TaskTree
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
    def __init__(
        self,
        context: Context,
        shelf: Shelf,
        planner: Planner,
        crews: CrewDesk,
        prepare: Prepare,
        end: End,
    ) -> None:
        """`prepare` says what tasks are given that were made before anybody knew; `end` hears of jobs that a budget
        will never pay for."""
        self._context = context
        self._end = end
        self._prepare = prepare
        self._crews = crews
        self._shelf = shelf
        self._planner = planner
        self.growth = Growth(context, self.want)
        self._buys = not all(seller.facts.counts_stock for seller in context.sellers.values())
        self._news = asyncio.Event()
        self._misfits: set[TaskId] = set()  # fit on nothing of what was left on offer
        self._left: list[Offer] = []
        self._look_at_all_at = context.clock.monotonic()
        self._took = context.meter.histogram(CYCLE)
        self._rejected = {kind: context.meter.counter(REJECTIONS, kind) for kind in Waits}

    def want(self) -> None:
        self._news.set()

    async def run(self) -> None:
        context = self._context
        every_s = context.policy.capacity_retry.total_seconds()
        while True:
            context.vitals.beat("placing", every_s)
            await context.clock.wait(self._news, every_s)
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
            self._took(took)
            await context.clock.sleep(min(max(REST_S, REST_PER_WORK * took), REST_MAX_S))

    async def cycle(self, claim: Claim) -> None:
        """In the order of their turn, until nobody is left who might fit."""
        context, offers = self._context, await self._shelf.on_sale()
        self._recall(offers)
        looked_at, is_more, purse = set(self._misfits), True, Purse(context)
        while is_more:
            trees = await context.store.waiting(context.clock.now(), BATCH, without=looked_at)
            looked_at.update(tree.task.id for tree in trees)
            offers = await self._place(await self._admitted(trees), offers, purse, claim)
            is_more = len(trees) == BATCH
        offers = await self._crews.cycle(offers, purse, claim)
        self._left = await self.growth.grow(offers, purse, claim)

    async def _admitted(self, trees: Sequence[TaskTree]) -> Sequence[TaskTree]:
        """Without those of whose job as many run as may at a time."""
        limits = {tree.job.id: self._context.spec_of(tree.job).execution.parallelism for tree in trees}
        room = {
            job_id: most - (await self._context.store.tally(job_id)).at_work
            for job_id, most in limits.items()
            if most is not None
        }
        return within(trees, room)

    def _recall(self, offers: list[Offer]) -> None:
        now = self._context.clock.monotonic()
        if offers != self._left or now >= self._look_at_all_at:
            self._misfits.clear()
            self._look_at_all_at = now + LOOK_AT_ALL.total_seconds()

    async def _place(self, trees: Sequence[TaskTree], offers: list[Offer], purse: Purse, claim: Claim) -> list[Offer]:
        """Returns what is left."""
        by_task = {tree.task.id: tree for tree in trees}
        asks = {tree.task.id: await self._ask_of(tree, offers) for tree in trees}
        wants = [ask.want for ask in asks.values()]
        made = within_quotas(plan(wants, offers), self._planner.quotas)
        check_plan(made, wants, offers)
        made = without(made, await self._unfunded(made, by_task, purse, claim))
        for placement in made.placements:
            await self._commit(by_task[placement.task_id], placement, asks[placement.task_id], claim)
        await self._explain(by_task, made.unplaced, claim)
        return left(offers, made)

    async def _unfunded(
        self, made: Plan, by_task: dict[TaskId, TaskTree], purse: Purse, claim: Claim
    ) -> dict[TaskId, str]:
        """Purchases that a budget cannot pay for, and why. One that never could may be meant to end the job."""
        found: dict[TaskId, str] = {}
        for placement in made.placements:
            job = by_task[placement.task_id].job
            short = await funded(self._context, purse, job, placement)
            if short is not None:
                found[placement.task_id] = waits(short)
                if short.is_final and not short.budget.pauses:
                    await self._end(short, job.id, claim)
        return found

    async def _ask_of(self, tree: TaskTree, offers: Sequence[Offer]) -> Ask:
        spec, held = self._context.spec_of(tree.job), held_leases(tree)
        past = await past_of(self._context, tree)
        here = completed(self._context, tree, held, offers)
        if here is not None:
            return Ask(here, past.saved_step)
        whole = Want(tree.task.id, spec, tuple(lease.id for lease in held))
        if not self._buys:
            return Ask(largest(whole, offers), past.saved_step)
        if held and len(held) == self._gang_size(tree):
            sized = resized(spec, len(held), held[0].gpus) if is_elastic(spec) else spec
            return Ask(replace(whole, spec=sized, gang=Shape(len(held), held[0].gpus)), past.saved_step)
        rest = remaining(spec, past)
        found, nodes = await self._best_buy(tree, rest)
        if found is None:
            return Ask(replace(whole, held=(), why_not=f"waits: {await self._planner.why_nothing(rest)}"))
        concession = said(found, rest, self._context.clock.now())
        whole = replace(whole, spec=resized(spec, nodes) if is_elastic(spec) else spec)
        if self._context.seller(found.way.first.target).facts.counts_stock:
            here_held = tuple(lease.id for lease in held if lease.target == found.way.first.target)
            return Ask(replace(whole, held=here_held), past.saved_step, concession)
        purchase = purchase_of(found.way)
        want = replace(whole, held=self._alike(tree, held, purchase), purchase=purchase)
        return Ask(want, past.saved_step, concession)

    async def _best_buy(self, tree: TaskTree, rest: JobSpec) -> tuple[Relaunch | None, int]:
        """For what is left of the job, and for how many of the machines that its spec speaks of. Its limits hold; only
        one that has run already goes on without them."""
        held = holdings(tree)
        for nodes in sizes(rest):
            sized = resized(rest, nodes) if is_elastic(rest) else rest
            if tree.job.started_at is not None:
                again = await self._planner.relaunch(sized, held)
            else:
                found = await self._planner.purchase(sized, held)
                again = None if found is None else Relaunch(found)
            if again is not None:
                return again, nodes
        return None, 0

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
        given = (await self._prepare(tree.job, [tree.task])).get(tree.task.id)
        changes, records = self._gang(tree, placement, ask, given)
        try:
            await self._context.store.commit(changes, records, label="cycle.place", claim=claim)
        except StaleVersion:
            self._news.set()
            return
        self._planner.look_again()
        self._context.tell(tree.job.id, tree.task.id, changes)

    def _gang(
        self, tree: TaskTree, placement: Placement, ask: Ask, given: Params | None
    ) -> tuple[list[Change], tuple[Allocation, ...]]:
        """One attempt with all its leases: what is held, and one order for the rest."""
        context, now = self._context, self._context.clock.now()
        attempt_id = AttemptId(context.ids.new("attempt"))
        bought = Bought() if placement.offer is None else buy(context, tree, placement, attempt_id, ask.hazard_per_hour)
        facts = context.facts(tree.leases) if placement.offer is None else context.seller(placement.offer.target).facts
        deadline = now + context.policy.order_limit + facts.boot_time
        attempt = Attempt(
            id=attempt_id,
            task_id=tree.task.id,
            job_id=tree.job.id,
            number=tree.task.attempts,
            leases=(*placement.reuse, *bought.leases),
            created_at=now,
            deadline_at=deadline,
            resume_step=ask.resume_step,
            mean_life_s=self._mean_life_s(tree, placement, ask),
            reason=ask.concession,
        )
        placed = TaskPlaced(now, attempt.id, deadline, ask.concession)
        news = [placed] if given is None else [TaskGiven(now, given), placed]
        task_changes = changed(tree.task, news, tasks.evolve)[1]
        offer, nodes = placement.offer, placement.shape.nodes
        job_changes = () if offer is None else allocated(context, tree.job, offer, nodes)
        return [*job_changes, *task_changes, born(attempt, AttemptCreated(now)), *bought.changes], bought.records

    def _mean_life_s(self, tree: TaskTree, placement: Placement, ask: Ask) -> float | None:
        """Of the gang: what it holds was bought with its own risk, what is bought now with the plan's."""
        orders = {order.id: order for order in tree.orders}
        held = [orders.get(lease.order_id) for lease in tree.leases if lease.id in placement.reuse]
        hazards = [order.hazard_per_hour for order in held if order is not None]
        return mean_life_s([*hazards, *([ask.hazard_per_hour] * placement.count)])

    async def _explain(self, by_task: dict[TaskId, TaskTree], unplaced: Sequence[Unplaced], claim: Claim) -> None:
        """All at once: whoever changed meanwhile is looked at again together with the others."""
        changes: list[Change] = []
        for miss in unplaced:
            self._rejected[kind_of(miss.reason, has_run=False)](1)
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


def holdings(tree: TaskTree) -> list[Holding]:
    """What the task has of each kind."""
    orders = {order.id: order for order in tree.orders}
    bought = [orders[lease.order_id] for lease in held_leases(tree) if lease.order_id in orders]
    return [
        Holding(
            order.target.provider,
            order.target.region,
            order.instance_type,
            Market.SPOT if order.is_spot else Market.ON_DEMAND,
            machines=1,
        )
        for order in bought
    ]


def completed(context: Context, tree: TaskTree, held: Sequence[Lease], offers: Sequence[Offer]) -> Want | None:
    """A gang that lost some of its machines where sellers count their stock: with what can be had beside those that it
    holds, if that is enough. Healthy machines are not given back for a place that may be a little better."""
    spec, orders = context.spec_of(tree.job), {order.id: order for order in tree.orders}
    if not held or len({lease.target for lease in held}) > 1 or not context.seller(held[0].target).facts.counts_stock:
        return None
    order = orders.get(held[0].order_id)
    same_seller = [offer for offer in offers if offer.target == held[0].target]
    zone = order.zone if order is not None else None
    want = largest(Want(tree.task.id, spec, tuple(lease.id for lease in held), zone=zone), same_seller)
    return want if isinstance(place(want, same_seller, free_gpus(same_seller)), Placement) else None


def largest(want: Want, offers: Sequence[Offer]) -> Want:
    """As many machines as can be had, where the job is elastic; else as its spec says."""
    for nodes in sizes(want.spec) if is_elastic(want.spec) else ():
        smaller = replace(want, spec=resized(want.spec, nodes))
        if isinstance(place(smaller, offers, free_gpus(offers)), Placement):
            return smaller
    return want
