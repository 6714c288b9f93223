"""Tiny's descriptions as our values. Pure: dictionaries in, values out."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from crucible.model.ids import MachineId, OfferId, OrderId
from crucible.model.lease import Machine, MachineState
from crucible.model.offer import Offer, Target
from crucible.model.units import MicroUsd
from crucible_tiny.wire import PROVIDER

# Nothing else can be one of their machines, so nothing else is ever asked for.
MACHINE_ID = re.compile(r"tiny-[0-9]{1,12}")

STATES = {
    "booting": MachineState.STARTING,
    "on": MachineState.RUNNING,
    "ending": MachineState.STOPPING,
    "off": MachineState.GONE,
}


def offer(type_: Mapping[str, Any], region: str) -> Offer:
    gpus = int(type_["gpus"])
    return Offer(
        id=OfferId(f"{PROVIDER}/{region}/{type_['name']}"),
        target=Target(PROVIDER, region, "vm"),
        instance_type=str(type_["name"]),
        gpu=str(type_["gpu"]) if gpus else None,
        gpus=gpus,
        gpu_memory_gib=float(type_["gpu_memory_gib"]),
        cpus=int(type_["cpus"]),
        memory_gib=float(type_["memory_gib"]),
        price_per_hour=MicroUsd(int(type_["microusd_per_hour"])),
        stock=f"{PROVIDER}/{region}/{type_['name']}" if gpus else None,
        free_gpus=int(type_["free"]) * gpus if gpus else None,
    )


def machine(one: Mapping[str, Any]) -> Machine:
    """A state that we do not know counts as starting: it may cost money, and nothing is concluded from it."""
    return Machine(
        id=MachineId(str(one["id"])),
        order_id=OrderId(str(one["tags"]["crucible:order"])),
        index=int(one["index"]),
        state=STATES.get(str(one["state"]), MachineState.STARTING),
        devices=tuple(str(device) for device in one["devices"]),  # empty where whole machines are sold
        address=one.get("address"),
        reason=one.get("reason"),
        started_at=moment(one["created"]),
        ended_at=moment(one.get("ended")),
    )


def moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
