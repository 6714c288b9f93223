"""Reservations, volumes, tags, and what an account keeps beside machines."""

from typing import Any

import pytest

from aws_front import ARM, X86, Amazon
from crucible.world.facts import Account, Market
from worlds import BIG, EAST, ME, NEAR, NEXT, SMALL, a_sale

HELD = {"InstanceType": SMALL, "InstancePlatform": "Linux/UNIX", "AvailabilityZone": NEAR, "InstanceCount": 2}
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me"


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


def tags(kind: str, **tags: str) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}]


# --- reservations ---------------------------------------------------------------------------------------


def reserve(amazon: Amazon, **values: Any) -> dict[str, Any]:
    return dict(amazon.ec2("CreateCapacityReservation", **{**HELD, **values})["CapacityReservation"])


def held(amazon: Amazon) -> dict[str, Any]:
    (found,) = amazon.ec2("DescribeCapacityReservations")["CapacityReservations"]
    return dict(found)


def targeting(id: str) -> dict[str, Any]:
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": id}}}


def test_a_reservation_is_used_by_whoever_names_it(amazon: Amazon) -> None:
    id = reserve(amazon, InstanceMatchCriteria="targeted")["CapacityReservationId"]
    (outside,) = amazon.run()
    assert "CapacityReservationId" not in outside
    (inside,) = amazon.run(**targeting(id))
    assert inside["CapacityReservationId"] == id
    assert (held(amazon)["TotalInstanceCount"], held(amazon)["AvailableInstanceCount"]) == (2, 1)
    asked = {"ImageId": amazon.image, "InstanceType": SMALL, "MinCount": 2, "MaxCount": 2}
    assert amazon.refused("RunInstances", **asked, **targeting(id)) == "ReservationCapacityExceeded"
    assert amazon.refused("RunInstances", **{**asked, "InstanceType": BIG}, **targeting(id)) == "InvalidParameterValue"
    spot = {"InstanceMarketOptions": {"MarketType": "spot"}}
    assert amazon.refused("RunInstances", **asked, **targeting(id), **spot) == "InvalidParameterCombination"


def test_an_open_reservation_takes_in_what_fits(amazon: Amazon) -> None:
    id = reserve(amazon)["CapacityReservationId"]
    preference = {"CapacityReservationPreference": "none"}
    (declined,) = amazon.run(CapacityReservationSpecification=preference)
    assert "CapacityReservationId" not in declined
    assert {one["CapacityReservationId"] for one in amazon.run(2)} == {id}
    (outside,) = amazon.run()
    assert "CapacityReservationId" not in outside
    only = {"CapacityReservationPreference": "capacity-reservations-only"}
    asked = {"ImageId": amazon.image, "InstanceType": SMALL, "MinCount": 1, "MaxCount": 1}
    assert (
        amazon.refused("RunInstances", **asked, CapacityReservationSpecification=only) == "ReservationCapacityExceeded"
    )


def test_a_reservation_is_made_once_and_cancelled_once(amazon: Amazon) -> None:
    first = reserve(amazon, ClientToken="t", TagSpecifications=tags("capacity-reservation", a="b"))
    assert reserve(amazon, ClientToken="t", TagSpecifications=tags("capacity-reservation", a="b")) == first
    other = {**HELD, "ClientToken": "t", "InstanceCount": 3}
    assert amazon.refused("CreateCapacityReservation", **other) == "IdempotentParameterMismatch"
    id = first["CapacityReservationId"]
    assert amazon.ec2("CancelCapacityReservation", CapacityReservationId=id) == {"Return": True}
    assert held(amazon)["State"] == "cancelled"
    assert amazon.refused("CancelCapacityReservation", CapacityReservationId=id) == "InvalidState"
    nobody = "cr-00000000000000000"
    missing = amazon.refused("CancelCapacityReservation", CapacityReservationId=nobody)
    assert missing == "InvalidCapacityReservationId.NotFound"


