"""RunInstances: what the request says to what the world is asked for. A part of the request that the Lab would not
honour is refused, so that nothing works here that would work otherwise in the cloud."""

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from crucible.lab.aws import images, tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call
from crucible.lab.aws.disks import RootDisk, root_disk
from crucible.lab.aws.errors import AwsError, beyond_the_lab, combination, invalid, missing
from crucible.lab.aws.interfaces import Network, network
from crucible.lab.aws.places import architecture
from crucible.lab.aws.placing import placement_group, reservation
from crucible.lab.aws.registry import Purchase
from crucible.lab.faults import FaultKind
from crucible.world.facts import Market
from crucible.world.machine import Launch

MOST_USER_DATA = 16 * 1024
LONGEST_TOKEN = 64
TAGGED = ("instance", "volume", "spot-instances-request", "network-interface")

# What is honoured, or shown again and of no consequence.
_KNOWN = frozenset(
    [
        "BlockDeviceMappings",
        "CapacityReservationSpecification",
        "ClientToken",
        "DryRun",
        "EbsOptimized",
        "IamInstanceProfile",
        "ImageId",
        "InstanceInitiatedShutdownBehavior",
        "InstanceMarketOptions",
        "InstanceType",
        "KeyName",
        "MaxCount",
        "MetadataOptions",
        "MinCount",
        "Monitoring",
        "NetworkInterfaces",
        "Placement",
        "SecurityGroupIds",
        "SecurityGroups",
        "SubnetId",
        "TagSpecifications",
        "UserData",
    ]
)


@dataclass(frozen=True, slots=True)
class Ask:
    launch: Launch
    purchase: Purchase
    request_tags: dict[str, str]  # of each spot request


def ask_of(call: Call) -> Ask:
    """Raises AwsError as EC2 does for whatever it would refuse before it looks for room."""
    values = call.values
    for name in values:
        if name not in _KNOWN:
            beyond_the_lab(f"{name} of RunInstances")
    image = images.named(call.region, values["ImageId"] if "ImageId" in values else missing("ImageId"))
    type = values["InstanceType"] if "InstanceType" in values else missing("InstanceType")
    _check_counts(values["MinCount"], values["MaxCount"])
    _check_key(call)
    net = network(call, call.places.type(type))
    _check_architecture(type, image)
    group = placement_group(call, _zone(call, net, type))
    disk = root_disk(values.get("BlockDeviceMappings", []), image)
    tagged = tags.specified(values, TAGGED)
    launch = _launch(call, net, group.zone, disk, tagged)
    return Ask(launch, _purchase(call, image, net, group.name, disk), tagged.get("spot-instances-request", {}))


def _launch(call: Call, net: Network, zone: str | None, disk: RootDisk, tagged: Mapping[str, tags.Tags]) -> Launch:
    values = call.values
    market, max_price = _market(values.get("InstanceMarketOptions", {}))
    return Launch(
        account=call.account,
        region=call.region,
        zone=zone,
        type=values["InstanceType"],
        market=market,
        least=values["MinCount"],
        most=values["MaxCount"],
        token=_token(values.get("ClientToken")),
        fingerprint=fingerprint(values),
        max_price=max_price,
        disk_gib=disk.gib,
        has_address=net.has_address,
        tags=tagged.get("instance", {}),
        disk_tags=tagged.get("volume", {}),
        user_data=_user_data(values.get("UserData", "")),
        reservation=reservation(call, values["InstanceType"], zone, market),
        ends_on_shutdown=values.get("InstanceInitiatedShutdownBehavior", "stop") == "terminate",
        visible_after_s=call.fault.seconds if call.fault and call.has(FaultKind.LATE_VISIBILITY) else 0.0,
    )


def _purchase(call: Call, image: images.Image, net: Network, group: str | None, disk: RootDisk) -> Purchase:
    return Purchase(
        image=image.id(call.region),
        key=call.values.get("KeyName"),
        groups=net.groups,
        placement_group=group,
        interfaces=net.interfaces,
        metadata=call.values.get("MetadataOptions", {}),
        profile=_profile(call),
        keeps_disk=not disk.goes_with_machine,
    )


