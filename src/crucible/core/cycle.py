"""Give waiting tasks a place: machines they hold already, then what was planned for them, else the cheapest of what
sellers count themselves. Pure: the same snapshot gives the same plan; ties are broken by id."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from crucible.model.ids import JobId, LeaseId, OfferId, TaskId
from crucible.model.offer import Market, Offer
from crucible.model.quota import Measure, Quota
from crucible.model.spec import JobSpec, Resources
from crucible.model.tree import TaskTree

ANY_GPU = "slot"  # a declared slot stands for whatever GPU a job asks for


@dataclass(frozen=True, slots=True)
class Shape:
    """The gang: so many machines with so many GPUs each."""

    nodes: int
    gpus_per_node: int


@dataclass(frozen=True, slots=True)
class Purchase:
    """What was planned: so many machines of an offer that nobody counts."""

    offer: Offer
    zone: str
    nodes: int
    hazard_per_hour: float | None = None  # of one machine; None: it cannot be taken away


@dataclass(frozen=True, slots=True)
class Want:
    """One waiting task. `held` are leases it may use again; without a `purchase` it takes what is counted."""

    task_id: TaskId
    spec: JobSpec
    held: tuple[LeaseId, ...] = ()
    purchase: Purchase | None = None
    why_not: str | None = None  # nothing can be bought for it now
    gang: Shape | None = None  # of what it holds, if that is a whole gang; else as its spec says
    zone: str | None = None  # where the rest of its gang stands; None: anywhere


@dataclass(frozen=True, slots=True)
class Placement:
    task_id: TaskId
    shape: Shape
    reuse: tuple[LeaseId, ...]
    offer: Offer | None  # what to buy for the rest; None if nothing is to be bought
    count: int
    zone: str = ""


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why an offer lost. `is_temporary`: it fits, but is sold out now."""

    offer: Offer
    reason: str
    is_temporary: bool


@dataclass(frozen=True, slots=True)
class Unplaced:
    task_id: TaskId
    reason: str
    rejections: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    placements: tuple[Placement, ...]
    unplaced: tuple[Unplaced, ...]


def plan(wants: Sequence[Want], offers: Sequence[Offer]) -> Plan:
    """In the order given; each placement takes its GPUs from the stock before the next is looked at."""
    free = free_gpus(offers)
    machines = {offer.id: offer.free_machines for offer in offers if offer.free_machines is not None}
    placements: list[Placement] = []
    unplaced: list[Unplaced] = []
    for want in wants:
        found = place(want, [sized(offer, machines) for offer in offers], free)
        if isinstance(found, Unplaced):
            unplaced.append(found)
            continue
        placements.append(found)
        if found.offer is not None and found.offer.stock in free:
            free[found.offer.stock] -= found.count * found.offer.gpus
        if found.offer is not None:
            take(machines, found.offer, found.count, offers)
    return Plan(tuple(placements), tuple(unplaced))


def free_gpus(offers: Sequence[Offer]) -> dict[str, int]:
    """Per stock."""
    return {offer.stock: offer.free_gpus for offer in offers if offer.stock and offer.free_gpus is not None}


def sized(offer: Offer, machines: dict[OfferId, int]) -> Offer:
    return replace(offer, free_machines=machines[offer.id]) if offer.id in machines else offer


def take(machines: dict[OfferId, int], sold: Offer, count: int, offers: Sequence[Offer]) -> None:
    """Offers of one zone may share hosts: what is sold of one is taken from all. The next look counts exactly."""
    for other in offers:
        if other.id in machines and (other.target, other.zone) == (sold.target, sold.zone):
            machines[other.id] = max(0, machines[other.id] - count)


def left(offers: Sequence[Offer], made: Plan) -> list[Offer]:
    """What is offered once `made` has been bought."""
    sold: Counter[str] = Counter()
    for placement in made.placements:
        if placement.offer is not None and placement.offer.stock is not None:
            sold[placement.offer.stock] += placement.count * placement.offer.gpus
    machines = {offer.id: offer.free_machines for offer in offers if offer.free_machines is not None}
    for placement in made.placements:
        if placement.offer is not None:
            take(machines, placement.offer, placement.count, offers)
    return [
        sized(offer, machines)
        if offer.free_gpus is None or offer.stock is None
        else replace(offer, free_gpus=offer.free_gpus - sold[offer.stock])
        for offer in offers
    ]


def place(want: Want, offers: Sequence[Offer], free: dict[str, int]) -> Placement | Unplaced:
    if want.purchase is not None:
        return bought(want, want.purchase)
    if want.why_not is not None:
        return Unplaced(want.task_id, want.why_not, ())
    gang = want.gang or shape(want.spec.resources)
    reuse = want.held[: gang.nodes]
    missing = gang.nodes - len(reuse)
    if missing == 0:
        return Placement(want.task_id, gang, reuse, None, 0)
    rejections = [reject(want.spec, gang, missing, offer, free, want.zone) for offer in offers]
    fitting = [offer for offer, no in zip(offers, rejections, strict=True) if no is None]
    if fitting:
        best = min(fitting, key=preference)
        return Placement(want.task_id, gang, reuse, best, missing, best.zone)
    reasons = tuple(no for no in rejections if no is not None)
    return Unplaced(want.task_id, why_not(reasons, gang), reasons)


def bought(want: Want, planned: Purchase) -> Placement:
    reuse = want.held[: planned.nodes]
    return Placement(
        want.task_id,
        Shape(planned.nodes, planned.offer.gpus),
        reuse,
        planned.offer if len(reuse) < planned.nodes else None,
        planned.nodes - len(reuse),
        planned.zone,
    )