def test_reservations_count_against_room_and_quota() -> None:
    quota = Account(id=ME, quotas={(EAST, "p", Market.ON_DEMAND): 192})
    amazon = Amazon(a_sale(NEAR, SMALL, on_demand_capacity=1), a_sale(NEAR, BIG), accounts=(quota,))
    assert amazon.refused("CreateCapacityReservation", **HELD) == "InsufficientInstanceCapacity"
    big = {**HELD, "InstanceType": BIG}
    assert amazon.refused("CreateCapacityReservation", **big) == "VcpuLimitExceeded"
    assert amazon.refused("CreateCapacityReservation", **{**HELD, "AvailabilityZone": NEXT}) == "Unsupported"
    assert (
        amazon.refused("CreateCapacityReservation", **{**HELD, "InstancePlatform": "Windows"}) == "UnsupportedOperation"
    )


# --- volumes --------------------------------------------------------------------------------------------


def test_volumes_are_made_found_and_deleted(amazon: Amazon) -> None:
    made = amazon.ec2(
        "CreateVolume", AvailabilityZone=NEAR, Size=10, VolumeType="gp3", TagSpecifications=tags("volume", a="b")
    )
    amazon.run()
    found = amazon.ec2("DescribeVolumes", Filters=[{"Name": "status", "Values": ["available"]}])["Volumes"]
    assert [(one["VolumeId"], one["Size"], one["Tags"]) for one in found] == [(made["VolumeId"], 10, made["Tags"])]
    amazon.ec2("DeleteVolume", VolumeId=made["VolumeId"])
    assert amazon.refused("DeleteVolume", VolumeId=made["VolumeId"]) == "InvalidVolume.NotFound"
    assert amazon.refused("DescribeVolumes", VolumeIds=["vol-x"]) == "InvalidVolumeID.Malformed"


def test_a_volume_is_made_once_for_a_token(amazon: Amazon) -> None:
    asked = {"AvailabilityZone": NEAR, "Size": 10, "VolumeType": "gp3", "ClientToken": "t"}
    first = amazon.ec2("CreateVolume", **asked)
    assert amazon.ec2("CreateVolume", **asked) == first
    assert amazon.refused("CreateVolume", **{**asked, "Size": 11}) == "IdempotentParameterMismatch"
    assert len(amazon.ec2("DescribeVolumes")["Volumes"]) == 1


def test_a_disk_in_use_stays(amazon: Amazon) -> None:
    (one,) = amazon.run()
    disk = one["BlockDeviceMappings"][0]["Ebs"]["VolumeId"]
    assert amazon.refused("DeleteVolume", VolumeId=disk) == "VolumeInUse"
    (shown,) = amazon.ec2("DescribeVolumes", VolumeIds=[disk])["Volumes"]
    assert shown["Attachments"][0]["InstanceId"] == one["InstanceId"]


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"Size": 10}, "UnsupportedOperation"),  # gp2, unless gp3 is said
        ({"Size": 10, "VolumeType": "gp3", "Iops": 10_000}, "UnsupportedOperation"),
        ({"Size": 0, "VolumeType": "gp3"}, "InvalidParameterValue"),
        ({"VolumeType": "gp3"}, "MissingParameter"),
        ({"Size": 10, "VolumeType": "gp3", "AvailabilityZone": "us-east-1z"}, "InvalidParameterValue"),
        ({"Size": 10, "VolumeType": "gp9"}, "InvalidParameterValue"),
    ],
)
def test_a_volume_that_would_cost_otherwise_is_refused(amazon: Amazon, values: dict[str, Any], code: str) -> None:
    assert amazon.refused("CreateVolume", **{"AvailabilityZone": NEAR, **values}) == code


# --- tags -----------------------------------------------------------------------------------------------


def everything_tagged(amazon: Amazon) -> list[str]:
    (one,) = amazon.run(InstanceMarketOptions={"MarketType": "spot"})
    amazon.ec2("ImportKeyPair", KeyName="k", PublicKeyMaterial=PUBLIC.encode())
    return [
        one["InstanceId"],
        one["BlockDeviceMappings"][0]["Ebs"]["VolumeId"],
        one["SpotInstanceRequestId"],
        reserve(amazon)["CapacityReservationId"],
        amazon.ec2("CreateSecurityGroup", GroupName="g", Description="d")["GroupId"],
        amazon.ec2("CreatePlacementGroup", GroupName="p", Strategy="cluster")["PlacementGroup"]["GroupId"],
        amazon.ec2("DescribeKeyPairs")["KeyPairs"][0]["KeyPairId"],
    ]


