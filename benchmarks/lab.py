"""The Lab with many machines, by an unmodified client: how long until they run, what each costs the Lab, how fast it
lists, sells and ends them. CPU seconds are those of the Lab's own process; the machines' processes are not in them."""

import contextlib
import http.client
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.lab.running import Control, LocalLab, Running

MACHINES = 200
LISTINGS, PARSED = 40, 5
PURCHASES = 100
IDLE_S = 5.0
TYPE = "g5.xlarge"
REGION = "us-east-1"
IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
# Boots take no time of the cloud's, so that what is measured is the Lab's; nothing is taken away by chance.
OPTIONS = ("--boot-scale", "0", "--hazard", "0", "--regions", REGION)
USER_DATA = "#!/bin/sh\necho ready\n"


class Shop:
    """A Lab and a client that buys there."""

    def __init__(self, lab: Running) -> None:
        self.pid = lab.pid
        self.control = Control(lab)
        session = boto3.Session(lab.access_key, lab.secret_key, region_name=REGION)
        config = Config(retries={"total_max_attempts": 1}, read_timeout=120, proxies={})
        self.ec2: Any = session.client("ec2", endpoint_url=lab.url, config=config)
        ssm: Any = session.client("ssm", endpoint_url=lab.url, config=config)
        self._url = lab.url
        self._keys = Credentials(lab.access_key, lab.secret_key)
        self._connection = http.client.HTTPConnection(lab.url.removeprefix("http://"), timeout=60)
        self._image = ssm.get_parameter(Name=IMAGE)["Parameter"]["Value"]

    def spent(self) -> timing.Spent:
        return timing.of_process(self.pid)

    def buy(self, count: int, user_data: str = "") -> list[str]:
        asked = {"ImageId": self._image, "InstanceType": TYPE, "MinCount": count, "MaxCount": count}
        answer = self.ec2.run_instances(**asked, UserData=user_data)
        return [one["InstanceId"] for one in answer["Instances"]]

    def end(self, machines: list[str]) -> None:
        self.ec2.terminate_instances(InstanceIds=machines)

    def listed(self) -> int:
        return sum(len(one["Instances"]) for one in self.ec2.describe_instances()["Reservations"])

    def listed_raw(self) -> int:
        """The same, signed and sent, but not read: boto3 takes several times as long as the Lab to parse the answer."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        asked = AWSRequest("POST", self._url, headers=headers, data="Action=DescribeInstances&Version=2016-11-15")
        SigV4Auth(self._keys, "ec2", REGION).add_auth(asked)
        self._connection.request("POST", "/", asked.body, dict(asked.headers))
        return self._connection.getresponse().read().count(b"<instanceId>")

    def wait_for(self, what: str, count: int, seconds: float = 120.0) -> None:
        """Until so many machines have had it happen to them. Asking costs the Lab a little, so it is asked rarely."""
        after, found = 0, 0
        deadline = time.perf_counter() + seconds
        while found < count:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{found} of {count} {what} after {seconds:g} s")
            time.sleep(0.1)
            for event in self.control.events(after):
                after, found = event["number"], found + (event["what"] == what)


def measure() -> Iterator[Figure]:
    with running() as one:
        yield from _many(Shop(one))
    with running() as one:
        yield _purchases(Shop(one))


@contextlib.contextmanager
def running() -> Iterator[Running]:
    """A Lab of its own, gone afterwards with all its machines."""
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        lab = LocalLab(Path(folder))
        one, _ = lab.start([*OPTIONS, "--data", str(Path(folder) / "none")])
        try:
            yield one
        finally:
            lab.stop()


def _many(shop: Shop) -> Iterator[Figure]:
    empty_mb = timing.memory_mb(shop.pid)
    before = shop.spent()
    machines = shop.buy(MACHINES, USER_DATA)
    shop.wait_for("user-data-ended", MACHINES)
    spent = shop.spent() - before
    yield _wall(f"Lab, {MACHINES} machines until all ran their user-data", spent)
    yield Figure(
        name="Lab, CPU per machine until it ran its user-data",
        value=spent.cpu_s / MACHINES * 1000,
        unit="ms CPU",
        bound=15,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"machines": MACHINES},
    )
    yield Figure(
        name=f"Lab, memory with {MACHINES} machines",
        value=timing.memory_mb(shop.pid),
        unit="MB RSS",
        bound=130,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"empty_mb": empty_mb},
    )
    yield from _listings(shop)
    yield _idle(shop)
    before = shop.spent()
    shop.end(machines)
    shop.wait_for("ended", MACHINES)
    yield _wall(f"Lab, {MACHINES} machines until all are gone", shop.spent() - before)


def _listings(shop: Shop) -> Iterator[Figure]:
    _timed(shop.listed, 1)
    parsed = _timed(shop.listed, PARSED)
    before = shop.spent()
    raw = _timed(shop.listed_raw, LISTINGS)
    spent = shop.spent() - before
    yield Figure(
        name=f"Lab, DescribeInstances of {MACHINES}, p50",
        value=statistics.median(raw),
        unit="ms wall",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"runs": LISTINGS, "worst": max(raw), "boto3_p50": statistics.median(parsed)},
    )
    yield Figure(
        name=f"Lab, DescribeInstances of {MACHINES}, CPU",
        value=spent.cpu_s / LISTINGS * 1000,
        unit="ms CPU",
        bound=60,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"runs": LISTINGS},
    )


def _timed(listed: Callable[[], int], times: int) -> list[float]:
    """Milliseconds of each."""
    took = []
    for _ in range(times):
        began = time.perf_counter()
        if (count := listed()) != MACHINES:
            raise RuntimeError(f"{count} of {MACHINES} machines are listed")
        took.append((time.perf_counter() - began) * 1000)
    return took


def _idle(shop: Shop) -> Figure:
    before = shop.spent()
    time.sleep(IDLE_S)
    spent = shop.spent() - before
    return Figure(
        name=f"Lab, idle with {MACHINES} machines",
        value=spent.cpu_s / spent.wall_s * 100,
        unit="% of a core",
        bound=3,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
    )


def _purchases(shop: Shop) -> Figure:
    """One machine after the other, each a process that runs."""
    before = shop.spent()
    bought = [machine for _ in range(PURCHASES) for machine in shop.buy(1, USER_DATA)]
    spent = shop.spent() - before
    shop.end(bought)
    return Figure(
        name="Lab, RunInstances one at a time",
        value=PURCHASES / spent.wall_s,
        unit="per s",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"purchases": PURCHASES, "lab_cpu_ms_each": spent.cpu_s / PURCHASES * 1000},
    )


def _wall(name: str, spent: timing.Spent) -> Figure:
    return Figure(name=name, value=spent.wall_s, unit="s wall", cpu_s=spent.cpu_s, wall_s=spent.wall_s)