def fingerprint(values: Mapping[str, Any]) -> str:
    """What must be the same for a token to stand for the same purchase."""
    said = {name: value for name, value in values.items() if name not in ("ClientToken", "DryRun")}
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()


def _check_counts(least: int, most: int) -> None:
    if least < 1:
        invalid(f"Invalid value '{least}' for MinCount. Must be a positive integer.")
    if most < least:
        invalid(f"Invalid value '{most}' for MaxCount. It must not be less than MinCount.")


def _check_key(call: Call) -> None:
    key = call.values.get("KeyName")
    if key is not None and key not in call.office.keys:
        raise absent("key", key)


def _check_architecture(type: str, image: images.Image) -> None:
    if architecture(type) != image.architecture:
        invalid(
            f"The architecture '{architecture(type)}' of the specified instance type does not match the architecture "
            f"'{image.architecture}' of the specified AMI. Specify an instance type and an AMI that have matching "
            "architectures, and try again."
        )


def _zone(call: Call, net: Network, type: str) -> str | None:
    """Where a subnet or the placement says; None: anywhere in the region."""
    placement = call.values.get("Placement", {})
    for name in placement:
        if name not in ("AvailabilityZone", "AvailabilityZoneId", "GroupName", "GroupId", "Tenancy"):
            beyond_the_lab(f"Placement.{name}")
    if placement.get("Tenancy", "default") != "default":
        beyond_the_lab("tenancy other than default")
    named = [placement[key] for key in ("AvailabilityZone", "AvailabilityZoneId") if placement.get(key)]
    zones = {call.places.zone(call.region, name).name for name in named} | ({net.zone} if net.zone else set())
    if len(zones) > 1:
        invalid(f"The specified subnet and Availability Zone do not match: {', '.join(sorted(zones))}.")
    zone = next(iter(zones), None)
    call.places.check_sold(call.region, type, zone)
    return zone


def _market(options: Mapping[str, Any]) -> tuple[Market, int | None]:
    kind, spot = options.get("MarketType", "on-demand" if not options else "spot"), options.get("SpotOptions", {})
    if kind == "on-demand" and not spot:
        return Market.ON_DEMAND, None
    if kind != "spot":
        beyond_the_lab(f"the market {kind}")
    if spot.get("SpotInstanceType", "one-time") != "one-time":
        beyond_the_lab("persistent spot requests")
    if spot.get("InstanceInterruptionBehavior", "terminate") != "terminate":
        beyond_the_lab("spot instances that are stopped or hibernated instead of terminated")
    for name in ("BlockDurationMinutes", "ValidUntil"):
        if name in spot:
            beyond_the_lab(f"SpotOptions.{name}")
    return Market.SPOT, _micro_dollars(spot["MaxPrice"]) if "MaxPrice" in spot else None


def _micro_dollars(text: str) -> int:
    try:
        price = Decimal(text)
    except InvalidOperation:
        price = Decimal("NaN")
    if not price.is_finite() or not 0 < price < 1_000_000:
        invalid(f"{text} is not a valid Spot price.")
    return int(price * 1_000_000)


def _token(text: str | None) -> str | None:
    if text and len(text) > LONGEST_TOKEN:
        invalid(f"Value ({text}) for parameter clientToken is invalid. It is longer than {LONGEST_TOKEN} characters.")
    return text or None


def _user_data(text: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise AwsError("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if len(data) > MOST_USER_DATA:
        invalid(f"User data is limited to {MOST_USER_DATA} bytes")
    return data


def _profile(call: Call) -> dict[str, str] | None:
    """Shown again as Amazon would; machines of the Lab have no role."""
    said = call.values.get("IamInstanceProfile")
    if not said:
        return None
    if "Arn" in said and "Name" in said:
        combination(
            "The parameter 'iamInstanceProfile.name' may not be used in combination with 'iamInstanceProfile.arn'"
        )
    arn = said.get("Arn") or f"arn:aws:iam::{call.account}:instance-profile/{said.get('Name')}"
    return {"Arn": arn, "Id": f"AIPA{hashlib.sha256(arn.encode()).hexdigest()[:16].upper()}"}
