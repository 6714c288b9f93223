"""What faults do to a request: refused, cut, doubled, late, or answered with less than there is. Which of them strike
is decided elsewhere."""

from collections.abc import Mapping
from typing import Any

from crucible.lab.aws import words
from crucible.lab.aws.call import Call
from crucible.lab.faults import Context, Fault, FaultKind, Moment

Things = dict[str, Mapping[str, str]]  # id -> tags


class Cut(Exception):
    """The connection is closed without an answer."""


def before(call: Call) -> Fault | None:
    """The fault that strikes, if it lets the request be carried out at all; otherwise raises Cut or AwsError."""
    if call.lab.faults.is_quiet(Moment.BEFORE):
        return None
    fault = call.lab.faults.decide(call.operation.name, Moment.BEFORE, _asked(call))
    match fault.kind if fault else None:
        case FaultKind.ERROR_BEFORE_EFFECT:
            raise Cut
        case FaultKind.SERVER_ERROR if fault:
            raise words.failed(call.operation.protocol, fault.status)
        case FaultKind.THROTTLE:
            raise words.too_busy(call.operation.protocol)
        case FaultKind.AUTH_EXPIRED:
            raise words.credentials_expired(call.operation.protocol)
    return fault


def after(call: Call, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, or less of it; or raises Cut or AwsError although the request was carried out."""
    if call.lab.faults.is_quiet(Moment.AFTER):
        return answer
    fault = call.lab.faults.decide(call.operation.name, Moment.AFTER, _answered(call, answer))
    match fault.kind if fault else None:
        case FaultKind.LOST_REPLY:
            raise Cut
        case FaultKind.SERVER_ERROR_AFTER if fault:
            raise words.failed(call.operation.protocol, fault.status)
        case FaultKind.EMPTY_LISTING if fault:
            return _without(answer, fault, _listed(answer))
    return answer


def _asked(call: Call) -> Context:
    values = call.values
    specs = [spec for spec in values.get("TagSpecifications", []) if spec.get("ResourceType") == "instance"]
    tags = {pair.get("Key", ""): pair.get("Value", "") for spec in specs for pair in spec.get("Tags", [])}
    named = set(values.get("InstanceIds", [])) | {values.get("InstanceId")}
    machines = {machine.id: machine.tags for machine in call.seen() if machine.id in named} if named - {None} else {}
    type = values.get("InstanceType")
    return Context(
        now=call.now, region=call.region, type=type if isinstance(type, str) else "", tags=tags, machines=machines
    )


def _answered(call: Call, answer: dict[str, Any]) -> Context:
    asked = _asked(call)
    listed = _listed(answer)
    known = {machine.id: machine.tags for machine in call.seen()} if listed else {}
    things = {id: tags or known.get(id, {}) for id, tags in listed.items()}
    return Context(
        now=asked.now, region=asked.region, type=asked.type, tags=asked.tags, machines=things or asked.machines
    )


# Member of an answer -> the id of each thing in it.
_LISTS = {
    "Instances": "InstanceId",
    "InstanceStatuses": "InstanceId",
    "TerminatingInstances": "InstanceId",
    "Volumes": "VolumeId",
}


def _listed(answer: dict[str, Any]) -> Things:
    found: Things = {}
    for part in (answer, *answer.get("Reservations", [])):
        for member, id in _LISTS.items():
            for thing in part.get(member, []):
                found[thing[id]] = {tag["Key"]: tag["Value"] for tag in thing.get("Tags", [])}
    return found


def _without(answer: dict[str, Any], fault: Fault, listed: Things) -> dict[str, Any]:
    """One of the things that the fault is about is missing."""
    ids = fault.machines or tuple(listed)
    if not ids:
        return answer
    gone = ids[int(fault.draw * len(ids))]
    less = {name: _filtered(name, value, gone) for name, value in answer.items()}
    if "Reservations" in less:
        parts = [{name: _filtered(name, value, gone) for name, value in part.items()} for part in less["Reservations"]]
        less["Reservations"] = [part for part in parts if part["Instances"]]
    return less


def _filtered(name: str, value: Any, gone: str) -> Any:
    id = _LISTS.get(name)
    return value if id is None else [thing for thing in value if thing[id] != gone]
