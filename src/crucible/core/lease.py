"""How orders, leases and nodes move. Absence is a suspicion, an unanswered call is not a failure, and a machine is ours
to pay for until its seller says that it is gone."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from crucible.model.ids import NodeId
from crucible.model.lease import (
    Lease,
    LeaseClosed,
    LeaseClosing,
    LeaseDeleteTried,
    LeaseEvent,
    LeasePhase,
    LeaseRequested,
    LeaseStarted,
    Machine,
    MachineMissed,
    MachineSeenAgain,
    MachineState,
    Node,
    NodeBound,
    NodeEnrolled,
    NodeEvent,
    NodePhase,
    NodeRetired,
    Order,
    OrderAbandoned,
    OrderCalled,
    OrderEvent,
    OrderFilled,
    OrderPhase,
    OrderPlaced,
    OrderPrepared,
    OrderRefused,
    OrderReopened,
    OrderUnanswered,
    SellerFacts,
)
from crucible.model.policy import Policy

# So many listings in a row must leave out a machine that is overdue: a bad one or two, after a time in which nobody
# could look, are no proof.
ABSENCES = 3

L = LeasePhase
O = OrderPhase  # noqa: E741


# --- observations of a lease ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    machine: Machine


@dataclass(frozen=True, slots=True)
class Absent:
    """The seller's listing does not show the lease's machine: the `times`-th in a row since it is overdue."""

    times: int = ABSENCES


@dataclass(frozen=True, slots=True)
class Refused:
    reason: str


@dataclass(frozen=True, slots=True)
class Enrolled:
    node_id: NodeId


@dataclass(frozen=True, slots=True)
class CloseWanted:
    reason: str
    was_taken: bool = False


@dataclass(frozen=True, slots=True)
class DeleteCalled:
    """Accepted or not, the listing decides; `problem` says what the seller answered, if it was not yes."""

    problem: str | None


@dataclass(frozen=True, slots=True)
class Unheard:
    """Nobody has heard the lease's node, or its machine if none ever enrolled, since `since`."""

    since: datetime


@dataclass(frozen=True, slots=True)
class TimePassed:
    said: str | None = None  # the last words of a machine whose agent has not reported


Observation = Found | Absent | Refused | Enrolled | CloseWanted | DeleteCalled | Unheard | TimePassed


def decide(
    lease: Lease, seen: Observation, now: datetime, policy: Policy, facts: SellerFacts
) -> tuple[LeaseEvent, ...]:
    """The facts that `seen` proves about `lease`."""
    match lease.phase, seen:
        case L.CLOSED, _:
            return ()
        case _, Found(machine):
            return found(lease, machine, now, facts)
        case _, Absent(times):
            return missed(lease, times, now, policy, facts)
        case _, Refused(reason) if lease.machine_id is None:
            return (LeaseClosed(now, reason),)
        case L.ACTIVE, Enrolled(node_id):
            return () if lease.node_id else (NodeBound(now, node_id),)
        case ((L.REQUESTED | L.ACTIVE), CloseWanted(reason, was_taken)):
            return (LeaseClosing(now, reason, now, was_taken),)
        case L.CLOSING, DeleteCalled(problem):
            tries = LeaseDeleteTried(now, problem or "waits until the seller shows it gone", now + pause(lease, policy))
            return (tries,)
        case L.CLOSING, Unheard(since) if is_fenced(since, now, policy, facts):
            return (LeaseClosed(now, "its machine could not be reached for so long that nothing runs there any more"),)
        case L.ACTIVE, TimePassed(said) if lease.deadline_at and now >= lease.deadline_at and not lease.node_id:
            return (LeaseClosing(now, f"its agent did not report in time{'; ' + said if said else ''}", now),)
        case _:
            return ()


