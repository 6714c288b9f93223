"""The spot market: requests with their status codes, and recorded prices. Requests come into being with their instance:
the world grants them at once or refuses the purchase."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from crucible.lab.aws import instance_view as view
from crucible.lab.aws import tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler, moment
from crucible.lab.aws.errors import AwsError, beyond_the_lab
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.money import dollars
from crucible.world.facts import PricePoint
from crucible.world.machine import End, Machine, State

PRODUCT = "Linux/UNIX"
LONGEST_HISTORY = 90 * 24 * 3600

_WORDS = {
    "fulfilled": "Your spot request is fulfilled.",
    "marked-for-termination": "Your Spot Instance is marked for termination.",
    "instance-terminated-by-price": "Your Spot Instance was terminated because your Spot request price was lower than "
    "required Spot request fulfillment price.",
    "instance-terminated-no-capacity": "Your Spot Instance was terminated because there was no longer any Spot "
    "capacity available.",
    "request-canceled-and-instance-running": "Your spot request is canceled, but your instance is still running.",
    "instance-terminated-by-user": "Spot Instance terminated due to user-initiated termination.",
}


def describe_spot_instance_requests(call: Call) -> dict[str, Any]:
    listing = _requests(call)
    machines = _by_request(call)
    wanted = call.values.get("SpotInstanceRequestIds")
    found = [_found(machines, id) for id in wanted] if wanted else list(machines.values())
    found = listing.matching(found, call.values.get("Filters", []))
    shown, token = listing.page(found, call.values, "SpotInstanceRequestIds")
    requests = [_request(call, machine) for machine in shown]
    return {"SpotInstanceRequests": requests} | ({"NextToken": token} if token else {})


def cancel_spot_instance_requests(call: Call) -> dict[str, Any]:
    """Instances stay: they must be terminated."""
    machines = _by_request(call)
    found = [_found(machines, id) for id in call.values["SpotInstanceRequestIds"]]
    call.office.cancelled_requests.update(machine.request_id or "" for machine in found)
    return {
        "CancelledSpotInstanceRequests": [
            {
                "SpotInstanceRequestId": machine.request_id,
                "State": "cancelled" if machine.end is None else "completed",
            }
            for machine in found
        ]
    }


def describe_spot_price_history(call: Call) -> dict[str, Any]:
    """Newest first; of each pool also the price that was in force when the asked time began."""
    values = call.values
    end = min(values["EndTime"].timestamp(), call.now) if "EndTime" in values else call.now
    start = values["StartTime"].timestamp() if "StartTime" in values else end - LONGEST_HISTORY
    start = max(start, call.now - LONGEST_HISTORY)
    wanted = values.get("ProductDescriptions", [PRODUCT])
    is_sold = any(product in (PRODUCT, f"{PRODUCT} (Amazon VPC)") for product in wanted)
    points = call.world.spot_history(call.region, values.get("InstanceTypes", []), min(start, end), end)
    found = [point for point in points if _is_in(call, point)] if is_sold else []
    found = _HISTORY.matching(found, values.get("Filters", []))
    shown, token = _HISTORY.page(found, values)
    return {"SpotPriceHistory": [_price(call, *point) for point in shown], "NextToken": token or ""}


_Point = tuple[str, str, PricePoint]


def _is_in(call: Call, point: _Point) -> bool:
    zone, wanted = call.places.zone_of(point[0]), call.values
    return wanted.get("AvailabilityZone") in (None, zone.name) and wanted.get("AvailabilityZoneId") in (None, zone.id)


def _price(call: Call, zone: str, type: str, point: PricePoint) -> dict[str, Any]:
    return {
        "AvailabilityZone": zone,
        "AvailabilityZoneId": call.places.zone_of(zone).id,
        "InstanceType": type,
        "ProductDescription": PRODUCT,
        "SpotPrice": dollars(point.microusd_per_hour),
        "Timestamp": moment(point.at),
    }


_HISTORY: Listing[_Point] = Listing(
    key=lambda point: f"{point[0]}/{point[1]}/{point[2].at}",
    smallest_page=1,
    filters={
        "availability-zone": lambda point: [point[0]],
        "instance-type": lambda point: [point[1]],
        "product-description": lambda point: [PRODUCT, f"{PRODUCT} (Amazon VPC)"],
        "spot-price": lambda point: [dollars(point[2].microusd_per_hour)],
        "timestamp": lambda point: [f"{moment(point[2].at):%Y-%m-%dT%H:%M:%S.000Z}"],
    },
)


def get_spot_placement_scores(call: Call) -> dict[str, Any]:
    """From 1 to 10: how much of what is asked for the zones of a region have room for."""
    values = call.values
    if "InstanceRequirementsWithMetadata" in values:
        beyond_the_lab("InstanceRequirementsWithMetadata")
    taken = Counter((m.zone, m.type) for m in call.world.machines(call.account, None, call.now) if m.end is None)
    regions = values.get("RegionNames") or list(call.places.regions)
    for region in regions:
        if region not in call.places.regions:
            raise AwsError("InvalidParameterValue", f"The region {region} is not valid.")
    zones = [zone for region in regions for zone in call.places.zones(region)]
    scores = [(zone, _score(call, zone.name, taken)) for zone in zones]
    if not values.get("SingleAvailabilityZone"):
        best = {region: max((s for z, s in scores if z.region == region), default=1) for region in regions}
        return {"SpotPlacementScores": [{"Region": region, "Score": score} for region, score in best.items()]}
    shown = [{"Region": zone.region, "AvailabilityZoneId": zone.id, "Score": score} for zone, score in scores]
    return {"SpotPlacementScores": shown}


def _score(call: Call, zone: str, taken: Mapping[tuple[str, str], int]) -> int:
    unit, room = call.values.get("TargetCapacityUnitType", "units"), 0
    for name in call.values.get("InstanceTypes", []):
        type, sale = call.places.type(name), call.places.sales.get((zone, name))
        size = {"units": 1, "vcpu": type.vcpus, "memory-mib": type.memory_mib}[unit]
        if sale is not None and sale.spot:
            room += max(sale.spot_capacity - taken.get((zone, name), 0), 0) * size
    target: int = call.values["TargetCapacity"]
    return max(1, min(10, 10 * room // max(target, 1)))


def status(call: Call, machine: Machine) -> str:
    """The code of a request, from what became of its instance."""
    if machine.state is State.ENDED and machine.end is End.SELLER:
        price = call.world.spot_price(machine.zone, machine.type, machine.ended_at or 0)
        is_dear = price is not None and machine.max_price is not None and price > machine.max_price
        return "instance-terminated-by-price" if is_dear else "instance-terminated-no-capacity"
    if machine.end is not None:
        return "instance-terminated-by-user"
    if machine.notice_at is not None:
        return "marked-for-termination"
    is_cancelled = machine.request_id in call.office.cancelled_requests
    return "request-canceled-and-instance-running" if is_cancelled else "fulfilled"


def _state(call: Call, machine: Machine) -> str:
    if machine.request_id in call.office.cancelled_requests:
        return "cancelled"
    return "closed" if machine.end is not None else "active"


def _request(call: Call, machine: Machine) -> dict[str, Any]:
    code, bought = status(call, machine), view.purchase_of(call, machine)
    changed_at = next(
        at for at in (machine.ended_at, machine.stops_at, machine.notice_at, machine.launched_at) if at is not None
    )
    return {
        "CreateTime": moment(machine.launched_at),
        "InstanceId": machine.id,
        "InstanceInterruptionBehavior": "terminate",
        "LaunchSpecification": {
            "ImageId": bought.image,
            "InstanceType": machine.type,
            "Placement": {"AvailabilityZone": machine.zone},
            "SecurityGroups": [{"GroupId": id} for id in bought.groups],
        },
        "LaunchedAvailabilityZone": machine.zone,
        "ProductDescription": PRODUCT,
        "SpotInstanceRequestId": machine.request_id,
        "SpotPrice": dollars(machine.max_price or 0),
        "State": _state(call, machine),
        "Status": {"Code": code, "Message": _WORDS[code], "UpdateTime": moment(changed_at)},
        "Tags": tags.shown(call.office.request_tags.get(machine.request_id or "", {})),
        "Type": "one-time",
    }


def _by_request(call: Call) -> dict[str, Machine]:
    return {machine.request_id: machine for machine in call.seen() if machine.request_id is not None}


def _found(machines: Mapping[str, Machine], id: str) -> Machine:
    if id not in machines:
        raise absent("sir", id)
    return machines[id]


def _requests(call: Call) -> Listing[Machine]:
    return Listing(
        key=lambda machine: machine.request_id or "",
        tags=lambda machine: call.office.request_tags.get(machine.request_id or "", {}),
        filters={
            "spot-instance-request-id": lambda machine: [machine.request_id],
            "instance-id": lambda machine: [machine.id],
            "state": lambda machine: [_state(call, machine)],
            "status-code": lambda machine: [status(call, machine)],
            "launched-availability-zone": lambda machine: [machine.zone],
            "launch.instance-type": lambda machine: [machine.type],
            "type": lambda machine: ["one-time"],
        },
    )


OPERATIONS: dict[str, Handler] = {
    "DescribeSpotInstanceRequests": describe_spot_instance_requests,
    "CancelSpotInstanceRequests": cancel_spot_instance_requests,
    "DescribeSpotPriceHistory": describe_spot_price_history,
    "GetSpotPlacementScores": get_spot_placement_scores,
}
