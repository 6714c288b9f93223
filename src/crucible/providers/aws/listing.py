"""EC2's description of an instance as one of our machines. Pure: dictionaries in, values out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Machine, MachineState
from crucible.model.ledger import PriceSince
from crucible.model.units import NOTHING
from crucible.providers.aws import tags as tagging

# Nothing else can be an instance, so nothing else is ever asked for.
MACHINE_ID = re.compile(r"i-(?:[0-9a-f]{8}|[0-9a-f]{17})")

STATES = {
    "pending": MachineState.STARTING,
    "running": MachineState.RUNNING,
    "shutting-down": MachineState.STOPPING,
    "stopping": MachineState.STOPPING,
    "stopped": MachineState.STOPPING,
    "terminated": MachineState.GONE,
}
TAKEN = ("Server.SpotInstanceTermination", "Server.SpotInstanceShutdown")
REASONS = {
    "Server.SpotInstanceTermination": "AWS took the spot machine back",
    "Server.SpotInstanceShutdown": "AWS took the spot machine back",
    "Server.InsufficientInstanceCapacity": "AWS had no capacity to start it",
    "Server.InternalError": "AWS failed to start or keep it (internal error)",
    "Server.ScheduledStop": "AWS stopped it: its host is retired",
    "Client.UserInitiatedShutdown": "it was deleted",
    "Client.InstanceInitiatedShutdown": "it switched itself off",
    "Client.InstanceTerminated": "it was deleted",
    "Client.InternalError": "it could not start: its disk cannot be used (check the rights on its encryption key)",
    "Client.VolumeLimitExceeded": "it could not start: the account's limit of disk space is reached",
    "Client.InvalidSnapshot.NotFound": "it could not start: the snapshot of its image is gone",
}
_WHEN = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")

Instance = Mapping[str, Any]
Pair = tuple[str, str]  # zone and type: what a spot price is for


def instances(reservations: Sequence[Mapping[str, Any]]) -> Iterator[tuple[OrderId, Instance]]:
    """Those that carry an order's tag; whatever else there is, is not ours."""
    for reservation in reservations:
        for instance in reservation.get("Instances", ()):
            order = tagging.order_id(tagging.read(instance))
            if order is not None:
                yield order, instance


def machine(instance: Instance, order: OrderId, prices: Sequence[PriceSince] = ()) -> Machine:
    """`prices` of the spot market, since the machine's start."""
    state = STATES[instance["State"]["Name"]]
    return Machine(
        id=MachineId(instance["InstanceId"]),
        order_id=order,
        index=int(instance.get("AmiLaunchIndex", 0)),
        state=state,
        address=instance.get("PrivateIpAddress"),
        reason=reason(instance) if state is MachineState.GONE else None,
        started_at=started_at(instance),
        ended_at=ended_at(instance),
        was_taken=is_spot(instance) and code(instance) in TAKEN,
        prices=tuple(prices) if is_spot(instance) else reserved(instance),
        extras=tagging.rates(tagging.read(instance)),
    )


def is_spot(instance: Instance) -> bool:
    return bool(instance.get("InstanceLifecycle") == "spot")


def pair(instance: Instance) -> Pair:
    return instance["Placement"]["AvailabilityZone"], instance["InstanceType"]


def started_at(instance: Instance) -> datetime:
    return whole_second(instance["LaunchTime"])


def ended_at(instance: Instance) -> datetime | None:
    """Amazon tells it in brackets: "User initiated (2026-11-16 06:07:08 GMT)"; before the end that is only when it was
    asked for."""
    if instance["State"]["Name"] != "terminated":
        return None
    found = _WHEN.search(instance.get("StateTransitionReason") or "")
    return datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC) if found else None


def reserved(instance: Instance) -> tuple[PriceSince, ...]:
    """A machine on a capacity reservation costs nothing: the reservation does, used or not."""
    return (PriceSince(started_at(instance), NOTHING),) if instance.get("CapacityReservationId") else ()


def reason(instance: Instance) -> str:
    said = instance.get("StateReason") or {}
    known = REASONS.get(said.get("Code", ""))
    return known or said.get("Message") or instance.get("StateTransitionReason") or "it has ended"


def code(instance: Instance) -> str:
    return str((instance.get("StateReason") or {}).get("Code", ""))


def whole_second(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)
