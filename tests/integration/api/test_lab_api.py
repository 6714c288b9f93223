"""The Lab through the server's own door: a real Lab, machines bought there by an unmodified client."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest

from crucible.api.app import ApiSettings
from crucible.lab.door import LocalDoor
from lab_process import RunningLab

from .conftest import NO_LIMITS, Server, eventually

HELLO = "#!/bin/sh\necho hello from here\nsleep 1000\n"
SERVER = ApiSettings(version="9.9.9", providers=("fake",), rate_limits=NO_LIMITS)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with RunningLab(tmp_path_factory.mktemp("lab"), speed=10) as running:
        yield running


@pytest.fixture(scope="module")
def buyer(lab: RunningLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    door = LocalDoor(lab.environment, lab.url)
    running = Server(folder=tmp_path_factory.mktemp("server"), settings=SERVER, lab=door)
    running.start()
    yield running
    running.stop()


def bought(lab: RunningLab, market: str = "spot", **tags: str) -> str:
    asked: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}} if market == "spot" else {}
    if tags:
        written = [{"Key": name.replace("__", ":"), "Value": value} for name, value in tags.items()]
        asked["TagSpecifications"] = [{"ResourceType": "instance", "Tags": written}]
    ec2 = boto3.client(
        "ec2",
        endpoint_url=lab.url,
        region_name="us-east-1",
        aws_access_key_id=lab.running.access_key,
        aws_secret_access_key=lab.running.secret_key,
    )
    with closing(ec2):
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        said = ec2.run_instances(
            ImageId=image, InstanceType="g4dn.xlarge", MinCount=1, MaxCount=1, UserData=HELLO, **asked
        )
    return str(said["Instances"][0]["InstanceId"])


def shown(server: Server, machine: str, person: str = "admin") -> Any:
    lab = server.call("GET", "/v1/lab?all=true", person).json["lab"]
    return next(one for one in lab["machines"] if one["id"] == machine)


def test_everybody_sees_its_machines_its_clock_and_what_they_came_to(buyer: Server, lab: RunningLab) -> None:
    machine = bought(lab)
    seen = buyer.call("GET", "/v1/lab", "alice").json
    assert seen["is_running"] and seen["reason"] is None
    assert (seen["lab"]["url"], seen["lab"]["speed"]) == (lab.url, 10)
    assert seen["lab"]["regions"] == ["us-east-1", "us-west-2"]
    eventually(lambda: shown(buyer, machine, "alice")["cost_microusd"])  # nothing before its first second is over
    found = shown(buyer, machine, "alice")
    assert (found["market"], found["type"], found["region"]) == ("spot", "g4dn.xlarge", "us-east-1")
    bill = buyer.call("GET", "/v1/lab/bill", "alice").json
    assert machine in {line["resource"] for line in bill["items"]}
    assert bill["cost_microusd"] == sum(line["cost_microusd"] for line in bill["items"])
    assert bill["cost_microusd"] == sum(kind["cost_microusd"] for kind in bill["kinds"])


def test_of_a_machine_only_a_job_that_one_sees_is_told(buyer: Server, lab: RunningLab) -> None:
    job = buyer.submit()
    mine, nobodys = bought(lab, crucible__job=job), bought(lab, crucible__job="made-up")
    assert shown(buyer, mine, "admin")["job_id"] == job
    assert shown(buyer, mine, "alice")["job_id"] == job
    assert shown(buyer, mine, "bob")["job_id"] is None
    assert shown(buyer, nobodys, "admin")["job_id"] is None


def test_an_admin_takes_machines_by_name_or_all_of_them(buyer: Server, lab: RunningLab) -> None:
    first, second, kept = bought(lab), bought(lab), bought(lab, "on-demand")
    refused = buyer.call("POST", "/v1/lab/preempt", "admin", json_body={"machines": [first, kept]})
    assert refused.status == 409 and "on demand" in refused.json["message"]
    assert shown(buyer, first)["notice_at"] is None, "one that cannot be taken keeps the others from it"
    taken = buyer.call("POST", "/v1/lab/preempt", "admin", json_body={"machines": [first], "notice_s": 3600}).json
    assert [one["id"] for one in taken["items"]] == [first]
    assert shown(buyer, first)["taken_at"] is not None
    rest = buyer.call("POST", "/v1/lab/preempt", "admin", json_body={"all": True, "notice_s": 0}).json
    assert second in {one["id"] for one in rest["items"]} and kept not in {one["id"] for one in rest["items"]}
    eventually(lambda: shown(buyer, second)["end"] == "seller")
    logged = buyer.call("GET", "/v1/audit?subject=lab", "admin").json["items"]
    assert logged[0]["action"] == "lab.preempt" and logged[0]["details"] == {"all": True, "notice_s": 0.0}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"machines": []},
        {"machines": "i-1"},
        {"machines": ["i-1"], "all": True},
        {"machines": ["i-1"], "region": "us-east-1"},
        {"all": True, "notice_s": -1},
        {"all": True, "count": 0},
        {"all": True, "else": 1},
    ],
)
def test_a_preemption_that_does_not_say_which_is_refused(buyer: Server, body: dict[str, Any]) -> None:
    assert buyer.call("POST", "/v1/lab/preempt", "admin", json_body=body).status == 422


def test_faults_are_added_counted_and_removed(buyer: Server, lab: RunningLab) -> None:
    rule = {"kind": "throttle", "operation": "DescribeImages", "count": 1, "for": "1h"}
    made = buyer.call("POST", "/v1/lab/faults", "admin", json_body=rule)
    assert made.status == 201 and made.json["until"] is not None
    bought(lab)  # its client asks again
    said = buyer.call("GET", "/v1/lab/faults", "alice").json
    assert [(one["kind"], one["struck"]) for one in said["items"]] == [("throttle", 1)]
    assert {"kind": "throttle", "does": "refused: too many requests"}.items() <= next(
        kind.items() for kind in said["kinds"] if kind["kind"] == "throttle"
    )
    assert buyer.call("DELETE", f"/v1/lab/faults/{made.json['id']}", "admin").status == 204
    assert buyer.call("DELETE", f"/v1/lab/faults/{made.json['id']}", "admin").status == 404
    assert lab.control.faults() == []


def test_a_rule_that_means_nothing_is_refused_with_what_to_write(buyer: Server, lab: RunningLab) -> None:
    wrong = buyer.call("POST", "/v1/lab/faults", "admin", json_body={"kind": "thortle"})
    assert wrong.status == 400 and "throttle" in wrong.json["details"]["hint"]
    slow = buyer.call("POST", "/v1/lab/faults", "admin", json_body={"kind": "slow", "seconds": [9, 1]})
    assert slow.status == 400 and slow.json["details"]["field"] == "seconds"
    assert lab.control.faults() == []


def test_events_go_on_after_a_number_and_the_newest_are_told(buyer: Server, lab: RunningLab) -> None:
    machine = bought(lab)
    path = f"/v1/lab/events?machine={machine}"
    eventually(lambda: len(buyer.call("GET", path).json["items"]) >= 2)
    launched, booted, *_ = buyer.call("GET", path).json["items"]
    assert (launched["what"], booted["what"]) == ("launched", "booted")
    assert buyer.call("GET", f"{path}&after={launched['number']}").json["items"][0] == booted
    assert len(buyer.call("GET", "/v1/lab/events?limit=1").json["items"]) == 1
    assert buyer.call("GET", "/v1/lab/events?limit=0").status == 422


def test_what_a_machine_printed_is_for_admins(buyer: Server, lab: RunningLab) -> None:
    path = f"/v1/lab/machines/{bought(lab)}/console"
    eventually(lambda: "hello from here" in buyer.call("GET", path, "admin").json["text"])
    assert buyer.call("GET", path, "alice").status == 403
    assert buyer.call("GET", "/v1/lab/machines/i-none/console", "admin").status == 404


def test_only_admins_break_it(buyer: Server) -> None:
    assert buyer.call("POST", "/v1/lab/preempt", "alice", json_body={"all": True}).status == 403
    assert buyer.call("POST", "/v1/lab/faults", "alice", json_body={"kind": "throttle"}).status == 403


def test_a_server_without_a_lab_says_how_to_have_one(server: Server) -> None:
    seen = server.call("GET", "/v1/lab").json
    assert (seen["is_running"], seen["lab"]) == (False, None)
    assert "crucible lab up" in seen["hint"] and "does not buy in a Lab" in seen["reason"]
    refused = server.call("GET", "/v1/lab/bill")
    assert (refused.status, refused.json["error"]) == (409, "no_lab")
    assert "crucible lab up" in refused.json["details"]["hint"]


def test_only_the_lab_that_the_server_buys_in_is_asked(tmp_path: Path, lab: RunningLab) -> None:
    elsewhere = LocalDoor(lab.environment, "http://127.0.0.1:9")
    nowhere = LocalDoor({"CRUCIBLE_LAB_HOME": str(tmp_path)}, lab.url)
    for door, words in ((elsewhere, "but this server buys at http://127.0.0.1:9"), (nowhere, "no Lab is running in")):
        running = Server(folder=tmp_path / words[:2], settings=SERVER, lab=door)
        running.folder.mkdir()
        running.start()
        try:
            seen = running.call("GET", "/v1/lab").json
        finally:
            running.stop()
        assert not seen["is_running"] and words in seen["reason"]


def test_a_lab_that_stands_still_is_told_within_seconds(
    buyer: Server, lab: RunningLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crucible.lab.door.TIMEOUT_S", 0.3)
    os.kill(lab.pid, signal.SIGSTOP)
    try:
        refused = buyer.call("GET", "/v1/lab")
    finally:
        os.kill(lab.pid, signal.SIGCONT)
    assert (refused.status, refused.json["error"]) == (502, "unreachable")
    assert "does not answer" in refused.json["message"]
