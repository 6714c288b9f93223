"""Faults over the wire: each does what it says, and no more."""

from typing import Any

import pytest

from aws_front import Amazon, LostConnection, Refusal
from crucible.lab.faults import FaultKind
from crucible.world.machine import Machine, State
from worlds import ME, SMALL


@pytest.fixture
def amazon() -> Amazon:
    return Amazon()


def truth(amazon: Amazon) -> tuple[Machine, ...]:
    return amazon.lab.world.machines(ME, None, amazon.lab.clock.at, is_omniscient=True)


def buy(amazon: Amazon, **values: Any) -> str:
    """The code of the refusal."""
    with pytest.raises(Refusal) as refusal:
        amazon.run(**values)
    return refusal.value.code


def test_a_cut_before_the_effect_buys_nothing(amazon: Amazon) -> None:
    amazon.fail(FaultKind.ERROR_BEFORE_EFFECT, operation="RunInstances", count=1)
    with pytest.raises(LostConnection):
        amazon.run()
    assert truth(amazon) == ()
    assert amazon.run()


def test_a_lost_reply_buys_and_the_token_finds_it_again(amazon: Amazon) -> None:
    amazon.fail(FaultKind.LOST_REPLY, operation="RunInstances", count=1)
    with pytest.raises(LostConnection):
        amazon.run(ClientToken="t")
    (made,) = truth(amazon)
    (again,) = amazon.run(ClientToken="t")
    assert again["InstanceId"] == made.id
    assert amazon.lab.woken == 2


@pytest.mark.parametrize(
    ("kind", "status", "code", "count"),
    [
        (FaultKind.SERVER_ERROR, 500, "InternalError", 0),
        (FaultKind.SERVER_ERROR, 503, "Unavailable", 0),
        (FaultKind.SERVER_ERROR_AFTER, 500, "InternalError", 1),
        (FaultKind.THROTTLE, None, "RequestLimitExceeded", 0),
        (FaultKind.AUTH_EXPIRED, None, "RequestExpired", 0),
        (FaultKind.NO_CAPACITY, None, "InsufficientInstanceCapacity", 0),
        (FaultKind.QUOTA, None, "VcpuLimitExceeded", 0),
    ],
)
def test_refusals_have_amazons_codes(
    amazon: Amazon, kind: FaultKind, status: int | None, code: str, count: int
) -> None:
    amazon.fail(kind, status=status, operation="RunInstances")
    assert buy(amazon) == code
    assert len(truth(amazon)) == count


def test_json_says_it_in_its_own_words(amazon: Amazon) -> None:
    amazon.fail(FaultKind.THROTTLE, operation="GetParameter", count=1)
    assert amazon.refused("GetParameter", "ssm", Name="/a") == "ThrottlingException"
    amazon.fail(FaultKind.AUTH_EXPIRED, operation="GetCallerIdentity", count=1)
    assert amazon.refused("GetCallerIdentity", "sts") == "ExpiredToken"


def test_what_a_token_has_bought_is_not_short_afterwards(amazon: Amazon) -> None:
    (first,) = amazon.run(ClientToken="t")
    amazon.fail(FaultKind.NO_CAPACITY, operation="RunInstances")
    (again,) = amazon.run(ClientToken="t")
    assert again["InstanceId"] == first["InstanceId"]
    assert buy(amazon) == "InsufficientInstanceCapacity"


def test_a_slow_answer_is_slow_whatever_it_says(amazon: Amazon) -> None:
    amazon.fail(FaultKind.SLOW, seconds=(7.0, 7.0))
    good = amazon.front.answer(amazon.request("ec2", "DescribeRegions"))
    bad = amazon.front.answer(amazon.request("ec2", "DescribeRegions", RegionNames=["mars"]))
    assert (good.status, good.after_s, bad.status, bad.after_s) == (200, 7.0, 400, 7.0)


