"""The exact request of an order: what it asks Amazon for, and that it is the same the second time."""

import json
from typing import Any

import pytest

from crucible.model.errors import InvalidRequest
from crucible.model.lease import Order
from crucible.providers.aws.lookups import Image, Kind, Subnet
from crucible.providers.aws.request import run_instances
from crucible.providers.aws.settings import AwsSettings
from making import an_order


class Found:
    """What an account with a default VPC answers."""

    def __init__(self, efa: int = 0) -> None:
        self.efa = efa
        self.asked: list[tuple[Any, ...]] = []

    def kind(self, instance_type: str) -> Kind:
        return Kind(arch="x86_64", efa_interfaces=self.efa, is_clustered=True)

    def image(self, arch: str, has_gpus: bool) -> Image:
        return Image("ami-0123456789abcdef0", "/dev/sda1", 75 if has_gpus else 8)

    def subnet(self, zone: str) -> Subnet | None:
        return Subnet("subnet-1", "vpc-1", "us-east-1a", zone) if zone else None

    def groups(self, vpc: str | None, is_gang: bool) -> tuple[str, ...]:
        return ("sg-gang",) if is_gang else ("sg-alone",)

    def placement_group(self, zone: str) -> str:
        self.asked.append(("placement_group", zone))
        return f"crucible-d1-{zone}"


def order(**changes: Any) -> Order:
    usual = {"zone": "use1-az4", "instance_type": "p5.48xlarge", "gpus": 8, "count": 1, "is_spot": False, "body": {}}
    return an_order(**(usual | changes))


def request(one: Order, found: Found | None = None, **settings: Any) -> dict[str, Any]:
    return run_instances(one, "us-east-1", "d1", AwsSettings(**settings), found or Found())  # type: ignore[arg-type]


def tags(body: dict[str, Any], kind: str) -> dict[str, str]:
    (found,) = [spec["Tags"] for spec in body["TagSpecifications"] if spec["ResourceType"] == kind]
    return {tag["Key"]: tag["Value"] for tag in found}