def test_everything_that_has_an_id_can_be_tagged(amazon: Amazon) -> None:
    ids = everything_tagged(amazon)
    amazon.ec2("CreateTags", Resources=ids, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    amazon.ec2("DeleteTags", Resources=ids[:2], Tags=[{"Key": "a"}, {"Key": "b", "Value": "other"}])
    amazon.ec2("DeleteTags", Resources=ids[2:3])
    found = {(one["ResourceId"], one["Key"]) for one in amazon.ec2("DescribeTags")["Tags"]}
    assert found == {(id, "b") for id in ids[:2]} | {(id, key) for id in ids[3:] for key in "ab"}
    kinds = {one["ResourceType"] for one in amazon.ec2("DescribeTags")["Tags"]}
    assert kinds == {"instance", "volume", "capacity-reservation", "security-group", "placement-group", "key-pair"}
    of_volumes = amazon.ec2("DescribeTags", Filters=[{"Name": "resource-type", "Values": ["volume"]}])["Tags"]
    assert [one["ResourceId"] for one in of_volumes] == [ids[1]]


@pytest.mark.parametrize(
    ("id", "code"),
    [
        ("i-00000000000000000", "InvalidInstanceID.NotFound"),
        ("vol-00000000000000000", "InvalidVolume.NotFound"),
        ("sg-00000000000000000", "InvalidGroup.NotFound"),
        ("whatever", "InvalidID"),
    ],
)
def test_tags_go_on_all_or_none(amazon: Amazon, id: str, code: str) -> None:
    (one,) = amazon.run()
    assert amazon.refused("CreateTags", Resources=[one["InstanceId"], id], Tags=[{"Key": "a", "Value": "1"}]) == code
    assert amazon.ec2("DescribeTags")["Tags"] == []


# --- keys -----------------------------------------------------------------------------------------------


def test_keys_are_imported_named_and_deleted(amazon: Amazon) -> None:
    made = amazon.ec2("ImportKeyPair", KeyName="me", PublicKeyMaterial=PUBLIC.encode())
    assert (
        amazon.refused("ImportKeyPair", KeyName="me", PublicKeyMaterial=PUBLIC.encode()) == "InvalidKeyPair.Duplicate"
    )
    (shown,) = amazon.ec2("DescribeKeyPairs", KeyNames=["me"], IncludePublicKey=True)["KeyPairs"]
    assert (shown["KeyType"], shown["PublicKey"], shown["KeyPairId"]) == ("ed25519", PUBLIC, made["KeyPairId"])
    (one,) = amazon.run(KeyName="me")
    assert one["KeyName"] == "me"
    amazon.ec2("DeleteKeyPair", KeyName="me")
    assert amazon.ec2("DeleteKeyPair", KeyName="me")["Return"] is True
    assert amazon.refused("DescribeKeyPairs", KeyNames=["me"]) == "InvalidKeyPair.NotFound"


@pytest.mark.parametrize("text", [b"", b"hello", b"ssh-rsa %%%", b"ssh-ed25519 AAAA", b"ssh-dss AAAAB3NzaC1kc3M="])
def test_what_is_no_key_is_refused(amazon: Amazon, text: bytes) -> None:
    assert amazon.refused("ImportKeyPair", KeyName="me", PublicKeyMaterial=text or b" ") == "InvalidKey.Format"


def test_a_key_is_made_and_its_private_half_is_shown_once(amazon: Amazon) -> None:
    made = amazon.ec2("CreateKeyPair", KeyName="new", KeyType="ed25519")
    assert made["KeyMaterial"].startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert "PRIVATE" not in str(amazon.ec2("DescribeKeyPairs", IncludePublicKey=True))
    assert amazon.refused("CreateKeyPair", KeyName="rsa") == "UnsupportedOperation"


def test_images_are_found_by_id_owner_and_name(amazon: Amazon) -> None:
    (one,) = amazon.ec2("DescribeImages", ImageIds=[amazon.image])["Images"]
    assert (one["Architecture"], one["RootDeviceName"]) == ("x86_64", X86.root)
    assert amazon.ec2("DescribeImages", Owners=["self"])["Images"] == []
    arm = amazon.ec2("DescribeImages", Owners=["amazon"], Filters=[{"Name": "architecture", "Values": ["arm64"]}])
    assert ARM.id(EAST) in {image["ImageId"] for image in arm["Images"]}
    assert amazon.refused("DescribeImages", ImageIds=["ami-00000000000000000"]) == "InvalidAMIID.NotFound"
