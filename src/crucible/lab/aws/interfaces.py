"""Subnet, security groups and interfaces of a request for machines: said once, of the instance or of its interfaces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call
from crucible.lab.aws.errors import AwsError, beyond_the_lab, combination, invalid
from crucible.lab.aws.places import subnet_id
from crucible.world.facts import MachineType

_KINDS = ("interface", "efa", "efa-only")
_KNOWN = [
    "AssociatePublicIpAddress",
    "DeleteOnTermination",
    "Description",
    "DeviceIndex",
    "Groups",
    "InterfaceType",
    "NetworkCardIndex",
    "SubnetId",
]


@dataclass(frozen=True, slots=True)
class Network:
    zone: str | None  # of the subnet
    groups: tuple[str, ...]  # ids
    interfaces: tuple[str, ...]  # their kinds
    has_address: bool


def network(call: Call, type: MachineType) -> Network:
    values = call.values
    interfaces: Sequence[dict[str, Any]] = values.get("NetworkInterfaces", [])
    if not interfaces:
        subnet, groups = values.get("SubnetId"), _named_groups(call)
        return Network(_zone_of(call, subnet), groups, ("interface",), has_address=True)
    if values.get("SubnetId"):
        combination("Network interfaces and an instance-level subnet ID may not be specified on the same request")
    if values.get("SecurityGroupIds") or values.get("SecurityGroups"):
        combination("Network interfaces and an instance-level security groups may not be specified on the same request")
    _check(interfaces, type)
    zones = {_zone_of(call, interface.get("SubnetId")) for interface in interfaces}
    if len(zones) > 1:
        invalid("All network interfaces of an instance must be in subnets of one Availability Zone.")
    groups = tuple(dict.fromkeys(id for interface in interfaces for id in interface.get("Groups", [])))
    return Network(
        next(iter(zones)),
        _existing(call, groups) or (call.office.default_group,),
        tuple(interface.get("InterfaceType", "interface") for interface in interfaces),
        # Amazon gives a public address to instances with one interface only.
        has_address=len(interfaces) == 1 and interfaces[0].get("AssociatePublicIpAddress", True),
    )


def _check(interfaces: Sequence[dict[str, Any]], type: MachineType) -> None:
    places = set()
    for interface in interfaces:
        for name in interface:
            if name not in _KNOWN:
                beyond_the_lab(f"NetworkInterfaces.{name}")
        kind = interface.get("InterfaceType", "interface")
        if kind not in _KINDS:
            invalid(f"Value ({kind}) for parameter InterfaceType is invalid. It must be one of {', '.join(_KINDS)}.")
        if kind != "interface" and not type.has_fast_fabric:
            raise AwsError("Unsupported", f"EFA interfaces are not supported on {type.name}.")
        if "DeviceIndex" not in interface:
            raise AwsError("MissingParameter", "Each network interface requires a device index.")
        places.add((interface.get("NetworkCardIndex", 0), interface["DeviceIndex"]))
    if len(places) < len(interfaces):
        combination("Each network interface requires a unique pair of network card index and device index.")
    if len(interfaces) > 1 and any(interface.get("AssociatePublicIpAddress") for interface in interfaces):
        combination(
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple "
            "network interfaces."
        )


def _zone_of(call: Call, subnet: str | None) -> str | None:
    if not subnet:
        return None
    for zone in call.places.zones(call.region):
        if subnet_id(call.account, zone.name) == subnet:
            return zone.name
    raise absent("subnet", subnet)


def _named_groups(call: Call) -> tuple[str, ...]:
    by_name = {group.name: group.id for group in call.office.groups.values()}
    ids = list(call.values.get("SecurityGroupIds", []))
    for name in call.values.get("SecurityGroups", []):
        if name not in by_name:
            raise AwsError("InvalidGroup.NotFound", f"The security group '{name}' does not exist")
        ids.append(by_name[name])
    return _existing(call, tuple(dict.fromkeys(ids))) or (call.office.default_group,)


def _existing(call: Call, ids: tuple[str, ...]) -> tuple[str, ...]:
    for id in ids:
        if id not in call.office.groups:
            raise absent("sg", id)
    return ids
