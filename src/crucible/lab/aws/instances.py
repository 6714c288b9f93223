"""Instances: buying, listing and ending them. What is done is the world's; this says it in EC2's words."""

import base64
from collections.abc import Sequence
from typing import Any

from crucible.lab.aws import instance_view as view
from crucible.lab.aws.absence import absent, malformed
from crucible.lab.aws.call import Call, Handler, moment
from crucible.lab.aws.errors import AwsError, invalid, would_succeed
from crucible.lab.aws.launching import Ask, ask_of
from crucible.lab.aws.listing import Listing
from crucible.lab.aws.places import architecture, subnet_id
from crucible.lab.aws.refusals import refusal
from crucible.lab.faults import FaultKind
from crucible.world.facts import Market
from crucible.world.machine import Launch, Machine, Refused, RefusedBy, State

MOST_CONSOLE = 64 * 1024
MOST_IDS = 1000


def run_instances(call: Call) -> dict[str, Any]:
    ask = ask_of(call)
    if call.values.get("DryRun"):
        raise would_succeed()
    _refuse_by_fault(call, ask.launch)
    try:
        machines = _launched(call, ask)
    except Refused as refused:
        raise refusal(call, ask.launch, refused) from None
    return view.reservation(call, machines)


def _launched(call: Call, ask: Ask) -> Sequence[Machine]:
    call.world.reuse_addresses = call.has(FaultKind.ADDRESS_REUSE)
    try:
        machines = call.world.launch(ask.launch, call.now)
    finally:
        call.world.reuse_addresses = False
    is_new = machines[0].launch_id not in call.office.purchases
    if is_new:
        call.office.purchases[machines[0].launch_id] = ask.purchase
        for machine in machines:
            if ask.purchase.keeps_disk:
                call.world.keep_disk(machine.disk_id)
            if machine.request_id is not None:
                call.office.request_tags[machine.request_id] = dict(ask.request_tags)
            call.lab.details[machine.id] = _metadata(ask, machine)
    return machines


def _metadata(ask: Ask, machine: Machine) -> dict[str, str]:
    name = view.private_name(machine)
    return {"ami-id": ask.purchase.image, "reservation-id": machine.launch_id, "hostname": name, "local-hostname": name}


def _refuse_by_fault(call: Call, launch: Launch) -> None:
    """A token that was honoured before is honoured again, whatever is short now."""
    known = {FaultKind.NO_CAPACITY: RefusedBy.CAPACITY, FaultKind.QUOTA: RefusedBy.QUOTA}
    by = known.get(call.fault.kind) if call.fault else None
    if by is None or (launch.token and launch.token in _tokens(call)):
        return
    raise refusal(call, launch, Refused(by, "so it was wished"))


def _tokens(call: Call) -> set[str | None]:
    return {machine.token for machine in call.world.machines(call.account, call.region, call.now, is_omniscient=True)}


def describe_instances(call: Call) -> dict[str, Any]:
    listing = _listing(call)
    found = listing.matching(_wanted(call), call.values.get("Filters", []))
    shown, token = listing.page(found, call.values, "InstanceIds")
    return {"Reservations": view.reservations(call, shown)} | ({"NextToken": token} if token else {})


def describe_instance_status(call: Call) -> dict[str, Any]:
    """Running ones, unless all are asked for."""
    found = _wanted(call)
    if not call.values.get("IncludeAllInstances"):
        found = [machine for machine in found if machine.state is State.RUNNING]
    found = _STATUS.matching(found, call.values.get("Filters", []))
    shown, token = _STATUS.page(found, call.values, "InstanceIds")
    statuses = [_status(call, machine) for machine in shown]
    return {"InstanceStatuses": statuses} | ({"NextToken": token} if token else {})


def terminate_instances(call: Call) -> dict[str, Any]:
    """All or none; ended ones are no mistake."""
    machines = _named(call, call.values["InstanceIds"])
    return {"TerminatingInstances": [_ended(call, machine, _is_spared(call, machine)) for machine in machines]}


def _is_spared(call: Call, machine: Machine) -> bool:
    """A fault about some of the machines spares those; one about the request spares all."""
    fault = call.fault
    if fault is None or fault.kind is not FaultKind.LYING_TERMINATE:
        return False
    return not fault.machines or machine.id in fault.machines