def shape(resources: Resources) -> Shape:
    """How many machines, and how many GPUs on each: as few machines as the limit per node allows."""
    if resources.nodes is not None:
        return Shape(resources.nodes, ceil(resources.gpus / resources.nodes))
    most = resources.max_gpus_per_node or max(resources.gpus, 1)
    nodes = max(1, ceil(resources.gpus / most))
    if resources.requires_multi_node:
        nodes = max(nodes, 2)
    return Shape(nodes, ceil(resources.gpus / nodes))


def reject(
    spec: JobSpec, gang: Shape, count: int, offer: Offer, free: dict[str, int], zone: str | None = None
) -> Rejection | None:
    reason = misfit(spec, gang, offer)
    if reason is not None:
        return Rejection(offer, reason, is_temporary=False)
    if zone is not None and offer.zone != zone:
        return Rejection(offer, f"stands in {offer.zone}, the rest of the gang in {zone}", is_temporary=False)
    if offer.free_machines is not None and offer.free_machines < count:
        never = offer.all_machines is not None and offer.all_machines < gang.nodes
        had = f"{offer.all_machines} in all" if never else f"{offer.free_machines} free"
        return Rejection(offer, f"needs {count} machines, there are {had}", is_temporary=not never)
    left = free.get(offer.stock) if offer.stock else None
    if left is not None and left < count * offer.gpus:
        return Rejection(offer, f"needs {count * offer.gpus} free GPUs, {left} are free", is_temporary=True)
    return None


def misfit(spec: JobSpec, gang: Shape, offer: Offer) -> str | None:
    """Why the gang cannot run on `offer` at all, or None if it can."""
    need = spec.resources
    wanted = spec.constraints.providers or tuple(filter(None, (spec.execution.executor,)))
    if wanted and offer.target.provider not in wanted:
        return f"only {', '.join(wanted)} is asked for"
    if spec.execution.backend not in (None, offer.target.backend):
        return f"needs backend {spec.execution.backend}, it starts work by {offer.target.backend}"
    if offer.gpus != gang.gpus_per_node:
        return f"needs {gang.gpus_per_node} GPUs per machine, it has {offer.gpus}"
    if need.gpu_types and offer.gpus and offer.gpu != ANY_GPU and offer.gpu not in need.gpu_types:
        return f"needs {' or '.join(need.gpu_types)}, it has {offer.gpu}"
    if offer.gpus and offer.gpu_memory_gib < need.gpu_memory_gib:
        return f"needs {need.gpu_memory_gib:g} GB per GPU, it has {offer.gpu_memory_gib:g}"
    if offer.memory_gib < need.cpu_memory_gib:
        return f"needs {need.cpu_memory_gib:g} GB of memory, it has {offer.memory_gib:g}"
    if offer.cpus < need.cpus:
        return f"needs {need.cpus} CPUs, it has {offer.cpus}"
    return None


def preference(offer: Offer) -> tuple[int, int, str]:
    """Cheapest first, then the smallest; the id breaks ties so that plans are reproducible."""
    return offer.price_per_hour, offer.gpus, offer.id


def why_not(rejections: Sequence[Rejection], gang: Shape) -> str:
    """For a person: the nearest miss."""
    if not rejections:
        return "nothing is for sale: no provider is enabled"
    nearest = min(rejections, key=lambda r: (not r.is_temporary, r.offer.gpus != gang.gpus_per_node, r.offer.id))
    where = nearest.offer.target.provider
    return f"{'waits: ' if nearest.is_temporary else ''}{nearest.reason} ({where})"


def within(trees: Sequence[TaskTree], room: Mapping[JobId, int]) -> list[TaskTree]:
    """The first ones of each job, as many as there is room for; a job that is not named has no limit."""
    left_over, kept = dict(room), list[TaskTree]()
    for tree in trees:
        left_over[tree.job.id] = left_over.get(tree.job.id, len(trees)) - 1
        if left_over[tree.job.id] >= 0:
            kept.append(tree)
    return kept


def within_quotas(made: Plan, quotas: Sequence[Quota]) -> Plan:
    """Each purchase was planned as if it were alone: those that pass a quota together with the ones before them wait
    for the next plan, which knows what is in use by then."""
    left_of = {quota: quota.left for quota in quotas}
    kept: list[Placement] = []
    waiting = list(made.unplaced)
    for placement in made.placements:
        draws = {quota: drawn(quota, placement) for quota in quotas}
        passed = next((quota for quota, draw in draws.items() if draw > left_of[quota]), None)
        if passed is not None:
            waiting.append(Unplaced(placement.task_id, f"waits: others are using up the quota {passed}", ()))
            continue
        left_of = {quota: left_of[quota] - draw for quota, draw in draws.items()}
        kept.append(placement)
    return Plan(tuple(kept), tuple(waiting))


def without(made: Plan, refused: Mapping[TaskId, str]) -> Plan:
    """The same, but for these: they wait, and why is said."""
    waiting = [Unplaced(task_id, reason, ()) for task_id, reason in refused.items()]
    kept = tuple(placement for placement in made.placements if placement.task_id not in refused)
    return Plan(kept, (*made.unplaced, *waiting))


def drawn(quota: Quota, placement: Placement) -> int:
    """What a purchase takes of it."""
    offer = placement.offer
    if offer is None or not placement.count:
        return 0
    market = Market.SPOT if offer.is_spot else Market.ON_DEMAND
    if not quota.holds_for(offer.target.provider, offer.target.region, market, offer.instance_type):
        return 0
    each = {Measure.MACHINES: 1, Measure.GPUS: offer.gpus, Measure.CPUS: offer.cpus}
    return placement.count * each[quota.measure]
