"""Every kind of fault as an unmodified client sees it: boto3 against one real Lab."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, HTTPClientError

from crucible.lab.faults import FaultKind
from crucible.model.errors import PlatformError
from lab_process import RunningLab

# Thirty seconds of the cloud are one and a half here.
SPEED = 20.0
PATIENCE_S = 20.0

# What machines are told of time: the launch by the metadata service, and the clock of this computer.
TELLS_TIME = """#!/usr/bin/env python3
import json, os, time, urllib.request
base = os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
def ask(path, method="GET", **headers):
    return urllib.request.urlopen(urllib.request.Request(base + path, method=method, headers=headers)).read().decode()
token = ask("/latest/api/token", "PUT", **{"X-aws-ec2-metadata-token-ttl-seconds": "60"})
document = ask("/latest/dynamic/instance-identity/document", **{"X-aws-ec2-metadata-token": token})
print(json.dumps({"told": json.loads(document)["pendingTime"], "clock": time.time()}), flush=True)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with RunningLab(tmp_path_factory.mktemp("faults"), speed=SPEED) as running:
        yield running


@pytest.fixture(scope="module")
def session(lab: RunningLab) -> "boto3.Session":
    running = lab.running
    return boto3.Session(running.access_key, running.secret_key, region_name="us-east-1")


def client_of(session: "boto3.Session", lab: RunningLab, service: str) -> Any:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=20, proxies={})
    return session.client(service, endpoint_url=lab.url, config=config)


@pytest.fixture(scope="module")
def client(session: "boto3.Session", lab: RunningLab) -> Iterator[Any]:
    ec2 = client_of(session, lab, "ec2")
    yield ec2
    ec2.close()


class Shop:
    """Buys for one test, and knows its machines by a tag of its own."""

    def __init__(self, ec2: Any, name: str, image: str) -> None:
        self.ec2 = ec2
        self.name = name
        self.image = image

    def buy(self, **said: Any) -> list[str]:
        asked = {
            "ImageId": self.image,
            "InstanceType": "g5.xlarge",
            "MinCount": 1,
            "MaxCount": 1,
            "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "test", "Value": self.name}]}],
            **said,
        }
        return [one["InstanceId"] for one in self.ec2.run_instances(**asked)["Instances"]]

    def listed(self) -> list[dict[str, Any]]:
        answer = self.ec2.describe_instances(Filters=[{"Name": "tag:test", "Values": [self.name]}])
        return [one for reservation in answer["Reservations"] for one in reservation["Instances"]]

    def ids(self) -> list[str]:
        return [one["InstanceId"] for one in self.listed()]

    def one(self, machine: str) -> dict[str, Any]:
        return next(one for one in self.listed() if one["InstanceId"] == machine)

    def state(self, machine: str) -> str:
        return str(self.one(machine)["State"]["Name"])

    def end(self, *machines: str) -> str:
        answer = self.ec2.terminate_instances(InstanceIds=list(machines))
        return str(answer["TerminatingInstances"][0]["CurrentState"]["Name"])

    def console(self, machine: str) -> str:
        return str(self.ec2.get_console_output(InstanceId=machine).get("Output", ""))


@pytest.fixture
def shop(client: Any, lab: RunningLab, request: pytest.FixtureRequest) -> Iterator[Shop]:
    images = client.describe_images(Owners=["amazon"])["Images"]
    mine = Shop(client, request.node.name, images[0]["ImageId"])
    yield mine
    lab.control.clear_faults()
    left = [one["InstanceId"] for one in mine.listed() if one["State"]["Name"] in ("pending", "running")]
    if left:
        mine.end(*left)


def until(is_so: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.03)
    return found


def struck(lab: RunningLab, kind: FaultKind) -> int:
    return sum(event["what"] == "fault" and event["note"].startswith(f"{kind} ") for event in lab.control.events())


def refusal(call: Callable[[], Any]) -> tuple[str, int]:
    with pytest.raises(ClientError) as caught:
        call()
    answer = caught.value.response
    return answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]


# --- answers that do not come -----------------------------------------------------------------------------------


