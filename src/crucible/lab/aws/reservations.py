"""Capacity reservations: places that are paid for, used or not."""

from typing import Any

from crucible.lab.aws import tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler, moment
from crucible.lab.aws.errors import AwsError, beyond_the_lab, invalid, missing
from crucible.lab.aws.launching import fingerprint
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.refusals import refusal
from crucible.lab.faults import FaultKind
from crucible.world.facts import Market
from crucible.world.machine import Launch, Refused, RefusedBy, Reservation

PLATFORM = "Linux/UNIX"
_KNOWN = frozenset(
    [
        "AvailabilityZone",
        "AvailabilityZoneId",
        "ClientToken",
        "DryRun",
        "EbsOptimized",
        "EndDateType",
        "EphemeralStorage",
        "InstanceCount",
        "InstanceMatchCriteria",
        "InstancePlatform",
        "InstanceType",
        "TagSpecifications",
        "Tenancy",
    ]
)


def create_capacity_reservation(call: Call) -> dict[str, Any]:
    values = call.values
    zone = _zone(call)
    tagged = tags.specified(values, ("capacity-reservation",)).get("capacity-reservation", {})
    try:
        _refuse_by_fault(call)
        held = call.world.reserve(
            call.account,
            zone,
            values["InstanceType"],
            values["InstanceCount"],
            call.now,
            tags=tagged,
            token=values.get("ClientToken") or None,
            fingerprint=fingerprint(values),
        )
    except Refused as refused:
        raise refusal(call, _as_launch(call, zone), refused) from None
    if values.get("InstanceMatchCriteria", "open") == "open":
        call.office.open_reservations.add(held.id)
    return {"CapacityReservation": _shown(call, held)}


def describe_capacity_reservations(call: Call) -> dict[str, Any]:
    wanted = call.values.get("CapacityReservationIds")
    held = [_held(call, id) for id in wanted] if wanted else call.world.reservations(call.account, call.region)
    listing = _listing(call)
    found = listing.matching(held, call.values.get("Filters", []))
    shown, token = listing.page(found, call.values, "CapacityReservationIds")
    reservations = [_shown(call, one) for one in shown]
    return {"CapacityReservations": reservations} | ({"NextToken": token} if token else {})


def cancel_capacity_reservation(call: Call) -> dict[str, Any]:
    held = _held(call, call.values["CapacityReservationId"])
    if held.ended_at is not None:
        raise AwsError("InvalidState", f"The capacity reservation {held.id} is cancelled already.")
    call.world.cancel_reservation(call.account, held.id, call.now)
    return {"Return": True}


def _zone(call: Call) -> str:
    values = call.values
    for name in values:
        if name not in _KNOWN:
            beyond_the_lab(f"{name} of CreateCapacityReservation")
    if values["InstancePlatform"] != PLATFORM or values.get("Tenancy", "default") != "default":
        beyond_the_lab("capacity reservations other than for Linux with default tenancy")
    if values.get("EndDateType", "unlimited") != "unlimited":
        beyond_the_lab("capacity reservations that end by themselves")
    if values["InstanceCount"] < 1:
        invalid("The instance count must be a positive integer.")
    name = values.get("AvailabilityZone") or values.get("AvailabilityZoneId") or missing("AvailabilityZone")
    zone = call.places.zone(call.region, name).name
    call.places.check_sold(call.region, values["InstanceType"], zone)
    return zone


def _refuse_by_fault(call: Call) -> None:
    if call.has(FaultKind.NO_CAPACITY):
        raise Refused(RefusedBy.CAPACITY, "so it was wished")
    if call.has(FaultKind.QUOTA):
        raise Refused(RefusedBy.QUOTA, "so it was wished")


def _as_launch(call: Call, zone: str) -> Launch:
    """The purchase that a refusal is worded for."""
    count = call.values["InstanceCount"]
    return Launch(
        account=call.account,
        region=call.region,
        zone=zone,
        type=call.values["InstanceType"],
        market=Market.ON_DEMAND,
        least=count,
        most=count,
    )


def _held(call: Call, id: str) -> Reservation:
    for held in call.world.reservations(call.account, call.region):
        if held.id == id:
            return held
    raise absent("cr", id)


def _state(held: Reservation) -> str:
    return "active" if held.ended_at is None else "cancelled"


def _criteria(call: Call, held: Reservation) -> str:
    return "open" if held.id in call.office.open_reservations else "targeted"


def _shown(call: Call, held: Reservation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "CapacityReservationId": held.id,
        "OwnerId": held.account,
        "CapacityReservationArn": f"arn:aws:ec2:{held.region}:{held.account}:capacity-reservation/{held.id}",
        "AvailabilityZoneId": call.places.zone_of(held.zone).id,
        "AvailabilityZone": held.zone,
        "InstanceType": held.type,
        "InstancePlatform": PLATFORM,
        "Tenancy": "default",
        "TotalInstanceCount": held.count if held.ended_at is None else 0,
        "AvailableInstanceCount": max(call.world.unused(held.id), 0),
        "EbsOptimized": False,
        "EphemeralStorage": False,
        "State": _state(held),
        "StartDate": moment(held.created_at),
        "EndDateType": "unlimited",
        "InstanceMatchCriteria": _criteria(call, held),
        "CreateDate": moment(held.created_at),
        "Tags": tags.shown(held.tags),
    }
    return shown | ({"EndDate": moment(held.ended_at)} if held.ended_at is not None else {})


def _listing(call: Call) -> Listing[Reservation]:
    return Listing(
        key=lambda held: held.id,
        tags=lambda held: held.tags,
        smallest_page=1,
        filters={
            "availability-zone": lambda held: [held.zone],
            "instance-type": lambda held: [held.type],
            "instance-match-criteria": lambda held: [_criteria(call, held)],
            "owner-id": lambda held: [held.account],
            "state": lambda held: [_state(held)],
        },
    )


OPERATIONS: dict[str, Handler] = {
    "CreateCapacityReservation": create_capacity_reservation,
    "DescribeCapacityReservations": describe_capacity_reservations,
    "CancelCapacityReservation": cancel_capacity_reservation,
}
