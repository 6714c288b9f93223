"""Instances over the wire: bought once however often they are asked for, listed as EC2 lists, ended as EC2 ends."""

import base64
from dataclasses import replace
from typing import Any

import pytest

from aws_front import ARM, X86, Amazon
from crucible.lab.aws.places import subnet_id
from crucible.world.facts import Account, Market
from crucible.world.machine import State
from worlds import BIG, EAST, FAR, ME, NEAR, NEXT, SMALL, TYPES, a_sale

SPOT: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}


def tagged(kind: str = "instance", **tags: str) -> dict[str, Any]:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


# --- buying ---------------------------------------------------------------------------------------------


def test_what_was_asked_for_is_bought(amazon: Amazon) -> None:
    bought = amazon.run(
        3,
        Placement={"AvailabilityZone": NEXT},
        UserData=base64.b64encode(b"#!/bin/sh\necho hi\n").decode(),
        TagSpecifications=[tagged(Name="n"), tagged("volume", Of="n")],
        BlockDeviceMappings=[{"DeviceName": X86.root, "Ebs": {"VolumeSize": 200, "VolumeType": "gp3"}}],
        InstanceInitiatedShutdownBehavior="terminate",
    )
    assert [one["AmiLaunchIndex"] for one in bought] == [0, 1, 2]
    machines = amazon.lab.world.machines(ME, EAST, amazon.lab.clock.at)
    assert [machine.id for machine in machines] == [one["InstanceId"] for one in bought]
    assert {machine.zone for machine in machines} == {NEXT}
    assert {machine.user_data for machine in machines} == {b"#!/bin/sh\necho hi\n"}
    assert all(machine.tags == {"Name": "n"} and machine.ends_on_shutdown for machine in machines)
    assert {(disk.gib, disk.tags["Of"]) for disk in amazon.lab.world.disks(ME, EAST)} == {(200, "n")}
    assert amazon.lab.details[machines[0].id]["ami-id"] == amazon.image
    assert amazon.lab.woken == 1


def test_the_same_token_gives_the_same_instances(amazon: Amazon) -> None:
    first = amazon.run(2, ClientToken="t-1")
    amazon.later(60)
    again = amazon.run(2, ClientToken="t-1")
    assert [one["InstanceId"] for one in first] == [one["InstanceId"] for one in again]
    assert {one["State"]["Name"] for one in again} == {"running"}
    assert len(amazon.instances()) == 2


def test_the_same_token_with_another_request_is_refused(amazon: Amazon) -> None:
    amazon.run(ClientToken="t-1")
    assert (
        amazon.refused("RunInstances", **asking(amazon, ClientToken="t-1", MaxCount=2)) == "IdempotentParameterMismatch"
    )
    assert len(amazon.instances()) == 1


def test_a_token_is_of_one_region(amazon: Amazon) -> None:
    amazon.run(ClientToken="t-1")
    elsewhere = amazon.ec2(
        "RunInstances", "us-west-2", **asking(amazon, ImageId=X86.id("us-west-2"), ClientToken="t-1")
    )
    assert elsewhere["Instances"][0]["InstanceId"] != amazon.instances()[0]["InstanceId"]


def test_as_many_as_there_are_down_to_the_least() -> None:
    amazon = Amazon(a_sale(NEAR, SMALL, on_demand_capacity=3))
    assert len(amazon.run(MinCount=2, MaxCount=5)) == 3
    assert amazon.refused("RunInstances", **asking(amazon)) == "InsufficientInstanceCapacity"


def asking(amazon: Amazon, **values: Any) -> dict[str, Any]:
    return {"ImageId": amazon.image, "InstanceType": SMALL, "MinCount": 1, "MaxCount": 1, **values}


