"""Elastic addresses: the world's machines have their public addresses for life and there are no others, so an account
has none to list and none to release."""

from typing import Any

from crucible.lab.aws.call import Call, Handler
from crucible.lab.aws.errors import AwsError, missing
from crucible.lab.aws.listing import Listing

_NAMES = ("allocation-id", "association-id", "domain", "instance-id", "network-interface-id", "private-ip-address")
_LISTING: Listing[str] = Listing(
    key=lambda id: id,
    tags=lambda id: {},
    filters={name: lambda id: [] for name in (*_NAMES, "network-interface-owner-id", "public-ip")},
)


def describe_addresses(call: Call) -> dict[str, Any]:
    for id in call.values.get("AllocationIds", []):
        raise AwsError("InvalidAllocationID.NotFound", f"The allocation ID '{id}' does not exist")
    for address in call.values.get("PublicIps", []):
        raise AwsError("InvalidAddress.NotFound", f"Address '{address}' not found.")
    return {"Addresses": _LISTING.matching([], call.values.get("Filters", []))}


def release_address(call: Call) -> dict[str, Any]:
    id, address = call.values.get("AllocationId"), call.values.get("PublicIp")
    if id:
        raise AwsError("InvalidAllocationID.NotFound", f"The allocation ID '{id}' does not exist")
    raise AwsError("InvalidAddress.NotFound", f"Address '{address or missing('AllocationId')}' not found.")


OPERATIONS: dict[str, Handler] = {"DescribeAddresses": describe_addresses, "ReleaseAddress": release_address}