def _ended(call: Call, machine: Machine, is_lie: bool) -> dict[str, Any]:
    if is_lie:
        said = State.STOPPING if machine.state in (State.PENDING, State.RUNNING) else machine.state
        now = {"Code": view.CODES[said], "Name": str(said)}
    else:
        now = view.state(call.world.end(call.account, machine.id, call.now))
    return {"InstanceId": machine.id, "CurrentState": now, "PreviousState": view.state(machine)}


def get_console_output(call: Call) -> dict[str, Any]:
    """What the machine printed, the newest 64 KiB of it, in base64."""
    machine = _named(call, [call.values["InstanceId"]])[0]
    text = call.lab.guests.console(machine.id)[-MOST_CONSOLE:]
    return {
        "InstanceId": machine.id,
        "Output": base64.b64encode(text).decode(),
        "Timestamp": moment(call.now),
    }


def _wanted(call: Call) -> Sequence[Machine]:
    ids = call.values.get("InstanceIds")
    return _named(call, ids) if ids else call.seen()


def _named(call: Call, ids: Sequence[str]) -> list[Machine]:
    """In the order asked for, each once. One that is not visible yet does not exist."""
    if not ids:
        raise AwsError("MissingParameter", "The request must contain the parameter InstanceId")
    if len(ids) > MOST_IDS:
        invalid(f"The maximum number of instance IDs is {MOST_IDS}.")
    for id in ids:
        if (problem := malformed("i", id)) is not None:
            raise problem
    seen = {machine.id: machine for machine in call.seen()}
    for id in ids:
        if id not in seen:
            raise absent("i", id)
    return [seen[id] for id in dict.fromkeys(ids)]


def _status(call: Call, machine: Machine) -> dict[str, Any]:
    is_up = machine.state is State.RUNNING
    summary = {
        "Status": "ok" if is_up else "not-applicable",
        "Details": [{"Name": "reachability", "Status": "passed"}] if is_up else [],
    }
    return {
        "AvailabilityZone": machine.zone,
        "AvailabilityZoneId": call.places.zone_of(machine.zone).id,
        "InstanceId": machine.id,
        "InstanceState": view.state(machine),
        "InstanceStatus": summary,
        "SystemStatus": summary,
    }


def _listing(call: Call) -> Listing[Machine]:
    def bought(machine: Machine) -> Any:
        return view.purchase_of(call, machine)

    return Listing(
        key=lambda machine: machine.id,
        tags=lambda machine: machine.tags,
        filters={
            "architecture": lambda machine: [architecture(machine.type)],
            "availability-zone": lambda machine: [machine.zone],
            "capacity-reservation-id": lambda machine: [machine.reservation],
            "client-token": lambda machine: [machine.token],
            "image-id": lambda machine: [bought(machine).image],
            "instance-id": lambda machine: [machine.id],
            "instance-lifecycle": lambda machine: ["spot" if machine.market is Market.SPOT else None],
            "instance-state-code": lambda machine: [str(view.CODES[machine.state])],
            "instance-state-name": lambda machine: [str(machine.state)],
            "instance-type": lambda machine: [machine.type],
            "instance.group-id": lambda machine: bought(machine).groups,
            "ip-address": lambda machine: [machine.public_address],
            "key-name": lambda machine: [bought(machine).key],
            "launch-index": lambda machine: [str(machine.index)],
            "owner-id": lambda machine: [machine.account],
            "placement-group-name": lambda machine: [bought(machine).placement_group],
            "private-ip-address": lambda machine: [machine.private_address],
            "reservation-id": lambda machine: [machine.launch_id],
            "spot-instance-request-id": lambda machine: [machine.request_id],
            "subnet-id": lambda machine: [subnet_id(call.account, machine.zone)],
            "vpc-id": lambda machine: [call.office.vpc],
        },
    )


_STATUS: Listing[Machine] = Listing(
    key=lambda machine: machine.id,
    filters={
        "availability-zone": lambda machine: [machine.zone],
        "instance-state-code": lambda machine: [str(view.CODES[machine.state])],
        "instance-state-name": lambda machine: [str(machine.state)],
        "instance-status.status": lambda machine: ["ok" if machine.state is State.RUNNING else "not-applicable"],
        "system-status.status": lambda machine: ["ok" if machine.state is State.RUNNING else "not-applicable"],
    },
)

OPERATIONS: dict[str, Handler] = {
    "RunInstances": run_instances,
    "DescribeInstances": describe_instances,
    "DescribeInstanceStatus": describe_instance_status,
    "TerminateInstances": terminate_instances,
    "GetConsoleOutput": get_console_output,
}
