"""What a machine learns about itself, and who else does not."""

import json
import time
from datetime import datetime

import pytest

from crucible.lab.fault_rules import read_rule
from crucible.world.facts import Market

from .conftest import SmallLab

pytestmark = pytest.mark.anyio

TTL = "X-aws-ec2-metadata-token-ttl-seconds"
SESSION = "X-aws-ec2-metadata-token"
# As an agent asks: with Python's own library, through the address in its environment.
ASKING = """#!/usr/bin/env python3
import os, urllib.error, urllib.request
base = os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"]
def ask(path, headers, method="GET"):
    return urllib.request.urlopen(urllib.request.Request(base + path, headers=headers, method=method)).read().decode()
try:
    ask("/latest/meta-data/instance-id", {})
except urllib.error.HTTPError as error:
    print("without", error.code, flush=True)
token = ask("/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")
print("I am", ask("/latest/meta-data/instance-id", {"X-aws-ec2-metadata-token": token}), flush=True)
"""


class Asked:
    """The metadata of one machine, with a session."""

    def __init__(self, small: SmallLab, machine: str) -> None:
        self._small = small
        self.base = f"/imds/{small.secret(machine)}"
        self._token = ""

    async def get(self, path: str) -> tuple[int, str]:
        if not self._token:
            _, token = await self._small.ask("PUT", f"{self.base}/latest/api/token", {TTL: "60"})
            self._token = token.decode()
        status, body = await self._small.ask("GET", f"{self.base}/latest/{path}", {SESSION: self._token})
        return status, body.decode()


async def booted(small: SmallLab, **changes: object) -> tuple[str, Asked]:
    machine = small.launch("#!/bin/sh\necho up\n", **changes)
    await small.until_printed(machine, "up")
    return machine, Asked(small, machine)


async def test_a_machine_asks_who_it_is_and_needs_a_session(small: SmallLab) -> None:
    machine = small.launch(ASKING)
    await small.until_printed(machine, f"I am {machine}")
    assert "without 401" in small.console(machine)


async def test_the_metadata_say_what_the_seller_says(small: SmallLab) -> None:
    machine, asked = await booted(small, tags={"crucible:order": "order-1"})
    known = small.machine(machine)
    small.lab.details[machine] = {"ami-id": "ami-1"}
    said = {
        "meta-data/instance-id": machine,
        "meta-data/local-ipv4": known.private_address,
        "meta-data/public-ipv4": known.public_address,
        "meta-data/placement/availability-zone": known.zone,
        "meta-data/placement/region": known.region,
        "meta-data/instance-type": known.type,
        "meta-data/ami-launch-index": "0",
        "meta-data/ami-id": "ami-1",
        "meta-data/tags/instance/crucible:order": "order-1",
        "meta-data/tags/instance": "crucible:order",
        "user-data": "#!/bin/sh\necho up\n",
    }
    for path, wanted in said.items():
        assert await asked.get(path) == (200, wanted), path
    status, text = await asked.get("dynamic/instance-identity/document")
    document = json.loads(text)
    assert (status, document["instanceId"], document["imageId"]) == (200, machine, "ami-1")
    assert "placement/" in (await asked.get("meta-data/"))[1].splitlines()


async def test_only_what_is_there_is_said(small: SmallLab) -> None:
    _, asked = await booted(small, has_address=False)
    for path in (
        "meta-data/public-ipv4",
        "meta-data/spot/instance-action",
        "meta-data/nothing",
        "meta-data/instance-id/x",
    ):
        assert (await asked.get(path))[0] == 404, path


async def test_sessions_are_of_one_machine_and_one_life(small: SmallLab) -> None:
    (_, asked), (_, other) = await booted(small), await booted(small)
    await asked.get("meta-data/instance-id")
    refused = [
        ("PUT", f"{asked.base}/latest/api/token", {}, 400),
        ("PUT", f"{asked.base}/latest/api/token", {TTL: "0"}, 400),
        ("PUT", f"{asked.base}/latest/api/token", {TTL: "21601"}, 400),
        ("GET", f"{asked.base}/latest/meta-data/instance-id", {SESSION: "wrong"}, 401),
        ("GET", f"{other.base}/latest/meta-data/instance-id", {SESSION: asked._token}, 401),
        ("GET", "/imds/of-nobody/latest/meta-data/instance-id", {SESSION: asked._token}, 404),
        ("GET", f"{asked.base}/latest/user-data", {SESSION: asked._token, "X-Forwarded-For": "1.2.3.4"}, 403),
        ("DELETE", f"{asked.base}/latest/user-data", {SESSION: asked._token}, 405),
    ]
    for method, path, headers, status in refused:
        assert (await small.ask(method, path, headers))[0] == status, (method, path, headers)


async def test_a_spot_machine_hears_that_it_will_be_taken(small: SmallLab) -> None:
    machine, asked = await booted(small, market=Market.SPOT)
    assert (await asked.get("meta-data/spot/instance-action"))[0] == 404
    small.lab.preempt(machine, notice_s=120)
    status, text = await asked.get("meta-data/spot/instance-action")
    notice = json.loads(text)
    assert (status, notice["action"]) == (200, "terminate")
    assert notice["time"] == (await asked.get("meta-data/spot/termination-time"))[1]
    left_s = datetime.fromisoformat(notice["time"]).timestamp() - time.time()
    assert 0 < left_s < 120 / small.lab.clock.speed + 2, "by the machine's own clock, which does not run faster"


async def test_a_machine_that_is_told_too_late_hears_nothing_before(small: SmallLab) -> None:
    small.lab.faults.add(read_rule({"kind": "notice", "seconds": 0}, small.lab.now()))
    machine, asked = await booted(small, market=Market.SPOT)
    small.lab.preempt(machine, notice_s=1000)
    assert (await asked.get("meta-data/spot/instance-action"))[0] == 404
