"""Who holds what. Counts are taken from the things themselves each time, so they cannot drift from them."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from crucible.world.atlas import Atlas
from crucible.world.facts import Market, Sale
from crucible.world.machine import Disk, Machine, Refused, RefusedBy, Reservation

_Owned = TypeVar("_Owned", Machine, Disk, Reservation)


class Holdings:
    def __init__(self, atlas: Atlas) -> None:
        self._atlas = atlas
        self.machines: dict[str, Machine] = {}  # every one there ever was: invoices and tokens remember
        self.alive: dict[str, Machine] = {}
        self._remembered: dict[str, Machine] = {}  # those that may still be listed
        self.disks: dict[str, Disk] = {}
        self.reservations: dict[str, Reservation] = {}

    def machine(self, id: str, account: str | None = None) -> Machine:
        """With an `account`, only its own."""
        return _owned(self.machines.get(id), id, account)

    def disk(self, id: str, account: str | None = None) -> Disk:
        return _owned(self.disks.get(id), id, account)

    def reservation(self, id: str, account: str | None = None) -> Reservation:
        return _owned(self.reservations.get(id), id, account)

    def room(self, sale: Sale, market: Market) -> int:
        """How many more machines can be had. Reserved capacity is taken, used or not."""
        capacity = sale.spot_capacity if market is Market.SPOT else sale.on_demand_capacity
        taken = sum(1 for machine in self._at(sale.zone, sale.type, market) if not self.is_reserved(machine))
        if market is Market.ON_DEMAND:
            taken += sum(held.count for held in self._active() if (held.zone, held.type) == (sale.zone, sale.type))
        return max(capacity - taken, 0)

    def unused(self, reservation: Reservation) -> int:
        if reservation.ended_at is not None:
            return 0
        return reservation.count - sum(1 for machine in self.alive.values() if machine.reservation == reservation.id)

    def is_reserved(self, machine: Machine) -> bool:
        """Whether a reservation that is still paid for holds its place."""
        held = self.reservations.get(machine.reservation) if machine.reservation else None
        return held is not None and held.ended_at is None

    def vcpus(self, account: str, region: str, pool: str, market: Market) -> int:
        """What counts against a quota: machines that have not ended, and places that are reserved for more."""
        types = [
            machine.type
            for machine in self.alive.values()
            if (machine.account, machine.region, machine.market) == (account, region, market)
        ]
        if market is Market.ON_DEMAND:
            for held in self._active():
                if (held.account, held.region) == (account, region):
                    types += [held.type] * self.unused(held)
        return sum(found.vcpus for found in map(self._atlas.type, types) if found.quota == pool)

    def add(self, machines: Iterable[Machine], disks: Iterable[Disk]) -> None:
        for machine in machines:
            self.machines[machine.id] = self.alive[machine.id] = self._remembered[machine.id] = machine
        for disk in disks:
            self.disks[disk.id] = disk

    def listed(self, now: float, remember_s: float) -> list[Machine]:
        """What sellers show: not yet those that are too new, no longer those that ended too long ago."""
        self._remembered = {
            id: machine for id, machine in self._remembered.items() if is_remembered(machine, now, remember_s)
        }
        return [machine for machine in self._remembered.values() if machine.visible_at <= now]

    def tags(self, account: str, id: str) -> dict[str, str]:
        """Of whatever has this id."""
        if id in self.disks:
            return self.disk(id, account).tags
        if id in self.reservations:
            return self.reservation(id, account).tags
        return self.machine(id, account).tags

    def _at(self, zone: str, type: str, market: Market) -> Iterator[Machine]:
        wanted = (zone, type, market)
        return (found for found in self.alive.values() if (found.zone, found.type, found.market) == wanted)

    def _active(self) -> Iterator[Reservation]:
        return (held for held in self.reservations.values() if held.ended_at is None)


def is_remembered(machine: Machine, now: float, remember_s: float) -> bool:
    """Sellers show an ended machine for a while, then it never was."""
    return machine.ended_at is None or now < machine.ended_at + remember_s


def _owned(thing: _Owned | None, id: str, account: str | None) -> _Owned:
    if thing is None or (account is not None and thing.account != account):
        raise Refused(RefusedBy.UNKNOWN, f"{id} does not exist")
    return thing
