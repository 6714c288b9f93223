"""What a purchase writes down before anything is bought: one order, a lease for each machine, and the price as it is
now."""

from collections.abc import Sequence
from dataclasses import dataclass

from crucible.core import job as jobs
from crucible.core.billables import price_of
from crucible.core.budget import Shortage
from crucible.core.cycle import Placement
from crucible.engine.context import Context
from crucible.engine.purse import Purse
from crucible.model.change import Change, born, changed
from crucible.model.errors import InvariantBroken
from crucible.model.ids import AttemptId, LeaseId, OrderId
from crucible.model.job import Job, JobAllocated
from crucible.model.lease import Lease, LeasePhase, LeaseRequested, Order, OrderPlaced
from crucible.model.offer import Offer, Target
from crucible.model.record import Allocation
from crucible.model.tree import TaskTree
from crucible.model.units import MicroUsd


@dataclass(frozen=True, slots=True)
class Bought:
    """To be committed with whatever uses the machines."""

    changes: Sequence[Change] = ()
    records: tuple[Allocation, ...] = ()

    @property
    def leases(self) -> tuple[LeaseId, ...]:
        return tuple(change.after.id for change in self.changes if isinstance(change.after, Lease))


async def funded(context: Context, purse: Purse, job: Job, placement: Placement) -> Shortage | None:
    """Before anything is written: whether every budget of the job can pay for it, to the end that it may come to."""
    offer = placement.offer
    if offer is None or not placement.count:
        return None
    facts = context.seller(offer.target).facts
    most = offer.on_demand_per_hour if offer.is_spot else None
    price = price_of(placement.count, offer.price_per_hour, most, facts, context.policy)
    return await purse.pay(job, price)


def buy(
    context: Context, tree: TaskTree, placement: Placement, attempt_id: AttemptId | None, hazard_per_hour: float | None
) -> Bought:
    """For an attempt, or for a crew: whoever gets a seat of it has an allocation of his own."""
    if placement.offer is None:
        raise InvariantBroken("a placement without an offer buys nothing")
    now, offer = context.clock.now(), placement.offer
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
        hazard_per_hour=hazard_per_hour,
        gpu=offer.gpu,
        on_demand_per_hour=offer.on_demand_per_hour if offer.is_spot else offer.price_per_hour,
    )
    leases = [lease_of(context, order, index) for index in range(placement.count)]
    changes = [born(order, OrderPlaced(now)), *(born(lease, LeaseRequested(now)) for lease in leases)]
    records = () if attempt_id is None else (allocation_of(context, tree, order, attempt_id),)
    return Bought(changes, records)


def allocated(context: Context, job: Job, offer: Offer, nodes: int) -> tuple[Change, ...]:
    """The job shows where it went; saying the same again is no news."""
    target = offer.target
    event = JobAllocated(
        context.clock.now(),
        target.provider,
        target.region,
        target.backend,
        offer.instance_type,
        nodes,
        offer.is_spot,
    )
    selected = Target(job.selected_provider or "", job.selected_region or "", job.selected_backend or "")
    machines = job.selected_instance_type, job.selected_count, job.selected_spot
    if selected == target and machines == (offer.instance_type, nodes, offer.is_spot):
        return ()
    return changed(job, [event], jobs.evolve)[1]


def lease_of(context: Context, order: Order, index: int) -> Lease:
    return Lease(
        id=LeaseId(context.ids.new("lease")),
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


def allocation_of(context: Context, tree: TaskTree, order: Order, attempt_id: AttemptId) -> Allocation:
    hours = context.spec_of(tree.job).resources.estimated_hours
    return Allocation(
        job_id=order.job_id,
        task_id=order.task_id,
        attempt_id=attempt_id,
        order_id=order.id,
        target=order.target,
        instance_type=order.instance_type,
        count=order.count,
        is_spot=order.is_spot,
        price_per_hour=order.price_per_hour,
        estimated_hours=hours,
        estimated_cost=MicroUsd(round(order.price_per_hour * order.count * (hours or 0))),
        created_at=order.created_at,
    )
