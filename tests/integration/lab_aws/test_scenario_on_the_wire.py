"""A scenario as an unmodified client sees it: prices, capacity, faults and machines taken away, by the Lab's clock."""

import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from lab_process import RunningLab

# Sixty times as fast: a minute of the scenario is a second here. Machines are taken every two minutes, so that one that
# was bought late is caught as well.
SCENARIO = """
name: on the wire
faults:
  - {kind: quota, type: g4dn.*}
events:
  - {at: 0s, do: capacity, type: p4d.*, market: on-demand, machines: 0}
  - {at: 0s, do: price, zone: us-east-1*, type: g5.xlarge, usd_per_hour: 0.123456}
  - {at: 2m, do: preempt, type: g5.*, notice: 30s}
  - {at: 4m, do: preempt, type: g5.*, notice: 30s}
  - {at: 6m, do: preempt, type: g5.*, notice: 30s}
  - {at: 8m, do: preempt, type: g5.*, notice: 30s}
"""
IMAGE = "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    folder = tmp_path_factory.mktemp("scenario")
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO)
    with RunningLab(folder, speed=60.0, scenario=path) as running:
        yield running


@pytest.fixture(scope="module")
def ec2(lab: RunningLab) -> Iterator[Any]:
    session = boto3.Session(lab.running.access_key, lab.running.secret_key, region_name="us-east-1")
    client = session.client("ec2", endpoint_url=lab.url, config=Config(retries={"total_max_attempts": 1}, proxies={}))
    yield client
    client.close()


def refused(ec2: Any, **said: Any) -> str:
    with pytest.raises(ClientError) as caught:
        ec2.run_instances(ImageId=IMAGE, MinCount=1, MaxCount=1, **said)
    return str(caught.value.response["Error"]["Code"])


def test_a_scenario_is_played_by_the_clock(lab: RunningLab, ec2: Any) -> None:
    spot = {"InstanceMarketOptions": {"MarketType": "spot"}}
    bought = ec2.run_instances(ImageId=IMAGE, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, **spot)["Instances"]
    machine = bought[0]["InstanceId"]
    assert refused(ec2, InstanceType="p4d.24xlarge") == "InsufficientInstanceCapacity"
    assert refused(ec2, InstanceType="g4dn.xlarge") == "VcpuLimitExceeded"
    (price,) = {
        point["SpotPrice"]
        for point in ec2.describe_spot_price_history(
            InstanceTypes=["g5.xlarge"], StartTime=bought[0]["LaunchTime"], ProductDescriptions=["Linux/UNIX"]
        )["SpotPriceHistory"]
    }
    assert float(price) == 0.123456
    deadline = time.monotonic() + PATIENCE_S
    while not (ended := [event for event in lab.control.events(subject=machine) if event["what"] == "ended"]):
        assert time.monotonic() < deadline, "the machine was not taken"
        time.sleep(0.1)
    told = next(event for event in lab.control.events(subject=machine) if event["what"] == "noticed")
    assert ended[0]["at"] - told["at"] == pytest.approx(30, abs=1.01)
    (played,) = {event["subject"] for event in lab.control.events() if event["what"] == "scenario"}
    assert played == "on the wire"
