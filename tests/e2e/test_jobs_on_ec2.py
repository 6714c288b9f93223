"""Jobs on EC2 as the Lab plays it: a real server buys, machines boot from their user-data alone, and in the end the
ledger says what the Lab's invoice says."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from crucible.client.api import TERMINAL, Client
from crucible.client.config import embedded
from crucible.client.embedded import Embedded
from crucible.client.endpoint import Endpoint
from crucible.client.errors import LocalServerFailed
from crucible.client.transport import Transport
from lab_process import RunningLab
from status_shape import assert_status

LIMIT_S = 45.0

SPEC = """\
job:
  name: {name}
  command: {command}
  resources: {{gpus: {gpus}, gpu_type: {gpu}}}
  constraints: {{providers: [aws], strategy: cheapest, allow_spot: {spot}}}
"""


class Deployment:
    """A Lab, a server that buys there, and somebody who asks it things."""

    def __init__(self, lab: RunningLab, server: Embedded, client: Client, data: Path) -> None:
        self.lab, self.server, self.client, self.data = lab, server, client, data

    def submit(self, name: str, command: str, *, gpus: int = 1, gpu: str = "T4", spot: bool = False) -> str:
        spec = SPEC.format(name=name, command=f"[sh, -c, {command!r}]", gpus=gpus, gpu=gpu, spot=str(spot).lower())
        return str(self.client.submit(name, spec)["id"])

    def finished(self, job_id: str, within_s: float = LIMIT_S) -> dict[str, Any]:
        until(lambda: self.client.job(job_id)["status"] in TERMINAL, f"{self.client.why(job_id)}", within_s)
        assert_status(self.client.status(job_id))
        return dict(self.client.job(job_id))

    def wait_for(self, job_id: str, status: str) -> None:
        until(lambda: self.client.job(job_id)["status"] == status, f"{self.client.why(job_id)}")
        assert_status(self.client.status(job_id))

    def machines(self) -> list[dict[str, Any]]:
        return [one for one in self.lab.control.status()["machines"] if one["state"] != "terminated"]

    def settle(self) -> None:
        """Until nothing is paid for any more, in the Lab and in the books."""
        until(lambda: not self.machines(), "every machine is gone")
        until(lambda: self.owed() == self.invoiced(), f"the books say {self.owed()}, the Lab {self.invoiced()}")
        assert self.books("SELECT count(*) FROM usage WHERE to_at IS NULL") == 0

    def books(self, question: str) -> int:
        with closing(sqlite3.connect(self.data / "crucible.db")) as database:
            return int(database.execute(question).fetchone()[0] or 0)

    def owed(self) -> int:
        return -self.books("SELECT sum(amount_microusd) FROM ledger WHERE account LIKE 'provider:%'")

    def invoiced(self) -> int:
        return int(self.lab.control.bill()["microusd"])


def until(is_so: Callable[[], bool], what: str, within_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"not within {within_s:g} s: {what}"
        time.sleep(0.05)


@contextmanager
def deployed(folder: Path, *options: str, boot_limit_s: int = 6, **of_the_lab: Any) -> Iterator[Deployment]:
    """`options` are the server's."""
    with RunningLab(folder, **of_the_lab) as lab, pytest.MonkeyPatch.context() as patch:
        environment = {**lab.environ(), "CRUCIBLE_HOME": str(folder / "data"), "HOME": str(folder)}
        environment["CRUCIBLE_AWS_BOOT_LIMIT_S"] = str(boot_limit_s)
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        server = embedded(environment)
        server.start([*options])
        running = server.running()
        assert running is not None
        token = (folder / "data" / "admin-token").read_text()
        with Client(Transport(Endpoint(running.url, token), timeout_s=10.0)) as client:
            try:
                yield Deployment(lab, server, client, folder / "data")
            finally:
                server.stop()


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(tmp_path_factory.mktemp("ec2")) as made:
        yield made


@pytest.fixture(autouse=True)
def calm(deployment: Deployment) -> Iterator[None]:
    """Every story leaves nothing that costs money, and what it cost is in the books to the micro-dollar."""
    yield
    deployment.lab.control.clear_faults()
    deployment.settle()
    assert deployment.books("SELECT sum(amount_microusd) FROM ledger") == 0


def test_a_job_runs_on_a_machine_that_booted_from_its_user_data_alone(deployment: Deployment) -> None:
    job_id = deployment.submit("hello", "echo hello from $CRUCIBLE_RANK")
    job = deployment.finished(job_id)
    assert job["status"] == "completed", job["reason"]
    assert (job["selected"]["provider"], job["selected"]["instance_type"]) == ("aws", "g4dn.xlarge")
    text = "".join(record["x"] for record in deployment.client.logs(job_id))
    assert "hello from 0" in text


