"""Tasks that share the machines of their job: the next ones get the free seats, many in one transaction; what is
missing is bought, as crews; what nobody needs any more is given back. Part of the cycle, under its claim; the steps of
single crews are woken like those of tasks."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from crucible.core import attempt as attempts
from crucible.core import crew
from crucible.core import task as tasks
from crucible.core.budget import Shortage
from crucible.core.budget_words import waits
from crucible.core.costs import so_far
from crucible.core.cycle import Placement, Plan, Shape, left
from crucible.core.launch import ranks_per_node
from crucible.core.lives import mean_life_s
from crucible.core.offers import Listing
from crucible.core.relaunch import unspent
from crucible.engine.context import Context
from crucible.engine.planner import Planner, hazard_of, offer_of
from crucible.engine.purchases import buy, funded
from crucible.engine.purse import Purse
from crucible.model.attempt import Attempt, AttemptCreated, RanksAssigned
from crucible.model.change import Change, changed
from crucible.model.errors import StaleVersion
from crucible.model.ids import AttemptId, JobId, OfferId, TaskId
from crucible.model.job import Desired, Job
from crucible.model.lease import Lease
from crucible.model.offer import Offer
from crucible.model.record import Allocation
from crucible.model.spec import JobSpec
from crucible.model.sweep import Params
from crucible.model.task import Task, TaskAdvanced, TaskCreated, TaskGiven, TaskKind, TaskPhase, TaskPlaced
from crucible.model.tree import Crewed, Crews, TaskTree
from crucible.model.units import MicroUsd
from crucible.ports.store import Claim

# Tasks that get their seats in one transaction.
BATCH = 100
# Between two purchases for one job: what was refused, or is on its way, is looked at first.
PAUSE = timedelta(seconds=2)
IDLE_PAUSE = timedelta(seconds=15)  # the same when nothing more was to be had
# Machines of one purchase. It is all or none, and nobody here needs all: what a region has left is had in parts.
MOST_AT_ONCE = 4

Prepare = Callable[[Job, Sequence[Task]], Awaitable[Mapping[TaskId, Params]]]
End = Callable[[Shortage, JobId, Claim], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Succession:
    changes: tuple[Change, ...] = ()
    records: tuple[Allocation, ...] = ()


class CrewDesk:
    def __init__(self, context: Context, planner: Planner, prepare: Prepare, end: End) -> None:
        """`prepare` says what tasks are given that were made before anybody knew; `end` hears of jobs that a budget
        will never pay for."""
        self._context = context
        self._end = end
        self._planner = planner
        self._prepare = prepare
        self._not_before: dict[str, float] = {}  # of the next purchase, by job; monotonic
        self._promised: set[TaskId] = set()  # tasks whose beginning is being written

    async def cycle(self, offers: list[Offer], purse: Purse, claim: Claim) -> list[Offer]:
        """Returns what is left on offer."""
        found = await self._context.store.crewed(self._context.clock.now())
        self._not_before = {one.job.id: self._not_before.get(one.job.id, 0.0) for one in found}
        for one in found:
            offers = await self._serve(one, offers, purse, claim)
        return offers

    async def _serve(self, asked: Crewed, offers: list[Offer], purse: Purse, claim: Claim) -> list[Offer]:
        context, job = self._context, asked.job
        spec, crews = context.spec_of(job), await context.store.crews(job.id)
        room = (spec.execution.parallelism or asked.ready + len(crews.at_work)) - len(crews.at_work)
        seats = crew.free_seats(crews, spec.resources, context.view(job, ()))
        ready = 0 if job.drained is not None else asked.ready
        seated = await self._seat_all(job, spec, seats[: max(0, min(ready, room))], claim)
        wanted = max(0, min(ready, room) - seated)
        missing = wanted - crew.coming_seats(crews, spec.resources)
        if wanted < len(seats) - seated or not wanted:
            await self._give_back(crews, spec, wanted + (0 if job.drained else asked.later), seated, claim)
        if missing > 0 and context.clock.monotonic() >= self._not_before[job.id]:
            left_over = await self._buy(asked, crews, spec, wanted, offers, purse, claim)
            pause = PAUSE if left_over is not offers or not crews.trees else IDLE_PAUSE
            self._not_before[job.id] = context.clock.monotonic() + pause.total_seconds()
            return left_over
        return offers

    # --- seats --------------------------------------------------------------------------------------

    async def _seat_all(self, job: Job, spec: JobSpec, seats: Sequence[crew.Seat], claim: Claim) -> int:
        """How many tasks got one."""
        count = 0
        for start in range(0, len(seats), BATCH):
            some = seats[start : start + BATCH]
            waiting = await self._waiting(job, len(some))
            with self._promising(waiting):
                count += await self._seat(job, spec, waiting, some, claim)
        return count

    async def _waiting(self, job: Job, limit: int) -> Sequence[Task]:
        """The next ones, but those whose beginning is being written."""
        return await self._context.store.seated(job.id, self._context.clock.now(), limit, without=self._promised)

    @contextmanager
    def _promising(self, some: Sequence[Task]) -> Iterator[None]:
        """Until that is written, nobody else here is to give them a seat."""
        self._promised.update(task.id for task in some)
        try:
            yield
        finally:
            self._promised.difference_update(task.id for task in some)

    async def _seat(
        self, job: Job, spec: JobSpec, waiting: Sequence[Task], seats: Sequence[crew.Seat], claim: Claim
    ) -> int:
        if not waiting:
            return 0
        context, changes, records = self._context, list[Change](), list[Allocation]()
        params = await self._prepare(job, [task for task in waiting if task.params is None])
        for task, seat in zip(waiting, seats, strict=False):
            more, record = await self._placed(job, spec, task, seat, params.get(task.id))
            changes += more
            records.append(record)
        try:
            await context.store.commit(changes, records, label="cycle.seat", claim=claim)
        except StaleVersion:
            return 0  # somebody cancelled one of them; the next cycle sees who
        for seat in seats[: len(waiting)]:
            context.hub.notify(seat.node.id)
        context.tell_seated(job.id, ())
        return len(waiting)

    async def _placed(
        self, job: Job, spec: JobSpec, task: Task, seat: crew.Seat, params: Params | None
    ) -> tuple[list[Change], Allocation]:
        context, now = self._context, self._context.clock.now()
        attempt_id = AttemptId(context.ids.new("attempt"))
        deadline = now + context.policy.start_limit
        saved = await context.store.newest_step(job.lineage, task.index) if is_resumed(job, task) else None
        attempt = Attempt(
            id=attempt_id,
            task_id=task.id,
            job_id=job.id,
            number=task.attempts,
            leases=(seat.lease.id,),
            created_at=now,
            deadline_at=deadline,
            resume_step=saved,
            mean_life_s=mean_life_s([seat.order.hazard_per_hour]),
        )
        ranks = seat.ranks(ranks_per_node(spec))
        assigned = RanksAssigned(now, 1, ranks, seat.node.address, 0, deadline)
        events = [TaskPlaced(now, attempt_id, deadline), TaskAdvanced(now, TaskPhase.PROVISIONING, deadline)]
        given = [] if params is None else [TaskGiven(now, params)]
        made = Change(None, attempts.evolve(attempt, assigned), (AttemptCreated(now), assigned))
        return [*changed(task, [*given, *events], tasks.evolve)[1], made], allocation(job, spec, attempt, seat)

    @asynccontextmanager
    async def succession(self, tree: TaskTree, attempt: Attempt | None) -> AsyncIterator[Succession]:
        """Who comes next on the seat of an attempt that is over: written in the same transaction, so that no cycle is
        needed, and no other sees the seat free. Searches that must be asked first wait for the cycle."""
        seat = None if attempt is None else self._seat_of(tree, attempt)
        task = None if seat is None else await self._next_for(tree.job)
        if task is None or seat is None:
            yield Succession()
            return
        with self._promising([task]):
            changes, record = await self._placed(tree.job, self._context.spec_of(tree.job), task, seat, None)
            yield Succession(tuple(changes), (record,))

    def _seat_of(self, tree: TaskTree, attempt: Attempt) -> crew.Seat | None:
        job, spec = tree.job, self._context.spec_of(tree.job)
        if job.desired is not Desired.RUN or job.drained is not None:
            return None
        return crew.same_seat(tree, attempt, spec.resources, self._context.view(job, tree.leases))

    async def _next_for(self, job: Job) -> Task | None:
        for task in await self._waiting(job, 1):
            if task.params is not None or self._context.spec_of(job).sweep is None:
                return task
        return None

    # --- machines ------------------------------------------------------------------------------------

    async def _give_back(self, crews: Crews, spec: JobSpec, wanted: int, seated: int, claim: Claim) -> None:
        if not crews.trees:
            return
        context, job = self._context, crews.trees[0].job
        if seated:
            crews = await context.store.crews(job.id)
        view = context.view(job, crews.trees[0].leases)
        gone = crew.surplus(crews, spec.resources, view, wanted)
        changes = crew.given_back(gone, view)
        if not changes:
            return
        try:
            await context.store.commit(changes, label="crew.give_back", claim=claim)
        except StaleVersion:
            return
        for change in changes:
            if isinstance(change.after, Lease):
                context.tell_lease(change.after)

    async def _buy(
        self,
        asked: Crewed,
        crews: Crews,
        spec: JobSpec,
        wanted: int,
        offers: list[Offer],
        purse: Purse,
        claim: Claim,
    ) -> list[Offer]:
        """What is the best buy for the tasks that are left, beside the machines that it holds."""
        held = crew.held(crews, spec.resources)
        rest = await self._rest(asked.job, spec)
        scaling = await self._planner.scaling(rest, wanted + len(crews.at_work), held)
        if scaling.why_not is not None and not held:
            await self._explain(asked.job, f"waits: {scaling.why_not}", claim)
        known, number = {one.offer for one in held}, asked.last_crew
        for part in scaling.buy:
            offer, count = self._on_sale(part.listing, part.count, offers, known)
            while offer is not None and count > 0:
                number, size = number - 1, min(count, MOST_AT_ONCE)
                placement = Placement(TaskId(""), Shape(size, offer.gpus), (), offer, size, part.listing.zone)
                short = await funded(self._context, purse, asked.job, placement)
                if short is not None:
                    await self._unfunded(asked.job, short, claim, is_idle=not held)
                    return offers
                await self._order(asked.job, number, placement, hazard_of(part.listing), claim)
                offers, count = left(offers, Plan((placement,), ())), count - size
        return offers

    async def _unfunded(self, job: Job, short: Shortage, claim: Claim, *, is_idle: bool) -> None:
        """A budget cannot pay for more. One that never could ends the job, if it is such a budget and nothing runs."""
        await self._explain(job, waits(short), claim)
        if is_idle and short.is_final and not short.budget.pauses:
            await self._end(short, job.id, claim)

    def _on_sale(
        self, listing: Listing, count: int, offers: Sequence[Offer], held: Collection[OfferId]
    ) -> tuple[Offer | None, int]:
        """The offer, and how many of it. What nobody counts of one's own is one computer: its CPUs are its seats, and a
        job has it once."""
        if not self._context.seller(listing.target).facts.counts_stock:
            return offer_of(listing), count
        own = next((offer for offer in offers if offer.id == listing.id), None)
        if own is None or own.free_machines is not None or own.free_gpus is not None:
            return own, count
        return (None, 0) if own.id in held else (own, 1)

    async def _rest(self, job: Job, spec: JobSpec) -> JobSpec:
        """With what is left of its budget; each of its tasks on one machine."""
        limits, store = spec.constraints, self._context.store
        spec = replace(spec, resources=replace(spec.resources, nodes=1))
        if limits.budget is None:
            return spec
        posted = (await store.job_costs([job.id])).get(job.id, MicroUsd(0))
        running = so_far(await store.open_usages_of([job.id]), self._context.clock.now())
        return replace(spec, constraints=replace(limits, budget=unspent(limits.budget, MicroUsd(posted + running))))

    async def _order(
        self, job: Job, number: int, placement: Placement, hazard_per_hour: float | None, claim: Claim
    ) -> None:
        context, now = self._context, self._context.clock.now()
        bare = Task(id=TaskId(context.ids.new("task")), job_id=job.id, index=number, created_at=now, kind=TaskKind.CREW)
        holds = TaskAdvanced(now, TaskPhase.RUNNING, None)
        holder = tasks.evolve(bare, holds)
        tree = TaskTree(job, holder, None, (), (), (), {})
        bought = buy(context, tree, placement, None, hazard_per_hour)
        changes = [
            Change(None, holder, (TaskCreated(now), holds)),
            *bought.changes,
        ]
        try:
            await context.store.commit(changes, label="cycle.place", claim=claim)
        except StaleVersion:
            return
        self._planner.look_again()
        context.tell(job.id, holder.id, changes)

    async def _explain(self, job: Job, reason: str, claim: Claim) -> None:
        """The first that waits says it for all of them."""
        context, now = self._context, self._context.clock.now()
        first = await context.store.seated(job.id, now, 1)
        changes = [
            one for task in first for one in changed(task, tasks.explained(task, reason, None, now), tasks.evolve)[1]
        ]
        try:
            if changes:
                await context.store.commit(changes, label="cycle.explain", claim=claim)
                context.tell_seated(job.id, ())
        except StaleVersion:
            pass

    # --- one crew --------------------------------------------------------------------------------------

    async def step(self, tree: TaskTree, claim: Claim) -> bool:
        """One look at one crew. True: something has changed."""
        context = self._context
        crews = await context.store.crews(tree.job.id)
        changes = crew.advance(tree, crew.busy_leases(crews), context.view(tree.job, tree.leases))
        if not changes:
            self._tell_users(tree, crews)
            return False
        await context.store.commit(changes, label="task.step", claim=claim)
        context.tell(tree.job.id, tree.task.id, changes)
        return True

    def _tell_users(self, tree: TaskTree, crews: Crews) -> None:
        """Tasks whose machine goes, or is silent, must look for themselves."""
        view = self._context.view(tree.job, tree.leases)
        fine = {lease.id for lease, _, _ in crew.usable(tree, view)}
        own = {lease.id for lease in tree.leases} - fine
        for attempt in crews.at_work:
            if own.intersection(attempt.leases):
                self._context.wakes.wake("task", attempt.task_id)


def is_resumed(job: Job, task: Task) -> bool:
    return task.attempts > 0 or job.lineage != job.id


def allocation(job: Job, spec: JobSpec, attempt: Attempt, seat: crew.Seat) -> Allocation:
    """Its share of the machine."""
    order, hours = seat.order, spec.resources.estimated_hours
    price = MicroUsd(order.price_per_hour // seat.of)
    return Allocation(
        job_id=job.id,
        task_id=attempt.task_id,
        attempt_id=attempt.id,
        order_id=order.id,
        target=order.target,
        instance_type=order.instance_type,
        count=1,
        is_spot=order.is_spot,
        price_per_hour=price,
        estimated_hours=hours,
        estimated_cost=MicroUsd(round(price * (hours or 0))),
        created_at=attempt.created_at,
    )
