"""Addresses that nobody holds: the Lab has none, so they are played here. Disks are tried against the Lab."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from crucible.model.ids import OrderId
from crucible.model.lease import Leftover, LeftoverKind
from crucible.providers.aws import leftovers


class Ec2:
    """The part of a client that is used."""

    class exceptions:
        ClientError = ClientError

    def __init__(self, *addresses: dict[str, Any], refuses: str | None = None) -> None:
        self.addresses, self.refuses = addresses, refuses
        self.released: list[str] = []

    def describe_addresses(self, Filters: list[dict[str, Any]]) -> dict[str, Any]:
        assert Filters == [{"Name": "tag:crucible:deployment", "Values": ["d1"]}]
        return {"Addresses": list(self.addresses)}

    def release_address(self, AllocationId: str) -> None:
        if self.refuses:
            raise ClientError({"Error": {"Code": self.refuses}}, "ReleaseAddress")
        self.released.append(AllocationId)


def address(name: str, **more: Any) -> dict[str, Any]:
    return {"AllocationId": name, "PublicIp": "198.18.0.1", "Tags": [{"Key": "crucible:order", "Value": "o1"}], **more}


LEFT = Leftover(kind=LeftoverKind.ADDRESS, id="eipalloc-1", order_id=OrderId("o1"))


def test_an_address_without_a_machine_is_left_behind() -> None:
    ec2 = Ec2(address("eipalloc-1"), address("eipalloc-2", AssociationId="eipassoc-1"))
    assert list(leftovers.addresses(ec2, "d1")) == [LEFT]
    leftovers.remove(ec2, LEFT)
    assert ec2.released == ["eipalloc-1"]


def test_one_that_is_gone_already_is_success_and_any_other_refusal_is_not() -> None:
    leftovers.remove(Ec2(refuses="InvalidAllocationID.NotFound"), LEFT)
    with pytest.raises(ClientError):
        leftovers.remove(Ec2(refuses="InvalidIPAddress.InUse"), LEFT)