def test_what_is_short_has_the_code_that_clients_look_for() -> None:
    quota = Account(id=ME, quotas={(EAST, "g", Market.ON_DEMAND): 4, (EAST, "g", Market.SPOT): 4})
    amazon = Amazon(a_sale(NEAR, SMALL, spot_capacity=0), a_sale(NEXT, BIG), accounts=(quota,))
    assert amazon.refused("RunInstances", **asking(amazon, MinCount=2, MaxCount=2)) == "VcpuLimitExceeded"
    twice = asking(amazon, MinCount=2, MaxCount=2, **SPOT)
    assert amazon.refused("RunInstances", **twice) == "MaxSpotInstanceCountExceeded"
    assert amazon.refused("RunInstances", **asking(amazon, **SPOT)) == "InsufficientInstanceCapacity"
    cheap = {"InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.1"}}}
    assert amazon.refused("RunInstances", **asking(amazon, InstanceType=BIG, **cheap)) == "SpotMaxPriceTooLow"


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"ImageId": None}, "MissingParameter"),
        ({"InstanceType": None}, "MissingParameter"),
        ({"ImageId": "ami-1"}, "InvalidAMIID.Malformed"),
        ({"ImageId": "ami-00000000000000000"}, "InvalidAMIID.NotFound"),
        ({"ImageId": ARM.id(EAST)}, "InvalidParameterValue"),
        ({"InstanceType": "p9.huge"}, "InvalidParameterValue"),
        ({"InstanceType": BIG, "Placement": {"AvailabilityZone": NEXT}}, "Unsupported"),
        ({"Placement": {"AvailabilityZone": FAR}}, "InvalidParameterValue"),
        ({"Placement": {"AvailabilityZone": NEAR}, "SubnetId": subnet_id(ME, NEXT)}, "InvalidParameterValue"),
        ({"Placement": {"GroupName": "nobody"}}, "InvalidPlacementGroup.Unknown"),
        ({"Placement": {"Tenancy": "dedicated"}}, "UnsupportedOperation"),
        ({"MinCount": 0}, "InvalidParameterValue"),
        ({"MinCount": 2}, "InvalidParameterValue"),
        ({"KeyName": "nobody"}, "InvalidKeyPair.NotFound"),
        ({"SubnetId": "subnet-00000000000000000"}, "InvalidSubnetID.NotFound"),
        ({"SubnetId": "there"}, "InvalidSubnetID.Malformed"),
        ({"SecurityGroupIds": ["sg-00000000000000000"]}, "InvalidGroup.NotFound"),
        ({"SecurityGroups": ["nobody"]}, "InvalidGroup.NotFound"),
        ({"UserData": "%%%"}, "InvalidUserData.Malformed"),
        ({"UserData": base64.b64encode(b"x" * 16_385).decode()}, "InvalidParameterValue"),
        ({"ClientToken": "t" * 65}, "InvalidParameterValue"),
        ({"InstanceMarketOptions": {"MarketType": "capacity-block"}}, "UnsupportedOperation"),
        ({"InstanceMarketOptions": {"SpotOptions": {"MaxPrice": "free"}}}, "InvalidParameterValue"),
        ({"InstanceMarketOptions": {"SpotOptions": {"SpotInstanceType": "persistent"}}}, "UnsupportedOperation"),
        ({"HibernationOptions": {"Configured": True}}, "UnsupportedOperation"),
        ({"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9}}]}, "UnsupportedOperation"),
        ({"BlockDeviceMappings": [{"DeviceName": X86.root, "Ebs": {"VolumeType": "io2"}}]}, "UnsupportedOperation"),
        ({"BlockDeviceMappings": [{"DeviceName": X86.root, "Ebs": {"VolumeSize": 1}}]}, "InvalidBlockDeviceMapping"),
        ({"TagSpecifications": [tagged("vpc", a="b")]}, "InvalidParameterValue"),
        ({"TagSpecifications": [tagged(**{"aws:a": "b"})]}, "InvalidParameterValue"),
        ({"TagSpecifications": [tagged(**{str(n): "" for n in range(51)})]}, "TagLimitExceeded"),
        (
            {
                "CapacityReservationSpecification": {
                    "CapacityReservationTarget": {"CapacityReservationId": "cr-0" + 16 * "0"}
                }
            },
            "InvalidCapacityReservationId.NotFound",
        ),
    ],
)
def test_a_request_that_ec2_would_refuse_is_refused_and_nothing_is_bought(
    amazon: Amazon, values: dict[str, Any], code: str
) -> None:
    asked = {name: value for name, value in asking(amazon, **values).items() if value is not None}
    assert amazon.refused("RunInstances", **asked) == code
    assert amazon.instances() == []


# --- interfaces -----------------------------------------------------------------------------------------


def test_a_public_address_is_given_unless_it_is_declined(amazon: Amazon) -> None:
    (usual,) = amazon.run()
    (declined,) = amazon.run(NetworkInterfaces=[{"DeviceIndex": 0, "AssociatePublicIpAddress": False}])
    assert usual["PublicIpAddress"]
    assert "PublicIpAddress" not in declined


