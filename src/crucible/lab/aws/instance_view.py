"""A machine of the world as EC2 shows an instance."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from crucible.lab.aws import tags
from crucible.lab.aws.call import Call, moment
from crucible.lab.aws.images import IMAGES
from crucible.lab.aws.names import derived
from crucible.lab.aws.places import architecture, subnet_id
from crucible.lab.aws.registry import Purchase
from crucible.world.facts import Market
from crucible.world.machine import End, Machine, State

CODES = {State.PENDING: 0, State.RUNNING: 16, State.STOPPING: 32, State.ENDED: 48}
_REASONS = {
    End.OWNER: ("Client.UserInitiatedShutdown", "User initiated shutdown"),
    End.SELLER: ("Server.SpotInstanceTermination", "Spot instance termination"),
    End.GUEST: ("Client.InstanceInitiatedShutdown", "Instance initiated shutdown"),
}
_METADATA = {
    "State": "applied",
    "HttpTokens": "required",
    "HttpPutResponseHopLimit": 2,
    "HttpEndpoint": "enabled",
    "HttpProtocolIpv6": "disabled",
    "InstanceMetadataTags": "disabled",
}


def state(machine: Machine) -> dict[str, Any]:
    return {"Code": CODES[machine.state], "Name": str(machine.state)}


def purchase_of(call: Call, machine: Machine) -> Purchase:
    """Machines that nobody bought over the wire have the usual particulars."""
    office = call.office
    return office.purchases.get(machine.launch_id) or Purchase(
        image=IMAGES[0].id(machine.region),
        key=None,
        groups=(office.default_group,),
        placement_group=None,
        interfaces=("interface",),
        metadata={},
        profile=None,
    )


def reservations(call: Call, machines: Sequence[Machine]) -> list[dict[str, Any]]:
    """Machines of one purchase together."""
    by_launch: dict[str, list[Machine]] = {}
    for machine in machines:
        by_launch.setdefault(machine.launch_id, []).append(machine)
    return [reservation(call, bought) for bought in by_launch.values()]


def reservation(call: Call, machines: Sequence[Machine]) -> dict[str, Any]:
    return {
        "ReservationId": machines[0].launch_id,
        "OwnerId": call.account,
        "Groups": [],
        "Instances": [instance(call, machine) for machine in machines],
    }


def instance(call: Call, machine: Machine) -> dict[str, Any]:
    bought = purchase_of(call, machine)
    image = next((image for image in IMAGES if image.id(machine.region) == bought.image), IMAGES[0])
    zone = call.places.zone_of(machine.zone)
    shown: dict[str, Any] = {
        "AmiLaunchIndex": machine.index,
        "Architecture": architecture(machine.type),
        "BlockDeviceMappings": [],
        "ClientToken": machine.token or "",
        "CpuOptions": {"CoreCount": max(call.places.types[machine.type].vcpus // 2, 1), "ThreadsPerCore": 2},
        "EbsOptimized": False,
        "EnaSupport": True,
        "EnclaveOptions": {"Enabled": False},
        "HibernationOptions": {"Configured": False},
        "Hypervisor": "xen",
        "ImageId": bought.image,
        "InstanceId": machine.id,
        "InstanceType": machine.type,
        "LaunchTime": moment(machine.launched_at),
        "MetadataOptions": {**_METADATA, **bought.metadata},
        "Monitoring": {"State": "disabled"},
        "NetworkInterfaces": [],
        "Placement": {
            "AvailabilityZone": zone.name,
            "AvailabilityZoneId": zone.id,
            "GroupName": bought.placement_group or "",
            "Tenancy": "default",
        },
        "PlatformDetails": "Linux/UNIX",
        "PrivateDnsName": "",
        "ProductCodes": [],
        "PublicDnsName": "",
        "RootDeviceName": image.root,
        "RootDeviceType": "ebs",
        "SecurityGroups": [],
        "State": state(machine),
        "StateTransitionReason": transition(machine),
        "Tags": tags.shown(machine.tags),
        "UsageOperation": "RunInstances",
        "UsageOperationUpdateTime": moment(machine.launched_at),
        "VirtualizationType": "hvm",
        "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
    }
    shown |= _sometimes(machine, bought)
    if machine.state is not State.ENDED:
        shown |= _attached(call, machine, bought, image.root)
    return shown


def _sometimes(machine: Machine, bought: Purchase) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if bought.key is not None:
        shown["KeyName"] = bought.key
    if bought.profile is not None:
        shown["IamInstanceProfile"] = bought.profile
    if machine.market is Market.SPOT:
        shown |= {"InstanceLifecycle": "spot", "SpotInstanceRequestId": machine.request_id}
    if machine.reservation is not None:
        shown["CapacityReservationId"] = machine.reservation
    reason = state_reason(machine)
    return shown | ({"StateReason": reason} if reason else {})


def state_reason(machine: Machine) -> dict[str, str] | None:
    if machine.state is State.PENDING:
        return {"Code": "pending", "Message": "pending"}
    if machine.end is None:
        return None
    code, words = _REASONS[machine.end]
    if machine.end is End.SELLER and machine.market is Market.ON_DEMAND:
        code, words = "Server.InternalError", "Internal error on launch"
    return {"Code": code, "Message": f"{code}: {words}"}


def transition(machine: Machine) -> str:
    """The moment in it is the end that the machine is billed to."""
    ends_at = machine.ended_at if machine.ended_at is not None else machine.stops_at
    if machine.end is None or ends_at is None:
        return ""
    who = "Service initiated" if machine.end is End.SELLER else "User initiated"
    return f"{who} ({datetime.fromtimestamp(ends_at, UTC):%Y-%m-%d %H:%M:%S} GMT)"


def _attached(call: Call, machine: Machine, bought: Purchase, root: str) -> dict[str, Any]:
    """What an instance has until it has ended."""
    subnet, vpc = subnet_id(call.account, machine.zone), call.office.vpc
    groups = [
        {"GroupId": id, "GroupName": call.office.groups[id].name} for id in bought.groups if id in call.office.groups
    ]
    disk = {
        "AttachTime": moment(machine.launched_at),
        "DeleteOnTermination": not bought.keeps_disk,
        "Status": "attached",
        "VolumeId": machine.disk_id,
    }
    shown: dict[str, Any] = {
        "BlockDeviceMappings": [{"DeviceName": root, "Ebs": disk}],
        "NetworkInterfaces": [
            _interface(call, machine, kind, number, subnet, vpc, groups)
            for number, kind in enumerate(bought.interfaces)
        ],
        "PrivateDnsName": private_name(machine),
        "PrivateIpAddress": machine.private_address,
        "SecurityGroups": groups,
        "SourceDestCheck": True,
        "SubnetId": subnet,
        "VpcId": vpc,
    }
    if machine.public_address is not None and machine.state is not State.STOPPING:
        shown |= {"PublicIpAddress": machine.public_address, "PublicDnsName": _public_name(machine.public_address)}
    return shown


def _interface(
    call: Call, machine: Machine, kind: str, number: int, subnet: str, vpc: str, groups: list[dict[str, str]]
) -> dict[str, Any]:
    id = derived("eni", machine.id, number)
    shown: dict[str, Any] = {
        "Attachment": {
            "AttachTime": moment(machine.launched_at),
            "AttachmentId": derived("eni-attach", machine.id, number),
            "DeleteOnTermination": True,
            "DeviceIndex": min(number, 1),
            "NetworkCardIndex": number,
            "Status": "attached",
        },
        "Description": "",
        "Groups": groups,
        "Ipv6Addresses": [],
        "InterfaceType": kind,
        "MacAddress": "0a:" + ":".join(id[-10:][at : at + 2] for at in range(0, 10, 2)),
        "NetworkInterfaceId": id,
        "OwnerId": call.account,
        "SourceDestCheck": True,
        "Status": "in-use",
        "SubnetId": subnet,
        "VpcId": vpc,
    }
    if number == 0:
        shown |= {"PrivateDnsName": private_name(machine), "PrivateIpAddress": machine.private_address}
        if machine.public_address is not None:
            shown["Association"] = {
                "IpOwnerId": "amazon",
                "PublicDnsName": _public_name(machine.public_address),
                "PublicIp": machine.public_address,
            }
    return shown


def private_name(machine: Machine) -> str:
    return f"ip-{machine.private_address.replace('.', '-')}.{machine.region}.compute.internal"


def _public_name(address: str) -> str:
    return f"ec2-{address.replace('.', '-')}.compute.amazonaws.com"