def found(lease: Lease, machine: Machine, now: datetime, facts: SellerFacts) -> tuple[LeaseEvent, ...]:
    if machine.state is MachineState.GONE:
        return (LeaseClosed(now, machine.reason or "the machine ended", machine.was_taken),)
    if lease.machine_id is None:
        # Where whole machines are sold nobody names their GPUs: they are all there, counted from nothing.
        devices = machine.devices or tuple(str(index) for index in range(lease.gpus))
        return (LeaseStarted(now, machine.id, devices, now + facts.boot_time),)
    return () if lease.missing_since is None else (MachineSeenAgain(now),)


def missed(lease: Lease, times: int, now: datetime, policy: Policy, facts: SellerFacts) -> tuple[LeaseEvent, ...]:
    """A lease without a machine cannot miss it: its order decides. A machine must be missing long enough, and then once
    more in every listing."""
    if lease.machine_id is None:
        return ()
    if lease.missing_since is None:
        return (MachineMissed(now),)
    if times >= ABSENCES and is_overdue(lease, now, policy, facts):
        return (LeaseClosed(now, "the machine is gone from the seller's listing", lease.phase is L.ACTIVE),)
    return ()


def is_overdue(lease: Lease, now: datetime, policy: Policy, facts: SellerFacts) -> bool:
    """Its machine has been missing for longer than any listing lags."""
    since = lease.missing_since
    return since is not None and now - since >= policy.absence_grace + facts.visibility


def is_fenced(since: datetime, now: datetime, policy: Policy, facts: SellerFacts) -> bool:
    """A node that has heard nobody since then has ended its ranks by itself. Its machine, if it is found again, belongs
    to no lease and is removed."""
    return facts.fence is not None and now - since > facts.fence + policy.stop_grace + policy.fence_margin


def pause(lease: Lease, policy: Policy) -> timedelta:
    """Deleting is tried for ever, ever more slowly: a machine that lives costs money."""
    longer: timedelta = policy.delete_retry * 2.0 ** min(lease.delete_tries, 16)
    return min(longer, policy.delete_retry_max)


def owes_delete(lease: Lease, now: datetime, policy: Policy) -> bool:
    """Due, or put off for longer than ever: then the clock was set back meanwhile."""
    if lease.phase is not L.CLOSING or lease.machine_id is None:
        return False
    return lease.deadline_at is None or not now < lease.deadline_at <= now + policy.delete_retry_max


def evolve(lease: Lease, event: LeaseEvent) -> Lease:
    """Fold one fact into the state."""
    lease = replace(lease, version=lease.version + 1)
    match event:
        case LeaseRequested():
            return lease
        case LeaseStarted():
            return replace(
                lease,
                phase=L.ACTIVE if lease.phase is L.REQUESTED else lease.phase,
                machine_id=event.machine_id,
                devices=event.devices,
                started_at=event.at,
                deadline_at=event.deadline_at if lease.phase is not L.CLOSING else lease.deadline_at,
            )
        case NodeBound(node_id=node_id):
            return replace(lease, node_id=node_id, deadline_at=None)
        case MachineMissed(at=at):
            return replace(lease, missing_since=at)
        case MachineSeenAgain():
            return replace(lease, missing_since=None)
        case LeaseClosing(reason=reason, deadline_at=deadline_at, was_taken=was_taken):
            return replace(lease, phase=L.CLOSING, reason=reason, deadline_at=deadline_at, was_taken=was_taken)
        case LeaseDeleteTried(deadline_at=deadline_at):
            return replace(lease, delete_tries=lease.delete_tries + 1, deadline_at=deadline_at)
        case LeaseClosed(at=at, reason=reason):
            return replace(
                lease,
                phase=L.CLOSED,
                reason=lease.reason or reason,
                ended_at=at,
                deadline_at=None,
                was_taken=lease.was_taken or event.was_taken,
            )
        case _:
            assert_never(event)


# --- orders -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answered:
    """The seller returned the machines."""


@dataclass(frozen=True, slots=True)
class Denied:
    reason: str
    code: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    reason: str


