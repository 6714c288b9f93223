"""What a machine can ask about itself: the metadata service, version 2 only. Without a session token it says nothing,
and of other machines never."""

import json
import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from crucible.lab.faults import FaultKind
from crucible.lab.http import Request, Response
from crucible.lab.lab import Lab
from crucible.world.facts import Market
from crucible.world.machine import Machine

PREFIX = "/imds/"
TOKEN, TTL = "x-aws-ec2-metadata-token", "x-aws-ec2-metadata-token-ttl-seconds"
LONGEST_TTL_S = 21_600
# Sessions of all machines that are remembered; a machine that opens very many loses its oldest.
MOST_SESSIONS = 100_000

Tree = Mapping[str, "str | bytes | Tree"]


class Metadata:
    def __init__(self, lab: Lab, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lab = lab
        self._monotonic = monotonic
        self._sessions: dict[tuple[str, str], float] = {}  # (machine, token) -> when it ends

    async def handle(self, request: Request) -> Response:
        secret, _, rest = request.path.removeprefix(PREFIX).partition("/")
        machine_id = self._lab.guests.of_secret(secret)
        if machine_id is None:
            return _said(404)
        if "x-forwarded-for" in request.headers:  # a proxy in the machine must not give its identity away
            return _said(403)
        if request.method == "PUT" and rest == "latest/api/token":
            return self._open(machine_id, request.headers.get(TTL, ""))
        if request.method not in ("GET", "HEAD"):
            return _said(405)
        if not self._knows(machine_id, request.headers.get(TOKEN, "")):
            return _said(401)
        found = self._find(self._lab.world.machine(machine_id), rest)
        return found if request.method == "GET" else Response(status=found.status, headers=found.headers)

    def _open(self, machine_id: str, ttl: str) -> Response:
        if not ttl.isascii() or not ttl.isdecimal() or not 1 <= int(ttl) <= LONGEST_TTL_S:
            return _said(400)
        token = secrets.token_urlsafe(42)
        while len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[machine_id, token] = self._monotonic() + int(ttl)
        return _said(200, token, {TTL: ttl})

    def _knows(self, machine_id: str, token: str) -> bool:
        return self._sessions.get((machine_id, token), 0.0) > self._monotonic()

    def _find(self, machine: Machine, path: str) -> Response:
        node: str | bytes | Tree | None = self._tree(machine)
        for part in filter(None, path.split("/")):
            node = node.get(part) if isinstance(node, Mapping) else None
        if node is None:
            return _said(404)
        if isinstance(node, Mapping):
            node = "\n".join(f"{name}/" if isinstance(node[name], Mapping) else name for name in sorted(node))
        return _said(200, node)

    def _tree(self, machine: Machine) -> Tree:
        told = {**self._lab.details.get(machine.id, {})}
        meta: dict[str, str | bytes | Tree] = {
            "ami-launch-index": str(machine.index),
            "instance-id": machine.id,
            "instance-life-cycle": machine.market.value,
            "instance-type": machine.type,
            "local-ipv4": machine.private_address,
            "placement": self._placement(machine),
            "tags": {"instance": dict(machine.tags)},
            **told,
        }
        if machine.public_address is not None:
            meta["public-ipv4"] = machine.public_address
        if machine.market is Market.SPOT:
            meta |= self._notices(machine)
        latest: dict[str, str | bytes | Tree] = {
            "meta-data": meta,
            "dynamic": {"instance-identity": {"document": self._identity(machine, told)}},
        }
        if machine.user_data:
            latest["user-data"] = machine.user_data
        return {"latest": latest}

    def _placement(self, machine: Machine) -> Tree:
        zone = next(zone for zone in self._lab.world.facts.zones if zone.name == machine.zone)
        return {"availability-zone": zone.name, "availability-zone-id": zone.id, "region": zone.region}

    def _notices(self, machine: Machine) -> Tree:
        """That it may be taken, and that it will be; nothing before it is told."""
        found: dict[str, str | bytes | Tree] = {}
        if machine.rebalance_at is not None:
            word = {"noticeTime": self._time(machine, machine.rebalance_at)}
            found["events"] = {"recommendations": {"rebalance": json.dumps(word)}}
        if machine.taken_at is not None and self._is_told(machine, machine.taken_at):
            at = self._time(machine, machine.taken_at)
            found["spot"] = {
                "instance-action": json.dumps({"action": "terminate", "time": at}),
                "termination-time": at,
            }
        return found

    def _is_told(self, machine: Machine, taken_at: float) -> bool:
        """A machine that is told too late hears of it only then."""
        late = self._lab.ailment(machine.id, FaultKind.NOTICE)
        return late is None or self._lab.now() >= taken_at - late.seconds

    def _identity(self, machine: Machine, told: Mapping[str, str]) -> str:
        document = {
            "accountId": machine.account,
            "architecture": "x86_64",
            "availabilityZone": machine.zone,
            "imageId": told.get("ami-id", ""),
            "instanceId": machine.id,
            "instanceType": machine.type,
            "pendingTime": self._time(machine, machine.launched_at),
            "privateIp": machine.private_address,
            "region": machine.region,
            "version": "2017-09-30",
        }
        return json.dumps(document, indent=2)

    def _time(self, machine: Machine, at: float) -> str:
        """By the machine's clock: this computer's, however fast the world's time goes; wrong, if a fault wants it."""
        skew = self._lab.ailment(machine.id, FaultKind.CLOCK_SKEW)
        moment = self._lab.clock.wall_at(at) + (skew.seconds if skew is not None else 0.0)
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _said(status: int, said: str | bytes = b"", headers: Mapping[str, str] | None = None) -> Response:
    body = said.encode() if isinstance(said, str) else said
    return Response(status=status, headers={"content-type": "text/plain", **(headers or {})}, body=body)