def test_a_gang_has_a_machine_for_every_node(deployment: Deployment) -> None:
    job = deployment.finished(deployment.submit("gang", "echo $CRUCIBLE_WORLD_SIZE", gpus=16, gpu="A100-40GB"))
    assert job["status"] == "completed", job["reason"]
    assert (job["selected"]["instance_type"], job["selected"]["count"]) == ("p4d.24xlarge", 2)


def test_a_zone_without_capacity_is_passed_by_and_the_next_best_is_bought(deployment: Deployment) -> None:
    deployment.lab.control.fail("no-capacity", operation="RunInstances", count=2)
    job_id = deployment.submit("elsewhere", "true")
    assert deployment.finished(job_id)["status"] == "completed"
    cooled = deployment.books("SELECT count(*) FROM cooldowns")
    assert cooled >= 2
    everything = deployment.client.events(job_id, everything=True)
    orders = [event for event in everything if event["type"] == "OrderRefused"]
    assert len(orders) == 2


def test_a_lost_reply_buys_no_second_machine(deployment: Deployment) -> None:
    deployment.lab.control.fail("lost-reply", operation="RunInstances", count=1)
    before = launched(deployment)
    job = deployment.finished(deployment.submit("lost-reply", "true"))
    assert job["status"] == "completed"
    assert launched(deployment) == before + 1


def test_user_data_that_fails_ends_in_a_clear_reason_and_no_leak(deployment: Deployment) -> None:
    deployment.lab.control.fail("user-data-fails", count=1)
    job_id = deployment.submit("broken-boot", "true")
    job = deployment.finished(job_id)
    assert job["status"] == "completed", "the next machine is a good one"
    reasons = [str(event["body"].get("reason")) for event in deployment.client.events(job_id, everything=True)]
    said = [reason for reason in reasons if "did not report in time" in reason]
    assert said and "its console ends with" in said[0], reasons


def test_a_spot_machine_that_is_taken_with_notice_costs_no_retry(deployment: Deployment) -> None:
    job_id = deployment.submit("taken", "sleep 4", spot=True)
    deployment.wait_for(job_id, "running")
    (machine,) = deployment.machines()
    assert machine["market"] == "spot"
    deployment.lab.control.preempt(machine["id"], notice_s=2)
    job = deployment.finished(job_id)
    assert job["status"] == "completed", job["reason"]
    attempts = deployment.client.attempts(job_id)
    assert [attempt["outcome"] for attempt in attempts] == ["lost", "succeeded"]


def test_a_cancel_gives_the_machine_back(deployment: Deployment) -> None:
    job_id = deployment.submit("cancelled", "sleep 600")
    deployment.wait_for(job_id, "running")
    deployment.client.cancel(job_id)
    assert deployment.finished(job_id)["status"] == "cancelled"


def test_a_second_machine_of_an_order_is_removed_and_paid_for(deployment: Deployment) -> None:
    """However it came to be: it carries our mark, and no lease holds it."""
    job_id = deployment.submit("doubled", "sleep 600")
    deployment.wait_for(job_id, "running")
    ec2 = boto3.client("ec2", region_name="us-east-1")
    only = [{"Name": "instance-state-name", "Values": ["running"]}]
    (reservation,) = ec2.describe_instances(Filters=only)["Reservations"]
    (known,) = reservation["Instances"]
    tags = [tag for tag in known["Tags"] if not tag["Key"].startswith("aws:")]
    double = ec2.run_instances(
        ImageId=known["ImageId"],
        InstanceType="g4dn.xlarge",
        MinCount=1,
        MaxCount=1,
        BlockDeviceMappings=[{"DeviceName": known["RootDeviceName"], "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}],
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )["Instances"][0]["InstanceId"]
    until(lambda: double not in {one["id"] for one in deployment.machines()}, "the second machine is removed")
    assert known["InstanceId"] in {one["id"] for one in deployment.machines()}
    deployment.client.cancel(job_id)
    assert deployment.finished(job_id)["status"] == "cancelled"


def test_a_server_that_cannot_reach_its_machines_does_not_start_and_one_that_can_goes_on(
    deployment: Deployment,
) -> None:
    job_id = deployment.submit("adopted", "sleep 2; echo done")
    deployment.wait_for(job_id, "running")
    deployment.server.stop()
    with pytest.raises(LocalServerFailed, match="machines are held or being bought in aws us-east-1"):
        deployment.server.start(["--provider", "local"])
    deployment.server.start([])
    assert deployment.finished(job_id)["status"] == "completed"
    assert [attempt["outcome"] for attempt in deployment.client.attempts(job_id)] == ["succeeded"]


def launched(deployment: Deployment) -> int:
    return sum(event["what"] == "launched" for event in deployment.lab.control.events())
