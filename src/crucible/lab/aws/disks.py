"""The root disk that a request for machines describes. The world has one disk a machine, at the price of gp3."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crucible.lab.aws.errors import AwsError, beyond_the_lab, invalid
from crucible.lab.aws.images import Image

LARGEST_GIB = 16_384
# What gp3 has without a surcharge.
FREE_IOPS, FREE_THROUGHPUT = 3_000, 125


@dataclass(frozen=True, slots=True)
class RootDisk:
    gib: int
    goes_with_machine: bool = True


def root_disk(mappings: Sequence[dict[str, Any]], image: Image) -> RootDisk:
    found = RootDisk(image.gib)
    seen: set[str] = set()
    for mapping in mappings:
        device = mapping.get("DeviceName")
        if not device or device in seen:
            raise AwsError("InvalidBlockDeviceMapping", f"Each device must have a name of its own, not {device}.")
        seen.add(device)
        if "Ebs" in mapping:
            if device != image.root:
                beyond_the_lab(f"a second volume ({device}; the root device of {image.name} is {image.root})")
            found = _root(mapping["Ebs"], image)
    return found


def check_kind(ebs: dict[str, Any]) -> None:
    """Only what costs what the world charges."""
    if ebs.get("VolumeType", "gp3") != "gp3":
        beyond_the_lab(f"volumes of the type {ebs['VolumeType']}")
    if ebs.get("Iops", 0) > FREE_IOPS or ebs.get("Throughput", 0) > FREE_THROUGHPUT:
        beyond_the_lab(f"more than {FREE_IOPS} IOPS or {FREE_THROUGHPUT} MiB/s")


def check_size(gib: int) -> None:
    if not 1 <= gib <= LARGEST_GIB:
        invalid(f"Volume of {gib}GiB is invalid; gp3 has from 1 to {LARGEST_GIB}.")


def _root(ebs: dict[str, Any], image: Image) -> RootDisk:
    check_kind(ebs)
    gib = ebs.get("VolumeSize", image.gib)
    check_size(gib)
    if gib < image.gib:
        raise AwsError(
            "InvalidBlockDeviceMapping",
            f"Volume of size {gib}GB is smaller than snapshot, expect size >= {image.gib}GB",
        )
    return RootDisk(gib, ebs.get("DeleteOnTermination", True))
