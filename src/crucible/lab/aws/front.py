"""Amazon on one address: tells the service by the signature's scope, checks signature and request, has it carried out
on the world, and answers in the service's own protocol. What goes wrong on the way is said as Amazon says it."""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from crucible.lab.aws import (
    addresses,
    geography,
    identity,
    images,
    instances,
    key_pairs,
    network,
    placement_groups,
    pricing,
    quotas,
    reservations,
    security_groups,
    sigv4,
    spot,
    tags,
    troubles,
    volumes,
    words,
)
from crucible.lab.aws.call import Call, Handler, Lab
from crucible.lab.aws.errors import AwsError, beyond_the_lab, would_succeed
from crucible.lab.aws.models import SERVICES
from crucible.lab.aws.places import Places
from crucible.lab.aws.registry import Registry
from crucible.lab.aws.sigv4 import Claim, Denied, NotSigned
from crucible.lab.aws.throttle import Limits, Throttle, class_of
from crucible.lab.aws.troubles import Cut
from crucible.lab.aws.wire import Wire, wire_of
from crucible.lab.faults import FaultKind
from crucible.lab.http import Request, Response

HANDLERS: Mapping[str, Mapping[str, Handler]] = {
    "ec2": {
        **addresses.OPERATIONS,
        **geography.OPERATIONS,
        **images.EC2_OPERATIONS,
        **instances.OPERATIONS,
        **key_pairs.OPERATIONS,
        **network.OPERATIONS,
        **placement_groups.OPERATIONS,
        **reservations.OPERATIONS,
        **security_groups.OPERATIONS,
        **spot.OPERATIONS,
        **tags.OPERATIONS,
        **volumes.OPERATIONS,
    },
    "sts": identity.OPERATIONS,
    "servicequotas": quotas.OPERATIONS,
    "pricing": pricing.OPERATIONS,
    "ssm": images.SSM_OPERATIONS,
}


class AwsFront:
    def __init__(
        self,
        lab: Lab,
        *,
        limits: Limits | None = None,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lab = lab
        self._wall = wall
        self._places = Places(lab.world.facts)
        self._registry = Registry()
        self._throttle = Throttle(limits or Limits(), monotonic)
        for service in SERVICES:  # reading Amazon's description takes a moment: not the first request's
            wire_of(service)

    async def handle(self, request: Request) -> Response:
        return self.answer(request)

    def answer(self, request: Request) -> Response:
        request_id = str(uuid.uuid4())
        wire = _guessed_wire(request)
        try:
            claim = self._claim(request)
            if claim.service in SERVICES:
                wire = wire_of(claim.service)
            self._admit(wire, claim, request)
            return self._serve(wire, claim, request, request_id)
        except NotSigned as denial:
            return wire.error(words.denied(wire.protocol, denial.reason, denial.message), request_id)
        except AwsError as error:
            return wire.error(error, request_id)
        except Cut:
            return Response(is_cut=True)

    def _claim(self, request: Request) -> Claim:
        if request.path != "/":
            raise AwsError("UnknownOperationException", f"Amazon serves nothing at {request.path}", 404)
        return sigv4.claim_of(request)

    def _admit(self, wire: Wire, claim: Claim, request: Request) -> None:
        """Raises unless the account's own keys signed this request, for a service and a region that there is."""
        account = self._lab.account
        has_session = "x-amz-security-token" in request.headers or "X-Amz-Security-Token=" in request.query
        if claim.access_key != account.access_key or has_session:
            raise NotSigned(Denied.UNKNOWN_KEY, words.UNKNOWN_KEY[wire.protocol])
        sigv4.verify(claim, request, account.secret_key, self._wall())
        if claim.service not in SERVICES:
            beyond_the_lab(f"the service {claim.service}")
        known = pricing.REGIONS if claim.service == "pricing" else self._places.regions
        if claim.region not in known and claim.service != "sts":
            raise NotSigned(
                Denied.WRONG_REGION,
                f"Credential should be scoped to a valid region, not '{claim.region}'; here is {', '.join(known)}.",
            )

    def _serve(self, wire: Wire, claim: Claim, request: Request, request_id: str) -> Response:
        operation, values = wire.read(request)
        if not self._throttle.admits(self._lab.account.id, claim.region, operation.name):
            raise words.too_busy(wire.protocol)
        call = Call(
            operation=operation,
            values=values,
            region=claim.region,
            now=self._lab.clock.now(),
            lab=self._lab,
            places=self._places,
            registry=self._registry,
        )
        call = replace(call, fault=troubles.before(call))
        late_s = call.fault.seconds if call.fault and call.has(FaultKind.SLOW) else 0.0
        try:
            answer = wire.answer(operation, troubles.after(call, self._carried_out(call)), request_id)
        except AwsError as error:
            answer = wire.error(error, request_id)
        return replace(answer, after_s=late_s)

    def _carried_out(self, call: Call) -> dict[str, Any]:
        operation = call.operation
        handler = HANDLERS[operation.service].get(operation.name)
        if handler is None:
            beyond_the_lab(f"{operation.service}:{operation.name}")
        if call.values.get("DryRun") and operation.name != "RunInstances":
            raise would_succeed()
        try:
            if call.has(FaultKind.DUPLICATE_DELIVERY):
                handler(call)
            return handler(call)
        finally:
            if class_of(operation.name) != "reading":
                self._lab.wake()


def _guessed_wire(request: Request) -> Wire:
    """Of a request whose signature does not tell."""
    return wire_of("ssm" if "x-amz-target" in request.headers else "ec2")