@dataclass(frozen=True, slots=True)
class Listed:
    """How many machines of this order the seller lists, by a listing begun at `at`."""

    machines: int
    at: datetime


@dataclass(frozen=True, slots=True)
class NotWanted:
    """Every lease of the order has been given up."""


OrderObservation = Answered | Denied | Unanswered | Listed | NotWanted


def decide_order(
    order: Order, seen: OrderObservation, now: datetime, policy: Policy, facts: SellerFacts
) -> tuple[OrderEvent, ...]:
    """The facts that `seen` proves about `order`."""
    if order.is_settled:
        return ()
    match seen:
        case Answered():
            return (OrderFilled(now),)
        case Denied(reason, code):
            return (OrderRefused(now, reason, code),)
        case Unanswered(reason):
            return () if order.phase is O.UNKNOWN and order.reason == reason else (OrderUnanswered(now, reason),)
        case Listed(machines) if machines >= order.count:
            return (OrderFilled(now),)
        case Listed(machines, at) if machines == 0 and order.phase is O.UNKNOWN and cannot_appear(order, at, facts):
            return (OrderReopened(now),)
        case NotWanted() if order.phase is O.PENDING:
            return (OrderAbandoned(now, "no longer wanted"),)
        case NotWanted() if order.called_at is None or cannot_appear(order, now, facts):
            return (OrderAbandoned(now, "no longer wanted"),)
        case _:
            return ()


def cannot_appear(order: Order, listed_at: datetime, facts: SellerFacts) -> bool:
    """A machine of the last call would have shown up in a listing begun then."""
    return order.called_at is not None and listed_at - order.called_at > facts.visibility


def owes_create(order: Order, leases: tuple[Lease, ...], facts: SellerFacts) -> bool:
    """May the purchase call be made now? With a token it may be repeated; without one only from PENDING."""
    if order.is_settled or not any(lease.phase is L.REQUESTED for lease in leases):
        return False
    return order.phase is O.PENDING or facts.idempotent_create


def conclusion(leases: tuple[Lease, ...]) -> Answered | NotWanted | None:
    """What the leases of an order tell about it when no call is owed; None: its answer is still awaited."""
    if all(lease.machine_id is not None for lease in leases):
        return Answered()
    return None if any(lease.phase is L.REQUESTED for lease in leases) else NotWanted()


def evolve_order(order: Order, event: OrderEvent) -> Order:
    """Fold one fact into the state."""
    order = replace(order, version=order.version + 1)
    match event:
        case OrderPlaced():
            return order
        case OrderPrepared(body=body):
            return replace(order, body=body)
        case OrderCalled(at=at):
            # Whoever made the call may die before the answer: until it is known, the seller may have acted.
            return replace(order, phase=O.UNKNOWN, called_at=at)
        case OrderUnanswered(at=at, reason=reason):
            return replace(order, phase=O.UNKNOWN, reason=reason, called_at=at)
        case OrderReopened():
            return replace(order, phase=O.PENDING, reason=None)
        case OrderFilled():
            return replace(order, phase=O.FILLED, reason=None)
        case OrderRefused(reason=reason):
            return replace(order, phase=O.REFUSED, reason=reason)
        case OrderAbandoned(reason=reason):
            return replace(order, phase=O.ABANDONED, reason=reason)
        case _:
            assert_never(event)


# --- nodes ------------------------------------------------------------------------------------------


def retired(node: Node, reason: str, now: datetime) -> tuple[NodeEvent, ...]:
    return () if node.phase is NodePhase.RETIRED else (NodeRetired(now, reason),)


def evolve_node(node: Node, event: NodeEvent) -> Node:
    """Fold one fact into the state."""
    node = replace(node, version=node.version + 1)
    match event:
        case NodeEnrolled():
            return node
        case NodeRetired():
            return replace(node, phase=NodePhase.RETIRED)
        case _:
            assert_never(event)
