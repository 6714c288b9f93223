"""Placement groups and capacity reservations that a request for machines names, or that take it in unnamed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crucible.lab.aws.absence import absent
from crucible.lab.aws.call import Call
from crucible.lab.aws.errors import AwsError, beyond_the_lab, combination, invalid
from crucible.lab.aws.registry import PlacementGroup
from crucible.world.facts import Market
from crucible.world.machine import Reservation, State


@dataclass(frozen=True, slots=True)
class Grouped:
    name: str | None
    zone: str | None


def placement_group(call: Call, zone: str | None) -> Grouped:
    """A cluster lives in one zone: its first machines settle which."""
    said = call.values.get("Placement", {})
    group = _group(call, said.get("GroupName"), said.get("GroupId"))
    if group is None:
        return Grouped(None, zone)
    home = cluster_zone(call, group) if group.strategy == "cluster" else None
    if home is not None and zone is not None and home != zone:
        invalid(f"The placement group '{group.name}' has its instances in {home}, not in {zone}.")
    return Grouped(group.name, zone or home)


def cluster_zone(call: Call, group: PlacementGroup) -> str | None:
    for machine in call.world.machines(call.account, call.region, call.now):
        purchase = call.office.purchases.get(machine.launch_id)
        if machine.state is not State.ENDED and purchase and purchase.placement_group == group.name:
            return machine.zone
    return None


def _group(call: Call, name: str | None, id: str | None) -> PlacementGroup | None:
    if name and id:
        combination("A placement group is named by its name or by its id, not by both.")
    if not name and not id:
        return None
    for group in call.office.placement_groups.values():
        if name == group.name or id == group.id:
            return group
    raise absent("pg", name or id or "")


def reservation(call: Call, type: str, zone: str | None, market: Market) -> str | None:
    """The id of the reservation whose capacity is to be used."""
    said: Mapping[str, Any] = call.values.get("CapacityReservationSpecification", {})
    target, preference = said.get("CapacityReservationTarget", {}), said.get("CapacityReservationPreference")
    if "CapacityReservationResourceGroupArn" in target:
        beyond_the_lab("groups of capacity reservations")
    if target:
        if preference in ("open", "none"):
            combination("A capacity reservation target goes with no preference but capacity-reservations-only.")
        if market is Market.SPOT:
            combination("Spot instances cannot run in a capacity reservation.")
        return _targeted(call, target.get("CapacityReservationId", ""), type, zone).id
    if market is Market.SPOT or preference == "none":
        return None
    fitting = _open(call, type, zone)
    if fitting is None and preference == "capacity-reservations-only":
        raise AwsError("ReservationCapacityExceeded", _FULL)
    return fitting


_FULL = "The requested reservation does not have sufficient compatible and available capacity for this request."


def _targeted(call: Call, id: str, type: str, zone: str | None) -> Reservation:
    for held in call.world.reservations(call.account, call.region):
        if held.id == id:
            if held.ended_at is not None:
                raise AwsError("InvalidState", f"The capacity reservation {id} is not active.")
            if held.type != type or zone not in (None, held.zone):
                invalid(f"The capacity reservation {id} is for {held.type} in {held.zone}.")
            return held
    raise absent("cr", id)


def _open(call: Call, type: str, zone: str | None) -> str | None:
    """An open reservation that takes all machines of the request. Amazon would also split a request between a
    reservation and the market; the Lab does not."""
    most = call.values["MaxCount"]
    for held in call.world.reservations(call.account, call.region):
        fits = held.type == type and zone in (None, held.zone) and held.ended_at is None
        if fits and held.id in call.office.open_reservations and call.world.unused(held.id) >= most:
            return held.id
    return None