def test_a_late_instance_is_not_there_until_it_is(amazon: Amazon) -> None:
    amazon.fail(FaultKind.LATE_VISIBILITY, seconds=(20.0, 20.0), count=1)
    (one,) = amazon.run()
    asked = {"InstanceIds": [one["InstanceId"]]}
    assert amazon.instances() == []
    assert amazon.refused("DescribeInstances", **asked) == "InvalidInstanceID.NotFound"
    assert amazon.refused("TerminateInstances", **asked) == "InvalidInstanceID.NotFound"
    assert (
        amazon.refused("CreateTags", Resources=asked["InstanceIds"], Tags=[{"Key": "a", "Value": "b"}])
        == "InvalidInstanceID.NotFound"
    )
    amazon.later(21)
    assert len(amazon.instances(**asked)) == 1


def test_a_lying_terminate_says_yes_and_does_nothing(amazon: Amazon) -> None:
    (one,) = amazon.run()
    amazon.later(60)
    amazon.fail(FaultKind.LYING_TERMINATE, count=1)
    (change,) = amazon.ec2("TerminateInstances", InstanceIds=[one["InstanceId"]])["TerminatingInstances"]
    assert change["CurrentState"]["Name"] == "shutting-down"
    assert truth(amazon)[0].state is State.RUNNING
    amazon.ec2("TerminateInstances", InstanceIds=[one["InstanceId"]])
    assert truth(amazon)[0].state is State.STOPPING


def test_a_lie_about_one_machine_is_about_that_one(amazon: Amazon) -> None:
    spared, other = (one["InstanceId"] for one in amazon.run(2))
    amazon.fail(FaultKind.LYING_TERMINATE, machine=spared)
    amazon.ec2("TerminateInstances", InstanceIds=[spared, other])
    assert {machine.id: machine.state for machine in truth(amazon)} == {spared: State.PENDING, other: State.STOPPING}


def test_a_request_that_arrives_twice_buys_once_if_it_has_a_token(amazon: Amazon) -> None:
    amazon.fail(FaultKind.DUPLICATE_DELIVERY, operation="RunInstances", count=2)
    amazon.run(ClientToken="t")
    assert len(truth(amazon)) == 1
    amazon.run(ClientToken="")
    assert len(truth(amazon)) == 3


@pytest.mark.parametrize("operation", ["DescribeInstances", "DescribeInstanceStatus", "DescribeVolumes"])
def test_one_thing_is_missing_from_one_listing(amazon: Amazon, operation: str) -> None:
    amazon.run(2)
    amazon.run(1)
    amazon.later(60)
    amazon.fail(FaultKind.EMPTY_LISTING, operation=operation, count=1)
    assert [_count(amazon.ec2(operation)), _count(amazon.ec2(operation))] == [2, 3]


def _count(answer: dict[str, Any]) -> int:
    things = answer.get("InstanceStatuses") or answer.get("Volumes")
    return len(things) if things is not None else sum(len(part["Instances"]) for part in answer["Reservations"])


def test_an_empty_listing_stays_empty(amazon: Amazon) -> None:
    amazon.fail(FaultKind.EMPTY_LISTING)
    assert amazon.instances() == []


def test_an_address_comes_back_at_once(amazon: Amazon) -> None:
    (first,) = amazon.run()
    amazon.ec2("TerminateInstances", InstanceIds=[first["InstanceId"]])
    amazon.later(10)
    amazon.fail(FaultKind.ADDRESS_REUSE, count=1)
    assert amazon.run()[0]["PrivateIpAddress"] == first["PrivateIpAddress"]
    assert amazon.run()[0]["PrivateIpAddress"] != first["PrivateIpAddress"]


def test_rules_find_their_machines_by_tag_type_and_region(amazon: Amazon) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "team", "Value": "red"}]}]
    amazon.fail(FaultKind.NO_CAPACITY, tag=("team", "red"), type=SMALL, region="us-*")
    assert buy(amazon, TagSpecifications=tags) == "InsufficientInstanceCapacity"
    assert amazon.run()


def test_reservations_are_short_too(amazon: Amazon) -> None:
    amazon.fail(FaultKind.NO_CAPACITY, operation="CreateCapacityReservation", count=1)
    asked = {
        "InstanceType": SMALL,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": "us-east-1a",
        "InstanceCount": 1,
    }
    assert amazon.refused("CreateCapacityReservation", **asked) == "InsufficientInstanceCapacity"
    assert amazon.ec2("CreateCapacityReservation", **asked)