def test_several_interfaces_have_no_public_address_and_fast_ones_need_a_fabric() -> None:

    fast = tuple(replace(type, has_fast_fabric=type.name == BIG, network="3200 Gigabit") for type in TYPES)
    amazon = Amazon(a_sale(NEAR, BIG), a_sale(NEAR, SMALL), types=fast)
    efa = [{"DeviceIndex": min(n, 1), "NetworkCardIndex": n, "InterfaceType": "efa"} for n in range(4)]
    (instance,) = amazon.run(InstanceType=BIG, NetworkInterfaces=efa)
    assert [one["InterfaceType"] for one in instance["NetworkInterfaces"]] == ["efa"] * 4
    assert "PublicIpAddress" not in instance
    assert amazon.refused("RunInstances", **asking(amazon, NetworkInterfaces=efa[:1])) == "Unsupported"
    public = [{**efa[0], "AssociatePublicIpAddress": True}, efa[1]]
    both = asking(amazon, InstanceType=BIG, NetworkInterfaces=public)
    assert amazon.refused("RunInstances", **both) == "InvalidParameterCombination"
    twice = asking(amazon, InstanceType=BIG, NetworkInterfaces=[efa[0], efa[0]])
    assert amazon.refused("RunInstances", **twice) == "InvalidParameterCombination"


def test_network_is_said_of_the_instance_or_of_its_interfaces(amazon: Amazon) -> None:
    twice = asking(amazon, SubnetId=subnet_id(ME, NEAR), NetworkInterfaces=[{"DeviceIndex": 0}])
    assert amazon.refused("RunInstances", **twice) == "InvalidParameterCombination"
    (instance,) = amazon.run(NetworkInterfaces=[{"DeviceIndex": 0, "SubnetId": subnet_id(ME, NEXT)}])
    assert instance["Placement"]["AvailabilityZone"] == NEXT
    assert instance["SubnetId"] == subnet_id(ME, NEXT)


# --- listing --------------------------------------------------------------------------------------------


def test_instances_are_found_by_what_is_known_of_them(amazon: Amazon) -> None:
    (spot,) = amazon.run(TagSpecifications=[tagged(team="red", Name="x*")], **SPOT)
    (plain,) = amazon.run(ClientToken="tok", TagSpecifications=[tagged(team="blue")])

    def found(*filters: tuple[str, list[str]]) -> list[str]:
        asked = [{"Name": name, "Values": values} for name, values in filters]
        return [one["InstanceId"] for one in amazon.instances(Filters=asked)]

    assert found(("tag:team", ["red"])) == [spot["InstanceId"]]
    assert found(("tag:team", ["r*", "bl?e"])) == [spot["InstanceId"], plain["InstanceId"]]
    assert found(("tag:Name", ["x\\*"])) == [spot["InstanceId"]]
    assert found(("tag-key", ["Name"])) == [spot["InstanceId"]]
    assert found(("client-token", ["tok"])) == [plain["InstanceId"]]
    assert found(("instance-state-name", ["running"])) == []
    assert found(("instance-lifecycle", ["spot"]), ("tag:team", ["blue"])) == []
    assert found(("instance-type", [SMALL]), ("instance-id", [plain["InstanceId"]])) == [plain["InstanceId"]]
    assert found(("spot-instance-request-id", [spot["SpotInstanceRequestId"]])) == [spot["InstanceId"]]
    assert amazon.refused("DescribeInstances", Filters=[{"Name": "mood", "Values": ["x"]}]) == "InvalidParameterValue"


def test_pages_come_one_after_the_other_even_if_something_ends_between(amazon: Amazon) -> None:
    amazon.run(12)
    first = amazon.ec2("DescribeInstances", MaxResults=5)
    amazon.later(10)
    amazon.run(1)
    second = amazon.ec2("DescribeInstances", MaxResults=5, NextToken=first["NextToken"])
    last = amazon.ec2("DescribeInstances", MaxResults=5, NextToken=second["NextToken"])
    seen = [one["InstanceId"] for page in (first, second, last) for r in page["Reservations"] for one in r["Instances"]]
    assert len(seen) == len(set(seen)) == 13
    assert "NextToken" not in last


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"MaxResults": 4}, "InvalidParameterValue"),
        ({"MaxResults": 1001}, "InvalidParameterValue"),
        ({"MaxResults": 5, "NextToken": "x"}, "InvalidPaginationToken"),
        ({"MaxResults": 5, "NextToken": "WzEsIDJd"}, "InvalidPaginationToken"),
        ({"MaxResults": 5, "InstanceIds": ["i-00000000000000000"]}, "InvalidInstanceID.NotFound"),
        ({"InstanceIds": ["i-xyz"]}, "InvalidInstanceID.Malformed"),
    ],
)
def test_a_listing_that_cannot_be_is_refused(amazon: Amazon, values: dict[str, Any], code: str) -> None:
    assert amazon.refused("DescribeInstances", **values) == code


