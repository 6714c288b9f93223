"""The invoice of one account: a line for everything that it ever held. What is over was worked out once and for all."""

from collections.abc import Iterator

from crucible.world.atlas import Atlas
from crucible.world.facts import Market, Terms
from crucible.world.holdings import Holdings
from crucible.world.invoice import Invoice, Line
from crucible.world.machine import Disk, Machine
from crucible.world.meters import address_line, disk_line, machine_line, reservation_line


class Till:
    def __init__(self, holdings: Holdings, atlas: Atlas, terms: Terms) -> None:
        self._holdings = holdings
        self._atlas = atlas
        self._terms = terms
        self._final: dict[str, tuple[Line, ...]] = {}  # of machines that ended and disks that were deleted

    def invoice(self, account: str, until: int) -> Invoice:
        lines = tuple(self._lines(account, until))
        return Invoice(account=self._atlas.account(account).id, until=until, lines=lines)

    def _lines(self, account: str, until: int) -> Iterator[Line]:
        for machine in self._holdings.machines.values():
            if machine.account == account:
                yield from self._final.get(machine.id) or self._of_machine(machine, until)
        for disk in self._holdings.disks.values():
            if disk.account == account:
                yield from self._final.get(disk.id) or self._of_disk(disk, until)
        for held in self._holdings.reservations.values():
            if held.account == account:
                yield reservation_line(held, self._atlas.sale(held.zone, held.type), until)

    def _of_machine(self, machine: Machine, until: int) -> tuple[Line, ...]:
        sale = self._atlas.sale(machine.zone, machine.type)
        prices = self._atlas.line(machine.zone, machine.type) if machine.market is Market.SPOT else None
        held = self._holdings.reservation(machine.reservation) if machine.reservation is not None else None
        itself = machine_line(machine, sale, prices, held, self._terms, until)
        address = address_line(machine, self._terms, until)
        lines = (itself,) if address is None else (itself, address)
        if machine.ended_at is not None:
            self._final[machine.id] = lines
        return lines

    def _of_disk(self, disk: Disk, until: int) -> tuple[Line, ...]:
        lines = (disk_line(disk, self._terms, until),)
        if disk.deleted_at is not None:
            self._final[disk.id] = lines
        return lines
