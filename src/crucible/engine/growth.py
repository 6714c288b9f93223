"""Elastic attempts get more machines while they run: what they lost, and what their deadline and budget ask for. Who is
short of machines is noted by whoever looks at a task; forgetting it costs ten seconds, until the next look."""

from collections.abc import Callable
from datetime import datetime

from crucible.core import attempt as attempts
from crucible.core.check import check_plan
from crucible.core.cycle import Placement, Purchase, Want, left, plan
from crucible.core.scale import Course, is_elastic, most_nodes, resized, wanted_nodes
from crucible.engine.context import Context
from crucible.engine.past import past_of
from crucible.engine.purchases import buy, funded
from crucible.engine.purse import Purse
from crucible.model.attempt import Attempt, AttemptGrown
from crucible.model.change import changed
from crucible.model.errors import NotFound, StaleVersion
from crucible.model.ids import OfferId, TaskId
from crucible.model.job import Desired, Job
from crucible.model.lease import Order
from crucible.model.offer import Offer
from crucible.model.record import Progress
from crucible.model.tree import TaskTree
from crucible.ports.store import Claim

# Between two purchases for one task: a machine that was refused is not asked for again at once.
PAUSE_S = 10.0


class Growth:
    def __init__(self, context: Context, want_place: Callable[[], None]) -> None:
        self._context = context
        self._want_place = want_place
        self._short: dict[TaskId, None] = {}
        self._not_before: dict[TaskId, float] = {}  # monotonic

    def note(self, tree: TaskTree) -> None:
        """Remembers a task that could use more machines."""
        attempt, spec = tree.attempt, self._context.spec_of(tree.job)
        if attempt is None or not is_elastic(spec) or not is_growing(tree, attempt, most_nodes(spec)):
            self._short.pop(tree.task.id, None)
            self._not_before.pop(tree.task.id, None)
        elif tree.task.id not in self._short:
            self._short[tree.task.id] = None
            self._want_place()

    async def grow(self, offers: list[Offer], purse: Purse, claim: Claim) -> list[Offer]:
        """Buys for those who are short; returns what is left on offer."""
        for task_id in list(self._short):
            if self._context.clock.monotonic() >= self._not_before.get(task_id, 0.0):
                offers = await self._grow_one(task_id, offers, purse, claim)
        return offers

    async def _grow_one(self, task_id: TaskId, offers: list[Offer], purse: Purse, claim: Claim) -> list[Offer]:
        context = self._context
        try:
            tree = await context.store.tree(task_id)
        except NotFound:
            self._short.pop(task_id, None)
            return offers
        attempt = tree.attempt
        if attempt is None or not is_growing(tree, attempt, most_nodes(context.spec_of(tree.job))):
            self._short.pop(task_id, None)
            return offers
        missing = await self._missing(tree, attempt)
        for nodes in range(missing, 0, -1):
            want = self._want(tree, attempt, nodes)
            made = plan([want], offers)
            if made.placements and await funded(context, purse, tree.job, made.placements[0]) is None:
                check_plan(made, [want], offers)
                await self._commit(tree, attempt, made.placements[0], want, claim)
                return left(offers, made)
        self._not_before[task_id] = context.clock.monotonic() + PAUSE_S
        return offers

    async def _missing(self, tree: TaskTree, attempt: Attempt) -> int:
        spec, past = self._context.spec_of(tree.job), await past_of(self._context, tree)
        progress = await self._context.store.task_progress(tree.task.id)
        is_late = misses(spec.constraints.deadline, tree.job, progress, self._context.clock.now())
        members = len(attempt.leases)
        return max(0, wanted_nodes(spec, members, Course(spent=past.spent, is_late=is_late)) - members)

    def _want(self, tree: TaskTree, attempt: Attempt, nodes: int) -> Want:
        """So many machines like those that it has: the same seller, zone, kind and market."""
        spec = resized(self._context.spec_of(tree.job), nodes)
        leases = {lease.id: lease for lease in tree.leases}
        orders = {order.id: order for order in tree.orders}
        first = next(leases[each] for each in attempt.leases if each in leases)
        order = orders.get(first.order_id)
        if self._context.seller(first.target).facts.counts_stock or order is None:
            return Want(tree.task.id, spec, zone=order.zone if order is not None else None)
        alike = resized(spec, nodes, order.gpus)
        return Want(tree.task.id, alike, purchase=Purchase(like(order), order.zone, nodes, order.hazard_per_hour))

    async def _commit(self, tree: TaskTree, attempt: Attempt, placement: Placement, want: Want, claim: Claim) -> None:
        context = self._context
        self._not_before[tree.task.id] = context.clock.monotonic() + PAUSE_S
        hazard = want.purchase.hazard_per_hour if want.purchase is not None else None
        bought = buy(context, tree, placement, attempt.id, hazard)
        grown = changed(attempt, [AttemptGrown(context.clock.now(), bought.leases)], attempts.evolve)[1]
        changes = [*grown, *bought.changes]
        try:
            await context.store.commit(changes, bought.records, label="cycle.place", claim=claim)
        except StaleVersion:
            self._not_before.pop(tree.task.id, None)
            return
        context.tell(tree.job.id, tree.task.id, changes)


def is_growing(tree: TaskTree, attempt: Attempt, most: int) -> bool:
    is_live = attempt.id == tree.task.attempt_id and attempts.takes_members(attempt)
    return is_live and tree.job.desired is Desired.RUN and len(attempt.leases) < most


def like(order: Order) -> Offer:
    """What was bought, as an offer: a seller that counts nothing sells it again."""
    return Offer(
        id=OfferId(order.offer),
        target=order.target,
        instance_type=order.instance_type,
        gpu=None,
        gpus=order.gpus,
        gpu_memory_gib=float("inf"),  # what it has fitted before
        cpus=0,
        memory_gib=0.0,
        price_per_hour=order.price_per_hour,
        is_spot=order.is_spot,
    )


def misses(deadline: datetime | None, job: Job, progress: Progress | None, now: datetime) -> bool:
    """At the pace of the job so far, its end lies after its deadline. Who says nothing of his progress is not late."""
    if deadline is None or job.started_at is None or progress is None or not progress.fraction:
        return False
    elapsed = now - job.started_at
    return now + elapsed * ((1 - progress.fraction) / progress.fraction) > deadline
