"""The machines that a job holds for its tasks: which seats are free, who gets them, and which machines are given back.
A crew is one purchase; nothing of the user's runs in its own name. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from crucible.core import lease as leases
from crucible.core import task as tasks
from crucible.core.crew_plan import Held
from crucible.core.launch import share
from crucible.core.seats import seats
from crucible.core.step import View, is_ready, is_silent, observed, retire_nodes
from crucible.model.attempt import Attempt, Rank, RankState
from crucible.model.change import Change, changed
from crucible.model.ids import LeaseId, NodeId, OfferId
from crucible.model.job import Desired
from crucible.model.lease import Lease, LeasePhase, Node, Order
from crucible.model.spec import Resources
from crucible.model.task import TaskEnded, TaskPhase
from crucible.model.tree import Crews, TaskTree
from crucible.model.units import GIB, MicroUsd

OPEN = (LeasePhase.REQUESTED, LeasePhase.ACTIVE)


@dataclass(frozen=True, slots=True)
class Seat:
    """A place for one task on a machine that is there."""

    lease: Lease
    node: Node
    order: Order
    devices: tuple[str, ...]
    of: int  # seats of its machine

    def ranks(self, processes: int) -> tuple[Rank, ...]:
        """The members of a task that sits here."""
        return tuple(
            Rank(
                rank=number,
                node_id=self.node.id,
                node_rank=0,
                local_rank=number,
                devices=share(self.devices, number, processes),
                address=self.node.address,
                port=self.node.rendezvous_port,
            )
            for number in range(processes)
        )


# --- seats ------------------------------------------------------------------------------------------------


def seats_of(lease: Lease, node: Node | None, need: Resources) -> int:
    """Of one machine. What its node says of itself counts; before it is there, its GPUs do."""
    facts = {} if node is None else node.facts
    cpus = float(facts.get("cpus") or max(need.cpus, 1))
    memory_gib = float(facts.get("memory_bytes") or 0) / GIB or need.cpu_memory_gib
    return max(1, seats(need, lease.gpus, cpus, memory_gib))  # it was bought for one: vendors round their figures up


def free_seats(crews: Crews, need: Resources, view: View) -> list[Seat]:
    """In the order of machines, those that have the most tasks first: the others may become empty and go."""
    taken = devices_taken(crews.at_work)
    users = Counter(node_id for attempt in crews.at_work for node_id in {rank.node_id for rank in attempt.ranks})
    found: list[tuple[int, list[Seat]]] = []
    for tree in crews.trees:
        for lease, node, order in usable(tree, view):
            free = seats_of(lease, node, need) - users[node.id]
            found.append((users[node.id], on_machine(lease, node, order, need, free, taken[node.id])))
    found.sort(key=lambda each: -each[0])
    return [seat for _, machine in found for seat in machine]


def usable(tree: TaskTree, view: View) -> Iterable[tuple[Lease, Node, Order]]:
    nodes = {node.lease_id: node for node in tree.nodes}
    orders = {order.id: order for order in tree.orders}
    for lease in tree.leases:
        node, order = nodes.get(lease.id), orders.get(lease.order_id)
        if node is not None and order is not None and is_ready(lease) and not is_silent(node.id, tree, view):
            yield lease, node, order


def on_machine(lease: Lease, node: Node, order: Order, need: Resources, free: int, taken: set[str]) -> list[Seat]:
    left = [device for device in lease.devices if device not in taken]
    of = seats_of(lease, node, need)
    found = []
    for number in range(max(free, 0)):
        devices = tuple(left[number * need.gpus : (number + 1) * need.gpus])
        if len(devices) == need.gpus or not lease.devices:
            found.append(Seat(lease, node, order, devices, of))
    return found


def devices_taken(at_work: Iterable[Attempt]) -> dict[NodeId, set[str]]:
    taken: dict[NodeId, set[str]] = defaultdict(set)
    for attempt in at_work:
        for rank in attempt.ranks:
            if rank.state is not RankState.EXITED:
                taken[rank.node_id].update(rank.devices)
    return taken


def same_seat(tree: TaskTree, attempt: Attempt, need: Resources, view: View) -> Seat | None:
    """The seat of an attempt that is over, for the next task; None if its machine goes, or still runs something of
    it."""
    if any(rank.state is not RankState.EXITED or rank.is_evicted for rank in attempt.ranks) or not attempt.ranks:
        return None
    for lease, node, order in usable(tree, view):
        if lease.id in attempt.leases:
            devices = tuple(device for rank in attempt.ranks for device in rank.devices)
            return Seat(lease, node, order, devices, seats_of(lease, node, need))
    return None


def coming_seats(crews: Crews, need: Resources) -> int:
    """On machines that are ordered and whose agents have not come yet."""
    return sum(
        seats_of(lease, None, need)
        for tree in crews.trees
        for lease in tree.leases
        if lease.phase in OPEN and lease.node_id is None
    )


def held(crews: Crews, need: Resources) -> list[Held]:
    """The machines as the planner sees them: those that are still on their way count as busy."""
    busy, found = busy_leases(crews), dict[tuple[OfferId, MicroUsd], list[tuple[Lease, int]]]()
    for tree in crews.trees:
        nodes, orders = {node.lease_id: node for node in tree.nodes}, {order.id: order for order in tree.orders}
        for lease in tree.leases:
            if lease.phase in OPEN and lease.order_id in orders:
                size = seats_of(lease, nodes.get(lease.id), need)
                found.setdefault((orders[lease.order_id].offer, lease.price_per_hour), []).append((lease, size))
    return [
        Held(
            offer=offer,
            machines=len(machines),
            seats=min(size for _, size in machines),
            price=price,
            busy=sum(lease.id in busy or lease.node_id is None for lease, _ in machines),
        )
        for (offer, price), machines in found.items()
    ]


def surplus(crews: Crews, need: Resources, view: View, wanted: int) -> tuple[Lease, ...]:
    """Machines without a task that the `wanted` tasks which still wait have no use for; the dearest go first."""
    busy = busy_leases(crews)
    free = len(free_seats(crews, need, view)) + coming_seats(crews, need)
    idle = [
        (lease, next((node for node in tree.nodes if node.lease_id == lease.id), None))
        for tree in crews.trees
        for lease in tree.leases
        if lease.phase in OPEN and lease.id not in busy
    ]
    idle.sort(key=lambda each: (-each[0].price_per_hour, each[0].id))
    going: list[Lease] = []
    for lease, node in idle:
        has = seats_of(lease, node, need)
        if free - has >= wanted:
            free -= has
            going.append(lease)
    return tuple(going)


def busy_leases(crews: Crews) -> frozenset[LeaseId]:
    return frozenset(lease_id for attempt in crews.at_work for lease_id in attempt.leases)


# --- one look at one crew -------------------------------------------------------------------------------------


def advance(tree: TaskTree, busy: Collection[LeaseId], view: View) -> tuple[Change, ...]:
    """Everything that has become true about a crew by `view.now`."""
    changes: list[Change] = []
    for lease in tree.leases:
        reason = close_reason(lease, tree, busy, view)
        if reason is not None:
            changes += observed(lease, leases.CloseWanted(reason, False), view)
        elif view.now - view.watching_since >= view.policy.enrol_patience:
            changes += observed(lease, leases.TimePassed(view.last_words.get(lease.id)), view)
    return (*changes, *retire_nodes(tree, view), *disbanded(tree, view.now))


def close_reason(lease: Lease, tree: TaskTree, busy: Collection[LeaseId], view: View) -> str | None:
    """Why a machine is to be given back, or None to keep it. Who runs on it is stopped first, by its own task."""
    if lease.phase not in OPEN:
        return None
    if is_silent(lease.node_id, tree, view):
        return "the node fell silent"
    if lease.id in busy:
        return None
    if tree.job.status.is_terminal:
        return f"the job {tree.job.status}"
    if tree.job.desired is not Desired.RUN:
        return "the job is held" if tree.job.desired is Desired.HOLD else "the job is cancelled"
    return None


def disbanded(tree: TaskTree, now: datetime) -> tuple[Change, ...]:
    """A crew ends with the last of its machines."""
    settled = all(order.is_settled for order in tree.orders)
    if tree.task.phase.is_terminal or not settled or any(lease.phase is not LeasePhase.CLOSED for lease in tree.leases):
        return ()
    return changed(tree.task, [TaskEnded(now, TaskPhase.SUCCEEDED, None)], tasks.evolve)[1]


def given_back(gone: Sequence[Lease], view: View) -> tuple[Change, ...]:
    reason = leases.CloseWanted("no task of the job needs it", False)
    return tuple(change for lease in gone for change in observed(lease, reason, view))
