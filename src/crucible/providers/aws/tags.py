"""What we write on everything that we buy. It is all that we need to find it again, and to know what it costs after it
has ended: Amazon keeps the tags of an ended machine, but no longer says which disk and address it had."""

from collections.abc import Mapping, Sequence
from typing import Any

from crucible.model.ids import OrderId
from crucible.model.lease import Order
from crucible.model.ledger import ChargeKind, Rate
from crucible.model.units import MicroUsd
from crucible.providers.aws.settings import DISK_PRICES

DEPLOYMENT = "crucible:deployment"
ORDER = "crucible:order"
JOB = "crucible:job"
EXTRAS = "crucible:extras"  # "gp3:100,address"
NAME = "Name"

ADDRESS = "address"
# Amazon's month and its price of a public IPv4 address.
MONTH_S = 730 * 3600
HOUR_S = 3600
ADDRESS_PER_HOUR = MicroUsd(5_000)

Tags = Mapping[str, str]


def of_order(order: Order, deployment: str) -> dict[str, str]:
    return {DEPLOYMENT: deployment, ORDER: order.id, JOB: order.job_id, NAME: f"crucible-{order.id}"}


def extras(disk_type: str, disk_gib: int, has_address: bool) -> str:
    return f"{disk_type}:{disk_gib}" + (f",{ADDRESS}" if has_address else "")


def written(tags: Tags) -> list[dict[str, str]]:
    """As Amazon takes them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def read(thing: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags", ())}


def order_id(tags: Tags) -> OrderId | None:
    found = tags.get(ORDER)
    return OrderId(found) if found else None


def deployment_filter(deployment: str) -> dict[str, Any]:
    return {"Name": f"tag:{DEPLOYMENT}", "Values": [deployment]}


def rates(tags: Tags) -> tuple[Rate, ...]:
    """What is charged beside the machine. A word that we did not write says nothing."""
    found: list[Rate] = []
    for word in tags.get(EXTRAS, "").split(","):
        kind, _, size = word.partition(":")
        if kind == ADDRESS:
            found.append(Rate(ChargeKind.ADDRESS, ADDRESS_PER_HOUR, HOUR_S))
        elif kind in DISK_PRICES and size.isdecimal():
            found.append(disk_rate(kind, int(size)))
    return tuple(found)


def disk_rate(kind: str, gib: int) -> Rate:
    return Rate(ChargeKind.STORAGE, MicroUsd(gib * DISK_PRICES[kind]), MONTH_S)


def specifications(tags: Tags, kinds: Sequence[str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": written(tags)} for kind in kinds]
