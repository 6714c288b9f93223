"""What carries our tag, costs money and belongs to no machine. Nothing that is younger than a purchase may take, and
nothing without our tag, is ever told."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from crucible.model.lease import Leftover, LeftoverKind
from crucible.providers.aws import tags as tagging

# A disk is made before it is attached.
GRACE = timedelta(minutes=1)
ABSENT = ("InvalidVolume.NotFound", "InvalidAllocationID.NotFound", "InvalidAddress.NotFound")


def volumes(ec2: Any, deployment: str, now: datetime) -> Iterator[Leftover]:
    unattached = [tagging.deployment_filter(deployment), {"Name": "status", "Values": ["available"]}]
    for page in ec2.get_paginator("describe_volumes").paginate(Filters=unattached):
        for volume in page["Volumes"]:
            if volume["CreateTime"] <= now - GRACE:
                yield Leftover(
                    kind=LeftoverKind.VOLUME,
                    id=volume["VolumeId"],
                    order_id=tagging.order_id(tagging.read(volume)),
                )


def addresses(ec2: Any, deployment: str) -> Iterator[Leftover]:
    for address in ec2.describe_addresses(Filters=[tagging.deployment_filter(deployment)])["Addresses"]:
        if "AssociationId" not in address and "AllocationId" in address:
            yield Leftover(
                kind=LeftoverKind.ADDRESS,
                id=address["AllocationId"],
                order_id=tagging.order_id(tagging.read(address)),
            )


def found(ec2: Any, deployment: str, now: datetime) -> Sequence[Leftover]:
    return [*volumes(ec2, deployment, now), *addresses(ec2, deployment)]


def remove(ec2: Any, leftover: Leftover) -> None:
    """Absent is success."""
    try:
        if leftover.kind is LeftoverKind.VOLUME:
            ec2.delete_volume(VolumeId=leftover.id)
        else:
            ec2.release_address(AllocationId=leftover.id)
    except ec2.exceptions.ClientError as error:
        if error.response.get("Error", {}).get("Code") not in ABSENT:
            raise
