"""Volumes: the disks that come with machines, and those that were made or left behind without one."""

from typing import Any

from crucible.lab.aws import tags
from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call, Handler, moment
from crucible.lab.aws.disks import FREE_IOPS, FREE_THROUGHPUT, check_kind, check_size
from crucible.lab.aws.errors import AwsError, beyond_the_lab, missing
from crucible.lab.aws.launching import fingerprint
from crucible.lab.aws.listing import Listing
from crucible.world.machine import Disk, Refused, RefusedBy

_KNOWN = frozenset(
    [
        "AvailabilityZone",
        "AvailabilityZoneId",
        "ClientToken",
        "DryRun",
        "Encrypted",
        "Iops",
        "Size",
        "TagSpecifications",
        "Throughput",
        "VolumeType",
    ]
)


def create_volume(call: Call) -> dict[str, Any]:
    values = call.values
    for name in values:
        if name not in _KNOWN:
            beyond_the_lab(f"{name} of CreateVolume")
    name = values.get("AvailabilityZone") or values.get("AvailabilityZoneId") or missing("AvailabilityZone")
    zone = call.places.zone(call.region, name).name
    gib = values["Size"] if "Size" in values else missing("Size")
    check_kind({"VolumeType": "gp2", **values})
    check_size(gib)
    known = call.office.volume_tokens.get(values.get("ClientToken", ""))
    if known is not None:
        if known[0] != fingerprint(values):
            raise AwsError("IdempotentParameterMismatch", "The client token stands for a volume of other parameters.")
        return _shown(call, _disk(call, known[1]))
    tagged = tags.specified(values, ("volume",)).get("volume", {})
    disk = call.world.create_disk(call.account, zone, gib, call.now, tagged)
    if values.get("ClientToken"):
        call.office.volume_tokens[values["ClientToken"]] = (fingerprint(values), disk.id)
    return _shown(call, disk)


def describe_volumes(call: Call) -> dict[str, Any]:
    call.seen()  # the world catches up: what went with its machine is gone
    wanted = call.values.get("VolumeIds")
    disks = [_disk(call, id) for id in wanted] if wanted else call.world.disks(call.account, call.region)
    found = _LISTING.matching(disks, call.values.get("Filters", []))
    shown, token = _LISTING.page(found, call.values, "VolumeIds")
    return {"Volumes": [_shown(call, disk) for disk in shown]} | ({"NextToken": token} if token else {})


def delete_volume(call: Call) -> dict[str, Any]:
    disk = _disk(call, call.values["VolumeId"])
    try:
        call.world.delete_disk(call.account, disk.id, call.now)
    except Refused as refused:
        if refused.by is RefusedBy.IN_USE:
            raise AwsError("VolumeInUse", f"Volume {disk.id} is currently attached to {disk.machine}") from None
        raise absent("vol", disk.id) from None
    return {}


def _disk(call: Call, id: str) -> Disk:
    for disk in call.world.disks(call.account, call.region):
        if disk.id == id:
            return disk
    raise absent("vol", id)


def _state(disk: Disk) -> str:
    return "available" if disk.machine is None else "in-use"


def _shown(call: Call, disk: Disk) -> dict[str, Any]:
    attachments = []
    if disk.machine is not None:
        attachments.append(
            {
                "AttachTime": moment(disk.created_at),
                "DeleteOnTermination": disk.goes_with_machine,
                "Device": "/dev/sda1",
                "InstanceId": disk.machine,
                "State": "attached",
                "VolumeId": disk.id,
            }
        )
    return {
        "Attachments": attachments,
        "AvailabilityZone": disk.zone,
        "AvailabilityZoneId": call.places.zone_of(disk.zone).id,
        "CreateTime": moment(disk.created_at),
        "Encrypted": False,
        "Iops": FREE_IOPS,
        "MultiAttachEnabled": False,
        "Size": disk.gib,
        "SnapshotId": "",
        "State": _state(disk),
        "Tags": tags.shown(disk.tags),
        "Throughput": FREE_THROUGHPUT,
        "VolumeId": disk.id,
        "VolumeType": "gp3",
    }


_LISTING: Listing[Disk] = Listing(
    key=lambda disk: disk.id,
    tags=lambda disk: disk.tags,
    filters={
        "attachment.instance-id": lambda disk: [disk.machine],
        "attachment.status": lambda disk: ["attached" if disk.machine else None],
        "availability-zone": lambda disk: [disk.zone],
        "size": lambda disk: [str(disk.gib)],
        "status": lambda disk: [_state(disk)],
        "volume-id": lambda disk: [disk.id],
        "volume-type": lambda disk: ["gp3"],
    },
)

OPERATIONS: dict[str, Handler] = {
    "CreateVolume": create_volume,
    "DescribeVolumes": describe_volumes,
    "DeleteVolume": delete_volume,
}