def test_all_or_none_ended_by_switching_off_and_nothing_left_behind() -> None:
    body = request(order(count=3))
    assert (body["MinCount"], body["MaxCount"]) == (3, 3)
    assert body["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert body["MetadataOptions"]["HttpTokens"] == "required"
    (disk,) = body["BlockDeviceMappings"]
    assert disk["Ebs"]["DeleteOnTermination"] is True and disk["DeviceName"] == "/dev/sda1"
    assert all(interface["DeleteOnTermination"] for interface in body["NetworkInterfaces"])


def test_the_request_is_stable_and_fits_into_json() -> None:
    one = order()
    assert json.loads(json.dumps(request(one))) == request(one)
    assert "ClientToken" not in request(one) and "UserData" not in request(one)


def test_everything_that_costs_carries_deployment_and_order() -> None:
    one = order(is_spot=True)
    body = request(one)
    for kind in ("instance", "volume", "spot-instances-request"):
        assert tags(body, kind).items() >= {"crucible:deployment": "d1", "crucible:order": one.id}.items()
    assert tags(body, "instance")["crucible:extras"] == "gp3:100,address"
    kinds = [spec["ResourceType"] for spec in request(order())["TagSpecifications"]]
    assert kinds == ["instance", "volume"]


def test_spot_is_asked_for_once_and_ends_when_it_is_taken() -> None:
    body = request(order(is_spot=True))
    options = body["InstanceMarketOptions"]
    assert options["MarketType"] == "spot" and "MaxPrice" not in options["SpotOptions"]
    assert options["SpotOptions"] == {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    assert "InstanceMarketOptions" not in request(order())


def test_the_disk_is_never_smaller_than_the_image() -> None:
    body = request(order(), disk_gib=20, has_public_address=False)
    assert body["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 75
    assert tags(body, "instance")["crucible:extras"] == "gp3:75"


def test_without_a_zone_amazon_chooses_and_no_group_binds_it() -> None:
    found = Found(efa=1)
    body = request(order(zone="", count=2), found)
    assert "SubnetId" not in body["NetworkInterfaces"][0]
    assert "Placement" not in body and found.asked == []


def test_a_single_machine_hears_nobody() -> None:
    (interface,) = request(order())["NetworkInterfaces"]
    assert interface["Groups"] == ["sg-alone"] and interface["SubnetId"] == "subnet-1"
    assert "InterfaceType" not in interface and "Placement" not in request(order())


def test_a_gang_has_a_fast_fabric_and_a_public_address_on_one_interface() -> None:
    body = request(order(count=2), Found(efa=32))
    (interface,) = body["NetworkInterfaces"]
    assert interface["InterfaceType"] == "efa" and interface["AssociatePublicIpAddress"] is True
    assert interface["Groups"] == ["sg-gang"]
    assert body["Placement"] == {"GroupName": "crucible-d1-use1-az4"}


def test_behind_a_nat_a_gang_uses_every_fast_interface() -> None:
    interfaces = request(order(count=2), Found(efa=4), has_public_address=False)["NetworkInterfaces"]
    assert [(i["NetworkCardIndex"], i["DeviceIndex"]) for i in interfaces] == [(0, 0), (1, 1), (2, 1), (3, 1)]
    assert [i["InterfaceType"] for i in interfaces] == ["efa", "efa-only", "efa-only", "efa-only"]
    assert not any("AssociatePublicIpAddress" in i for i in interfaces), "Amazon refuses it"


def test_placement_groups_can_be_switched_off() -> None:
    assert "Placement" not in request(order(count=2), uses_placement_groups=False)


def test_a_reservation_is_used_only_if_it_is_named() -> None:
    chosen = "CapacityReservationSpecification"
    assert request(order())[chosen] == {"CapacityReservationPreference": "none"}
    assert request(order(), reservations={"*": "open"})[chosen] == {"CapacityReservationPreference": "open"}
    named = request(order(), reservations={"us-east-1": "cr-01234567"})[chosen]
    assert named == {"CapacityReservationTarget": {"CapacityReservationId": "cr-01234567"}}
    assert chosen not in request(order(is_spot=True), reservations={"*": "open"})


# --- settings -----------------------------------------------------------------------------------------


def test_settings_come_from_the_environment() -> None:
    settings = AwsSettings.from_environ(
        {
            "CRUCIBLE_AWS_IMAGE": "us-east-1=ami-01234567, ami-89abcdef",
            "CRUCIBLE_AWS_SUBNETS": "subnet-01234567,subnet-89abcdef",
            "CRUCIBLE_AWS_PUBLIC_ADDRESS": "no",
            "CRUCIBLE_AWS_DISK_GIB": "250",
            "CRUCIBLE_AWS_KEY_NAME": "ops",
            "CRUCIBLE_AWS_CAPACITY_RESERVATION": "eu-west-1=cr-01234567",
            "CRUCIBLE_AWS_REGIONS": "us-east-1",
            "AWS_REGION": "elsewhere",
        }
    )
    assert (settings.image("us-east-1"), settings.image("us-west-2")) == ("ami-01234567", "ami-89abcdef")
    assert settings.subnets == ("subnet-01234567", "subnet-89abcdef")
    assert (settings.has_public_address, settings.disk_gib, settings.key_name) == (False, 250, "ops")
    assert (settings.reservation("eu-west-1"), settings.reservation("us-east-1")) == ("cr-01234567", "none")
    assert AwsSettings.from_environ({}) == AwsSettings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("IMAGE", "ubuntu"),
        ("IMAGE", "us east=ami-01234567"),
        ("SUBNETS", "subnet-01234567;subnet-2"),
        ("SECURITY_GROUPS", "default"),
        ("PUBLIC_ADDRESS", "perhaps"),
        ("DISK_GIB", "4"),
        ("DISK_GIB", "lots"),
        ("DISK_TYPE", "floppy"),
        ("CAPACITY_RESERVATION", "all"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(InvalidRequest, match=f"CRUCIBLE_AWS_{name}"):
        AwsSettings.from_environ({f"CRUCIBLE_AWS_{name}": value})
