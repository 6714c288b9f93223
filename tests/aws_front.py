"""Amazon's front end in this process, over a small world whose time stands still until a test moves it, and botocore
as its client: every request is signed by it, and every answer read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from aws_shapes import operation, read_back, sent
from crucible.lab.aws import checks, models
from crucible.lab.aws.front import AwsFront
from crucible.lab.aws.images import IMAGES
from crucible.lab.aws.throttle import Limits
from crucible.lab.faults import FaultKind, Faults, Rule
from crucible.lab.http import Request, Response
from crucible.lab.settings import LabAccount
from crucible.world.world import World
from worlds import BIG, EAST, FAR, FLAT, ME, NEAR, NEXT, SMALL, a_sale, a_world

SECRET = "an-ordinary-secret"
ACCOUNT = LabAccount(id=ME, access_key="AKIALABEXAMPLEEXAMPL", secret_key=SECRET)
AT = datetime(2026, 11, 16, 6, 30, tzinfo=UTC).timestamp()
X86, ARM = (next(image for image in IMAGES if image.architecture == arch) for arch in ("x86_64", "arm64"))


class StillClock:
    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


class Consoles:
    def __init__(self) -> None:
        self.texts: dict[str, bytes] = {}

    def console(self, machine_id: str) -> bytes:
        return self.texts.get(machine_id, b"")


@dataclass
class SmallLab:
    world: World
    clock: StillClock = field(default_factory=lambda: StillClock(AT))
    faults: Faults = field(default_factory=Faults)
    guests: Consoles = field(default_factory=Consoles)
    account: LabAccount = ACCOUNT
    details: dict[str, dict[str, str]] = field(default_factory=dict)
    woken: int = 0

    def wake(self) -> None:
        self.woken += 1


class Refusal(Exception):
    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.status = status


class LostConnection(Exception):
    pass


class Amazon:
    """`amazon.ec2("RunInstances", MinCount=1, …)` answers as botocore reads the answer, or raises Refusal."""

    def __init__(self, *sales: Any, limits: Limits | None = None, **facts: Any) -> None:
        pools = sales or (
            a_sale(NEAR, SMALL),
            a_sale(NEXT, SMALL),
            a_sale(NEAR, BIG, on_demand=98_320_000, spot=FLAT),
            a_sale(FAR, SMALL),
        )
        self.lab = SmallLab(a_world(*pools, **facts))
        self.front = AwsFront(self.lab, limits=limits, wall=lambda: datetime.now(UTC), monotonic=lambda: 0.0)
        self.image = X86.id(EAST)

    def later(self, seconds: float) -> None:
        self.lab.clock.at += seconds

    def fail(self, kind: FaultKind, **rule: Any) -> None:
        self.lab.faults.add(Rule(kind=kind, **rule))

    def ec2(self, name: str, region: str = EAST, **values: Any) -> dict[str, Any]:
        return self.call("ec2", name, region, **values)

    def call(self, service: str, name: str, region: str = EAST, **values: Any) -> dict[str, Any]:
        called = operation(service, name)
        response = self.front.answer(self.request(service, name, region, **values))
        if response.is_cut:
            raise LostConnection
        read = read_back(called, response.body, response.status)
        if response.status >= 300:
            raise Refusal(read["Error"]["Code"], read["Error"]["Message"], response.status)
        checks.answer(called, read)
        return read

    def request(self, service: str, name: str, region: str = EAST, **values: Any) -> Request:
        called = operation(service, name)
        headers = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
        if called.protocol == "json":
            target = f"{models.target_prefix(service)}.{name}"
            headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": target}
        body = sent(called, values)
        return signed(service, region, body.encode() if isinstance(body, str) else body, headers)

    def form(self, form: str, service: str = "ec2", region: str = EAST) -> Response:
        """Words that botocore would not send."""
        return self.front.answer(signed(service, region, form.encode(), {}))

    def run(self, count: int = 1, **values: Any) -> list[dict[str, Any]]:
        usual = {"ImageId": self.image, "InstanceType": SMALL, "MinCount": count, "MaxCount": count}
        found: list[dict[str, Any]] = self.ec2("RunInstances", **{**usual, **values})["Instances"]
        return found

    def instances(self, **values: Any) -> list[dict[str, Any]]:
        answer = self.ec2("DescribeInstances", **values)
        return [instance for reservation in answer["Reservations"] for instance in reservation["Instances"]]

    def refused(self, name: str, service: str = "ec2", region: str = EAST, **values: Any) -> str:
        """The code of the refusal."""
        with pytest.raises(Refusal) as refusal:
            self.call(service, name, region, **values)
        return refusal.value.code


def signed(
    service: str,
    region: str,
    body: bytes,
    headers: Mapping[str, str],
    key: str = ACCOUNT.access_key,
    secret: str = SECRET,
) -> Request:
    asked = AWSRequest(method="POST", url="http://127.0.0.1:9000/", data=body, headers=dict(headers))
    SigV4Auth(Credentials(key, secret), service, region).add_auth(asked)
    ready = asked.prepare()
    parts = urlsplit(ready.url)
    names = {name.lower(): str(value) for name, value in ready.headers.items()} | {"host": parts.netloc}
    return Request(method="POST", path="/", raw_path="/", query="", headers=names, body=body)


def tampered(request: Request, **changes: Any) -> Request:
    return replace(request, **changes)