def test_a_page_and_ids_do_not_go_together(amazon: Amazon) -> None:
    (one,) = amazon.run()
    asked = {"MaxResults": 5, "InstanceIds": [one["InstanceId"]]}
    assert amazon.refused("DescribeInstances", **asked) == "InvalidParameterCombination"


def test_status_is_of_running_ones_unless_all_are_wanted(amazon: Amazon) -> None:
    (one,) = amazon.run()
    assert amazon.ec2("DescribeInstanceStatus")["InstanceStatuses"] == []
    (pending,) = amazon.ec2("DescribeInstanceStatus", IncludeAllInstances=True)["InstanceStatuses"]
    assert pending["InstanceState"] == {"Code": 0, "Name": "pending"}
    amazon.later(30)
    (running,) = amazon.ec2("DescribeInstanceStatus", InstanceIds=[one["InstanceId"]])["InstanceStatuses"]
    assert running["InstanceStatus"]["Status"] == "ok"


# --- ending ---------------------------------------------------------------------------------------------


def test_an_instance_ends_and_says_when_and_why(amazon: Amazon) -> None:
    (one,) = amazon.run()
    id = one["InstanceId"]
    amazon.later(60)
    (change,) = amazon.ec2("TerminateInstances", InstanceIds=[id])["TerminatingInstances"]
    assert (change["PreviousState"]["Name"], change["CurrentState"]) == (
        "running",
        {"Code": 32, "Name": "shutting-down"},
    )
    amazon.later(10)
    (ended,) = amazon.instances(InstanceIds=[id])
    assert ended["State"] == {"Code": 48, "Name": "terminated"}
    assert ended["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    assert ended["StateTransitionReason"] == "User initiated (2026-11-16 06:31:05 GMT)"
    assert "PrivateIpAddress" not in ended
    assert ended["BlockDeviceMappings"] == []
    assert amazon.lab.world.machine(id).ended_at == int(amazon.lab.clock.at) - 5
    (again,) = amazon.ec2("TerminateInstances", InstanceIds=[id])["TerminatingInstances"]
    assert again["CurrentState"]["Name"] == "terminated"


def test_one_that_switches_itself_off_says_so(amazon: Amazon) -> None:
    (one,) = amazon.run(InstanceInitiatedShutdownBehavior="terminate")
    amazon.later(60)
    amazon.lab.world.shut_down(one["InstanceId"], amazon.lab.clock.at)
    amazon.later(10)
    (ended,) = amazon.instances()
    assert ended["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"


def test_ending_is_all_or_none(amazon: Amazon) -> None:
    (one,) = amazon.run()
    ids = [one["InstanceId"], "i-00000000000000000"]
    assert amazon.refused("TerminateInstances", InstanceIds=ids) == "InvalidInstanceID.NotFound"
    assert amazon.lab.world.machine(one["InstanceId"]).state is State.PENDING


def test_a_disk_that_was_asked_to_stay_stays(amazon: Amazon) -> None:
    kept = {"DeviceName": X86.root, "Ebs": {"DeleteOnTermination": False}}
    (one,) = amazon.run(BlockDeviceMappings=[kept])
    amazon.run()
    assert one["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] is False
    amazon.ec2("TerminateInstances", InstanceIds=[machine["InstanceId"] for machine in amazon.instances()])
    amazon.later(10)
    (left,) = amazon.ec2("DescribeVolumes")["Volumes"]
    assert (left["VolumeId"], left["State"]) == (one["BlockDeviceMappings"][0]["Ebs"]["VolumeId"], "available")


def test_the_console_is_what_the_machine_printed(amazon: Amazon) -> None:
    (one,) = amazon.run()
    amazon.lab.guests.texts[one["InstanceId"]] = b"a" * 70_000 + b"end\n"
    output = base64.b64decode(amazon.ec2("GetConsoleOutput", InstanceId=one["InstanceId"])["Output"])
    assert len(output) == 65_536
    assert output.endswith(b"end\n")


def test_instances_of_others_are_not_there(amazon: Amazon) -> None:
    (one,) = amazon.run()
    asked = {"InstanceIds": [one["InstanceId"]]}
    assert amazon.refused("DescribeInstances", region="us-west-2", **asked) == "InvalidInstanceID.NotFound"