def test_a_connection_that_is_cut_before_bought_nothing(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("error-before-effect", operation="RunInstances", count=1)
    with pytest.raises(HTTPClientError):
        shop.buy()
    assert shop.ids() == []
    assert len(shop.buy()) == 1


def test_a_lost_reply_has_bought_and_the_same_token_finds_it(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("lost-reply", operation="RunInstances", count=1)
    with pytest.raises(HTTPClientError):
        shop.buy(ClientToken="lost-1")
    (bought,) = shop.ids()
    assert shop.buy(ClientToken="lost-1") == [bought]
    assert shop.ids() == [bought]


@pytest.mark.parametrize(("status", "code"), [(500, "InternalError"), (503, "Unavailable")])
def test_an_internal_error_before_has_done_nothing(lab: RunningLab, shop: Shop, status: int, code: str) -> None:
    lab.control.fail("server-error", operation="RunInstances", count=1, status=status)
    assert refusal(shop.buy) == (code, status)
    assert shop.ids() == []


def test_an_internal_error_after_has_bought_and_the_same_token_finds_it(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("server-error-after", operation="RunInstances", count=1)
    assert refusal(lambda: shop.buy(ClientToken="after-1")) == ("InternalError", 500)
    (bought,) = shop.ids()
    assert shop.buy(ClientToken="after-1") == [bought]


def test_a_slow_answer_comes_late_and_whole(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("slow", operation="DescribeInstances", count=1, seconds=0.5)
    began = time.monotonic()
    assert shop.ids() == []
    assert time.monotonic() - began >= 0.5


# --- refusals -----------------------------------------------------------------------------------------------------


def test_too_many_requests_are_refused_in_amazons_words(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("throttle", operation="DescribeInstances", count=1)
    assert refusal(shop.ids) == ("RequestLimitExceeded", 503)
    assert shop.ids() == []


def test_capacity_is_refused_where_the_rule_says(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("no-capacity", type="p4d.*")
    assert refusal(lambda: shop.buy(InstanceType="p4d.24xlarge"))[0] == "InsufficientInstanceCapacity"
    assert len(shop.buy(InstanceType="g5.xlarge")) == 1


@pytest.mark.parametrize(
    ("market", "code"),
    [({}, "VcpuLimitExceeded"), ({"MarketType": "spot"}, "MaxSpotInstanceCountExceeded")],
    ids=["on-demand", "spot"],
)
def test_a_limit_of_the_account_is_refused(lab: RunningLab, shop: Shop, market: dict[str, str], code: str) -> None:
    lab.control.fail("quota", count=1)
    said = {"InstanceMarketOptions": market} if market else {}
    assert refusal(lambda: shop.buy(**said))[0] == code


def test_expired_credentials_are_refused_by_every_service(
    lab: RunningLab, shop: Shop, session: "boto3.Session"
) -> None:
    lab.control.fail("auth-expired", count=2)
    sts = client_of(session, lab, "sts")
    assert refusal(shop.ids)[0] == "RequestExpired"
    assert refusal(sts.get_caller_identity)[0] == "ExpiredToken"
    assert sts.get_caller_identity()["Account"] == lab.running.account
    sts.close()


# --- listings and orders that lie -----------------------------------------------------------------------------------


def test_a_new_machine_appears_late(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("late-visibility", count=1, seconds=30)
    (bought,) = shop.buy()
    assert shop.ids() == []
    assert refusal(lambda: shop.end(bought))[0] == "InvalidInstanceID.NotFound"
    until(lambda: shop.ids() == [bought], "the machine in a listing")
    launched = shop.one(bought)["LaunchTime"].timestamp()
    assert lab.control.clock()["now"] - launched >= 30


def test_a_machine_is_missing_from_one_answer_and_there_in_the_next(lab: RunningLab, shop: Shop) -> None:
    bought = shop.buy(MinCount=3, MaxCount=3)
    lab.control.fail("empty-listing", operation="DescribeInstances", count=1)
    missing = set(bought) - set(shop.ids())
    assert len(missing) == 1
    assert set(shop.ids()) == set(bought)


def test_an_order_to_end_is_accepted_and_forgotten_until_it_is_given_again(lab: RunningLab, shop: Shop) -> None:
    (bought,) = shop.buy()
    until(lambda: shop.state(bought) == "running", "the machine")
    lab.control.fail("lying-terminate", count=2)
    assert [shop.end(bought) for _ in range(2)] == ["shutting-down"] * 2
    assert shop.state(bought) == "running"
    shop.end(bought)
    until(lambda: shop.state(bought) == "terminated", "its end")


def test_a_request_that_is_delivered_twice_buys_twice_only_without_a_token(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("duplicate-delivery", operation="RunInstances", count=2)
    (first,) = shop.buy(ClientToken="twice-1")
    assert shop.ids() == [first]
    shop.buy(ClientToken="")
    assert len(shop.ids()) == 3


# --- machines that are not as they should be -----------------------------------------------------------------------


def test_a_new_machine_gets_the_address_of_a_dead_one(lab: RunningLab, shop: Shop) -> None:
    first, second = shop.buy(MinCount=2, MaxCount=2)
    shop.end(first)
    until(lambda: shop.state(first) == "terminated", "its end")
    address = next(m for m in lab.control.status(is_everything=True)["machines"] if m["id"] == first)["private_address"]
    lab.control.fail("address-reuse", count=1)
    (third,) = shop.buy()
    assert shop.one(third)["PrivateIpAddress"] == address
    assert shop.one(second)["PrivateIpAddress"] != address


def test_a_disk_outlives_its_machine_and_costs_on(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("orphan-disk", count=1)
    (bought,) = shop.buy()
    until(lambda: shop.state(bought) == "running" and struck(lab, FaultKind.ORPHAN_DISK), "its boot")
    (disk,) = [mapping["Ebs"]["VolumeId"] for mapping in shop.one(bought)["BlockDeviceMappings"]]
    shop.end(bought)
    until(lambda: shop.state(bought) == "terminated", "its end")
    (volume,) = shop.ec2.describe_volumes(VolumeIds=[disk])["Volumes"]
    assert volume["State"] == "available"
    shop.ec2.delete_volume(VolumeId=disk)


def test_a_machine_runs_and_its_user_data_does_not(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("user-data-fails", count=1)
    (bought,) = shop.buy(UserData="#!/bin/sh\necho all is well\n")
    said = until(lambda: shop.console(bought), "its console")
    assert "user-data failed" in said
    assert "all is well" not in said
    assert shop.state(bought) == "running"


def test_a_machine_dies_without_a_word(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("sudden-death", count=1, seconds=5)
    (bought,) = shop.buy()
    until(lambda: shop.state(bought) == "terminated", "its death")
    dead = next(machine for machine in lab.control.status(is_everything=True)["machines"] if machine["id"] == bought)
    assert dead["end"] == "seller"
    assert dead["notice_at"] is None


@pytest.mark.parametrize("seconds", [30, 0])
def test_a_spot_machine_is_told_as_late_as_the_rule_says(lab: RunningLab, shop: Shop, seconds: int) -> None:
    lab.control.fail("notice", count=1, seconds=seconds)
    before = struck(lab, FaultKind.NOTICE)
    (bought,) = shop.buy(InstanceMarketOptions={"MarketType": "spot"})
    until(lambda: struck(lab, FaultKind.NOTICE) > before, "its boot")
    (taken,) = lab.control.preempt(bought)
    until(lambda: shop.state(bought) == "terminated", "its end")
    if seconds:
        assert taken["taken_at"] - taken["notice_at"] == pytest.approx(seconds, abs=1)
    else:
        assert taken["notice_at"] is None


def test_a_machine_with_a_wrong_clock_is_told_wrong_times(lab: RunningLab, shop: Shop) -> None:
    lab.control.fail("clock-skew", count=1, seconds=-3600)
    (bought,) = shop.buy(UserData=TELLS_TIME)
    said = json.loads(until(lambda: shop.console(bought), "its console"))
    told = datetime.fromisoformat(said["told"]).timestamp()
    assert said["clock"] - told == pytest.approx(3600, abs=60)


# --- rules ------------------------------------------------------------------------------------------------------------


def test_a_bad_rule_is_refused_with_what_is_wrong_and_changes_nothing(lab: RunningLab) -> None:
    with pytest.raises(PlatformError, match="did you mean throttle"):
        lab.control.fail("trottle")
    assert lab.control.faults() == []
