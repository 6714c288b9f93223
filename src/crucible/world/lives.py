"""How a machine goes from launch to end: it boots, is warned, told and taken, or is stopped. Each step happens at its
own time, however late anybody looks."""

import math
from dataclasses import replace

from crucible.world.addresses import Addresses
from crucible.world.agenda import Agenda, Due, Entry
from crucible.world.diary import Diary
from crucible.world.hazard import Fate
from crucible.world.holdings import Holdings
from crucible.world.machine import End, Machine, State, What

AT_WORK = (State.PENDING, State.RUNNING)


class Lives:
    def __init__(self, holdings: Holdings, agenda: Agenda, diary: Diary, private: Addresses, public: Addresses) -> None:
        self._holdings = holdings
        self._agenda = agenda
        self._diary = diary
        self._private = private
        self._public = public
        self._fates: dict[str, Fate] = {}  # of machines that will be taken; their owners do not know
        self._stop_s: dict[str, float] = {}

    def begin(self, machine: Machine, stop_s: float, fate: Fate | None, now: float) -> None:
        """`stop_s`: how long it will take to stop. Settled now, so that it does not depend on who stops first."""
        self._stop_s[machine.id] = stop_s
        self._diary.write(now, What.LAUNCHED, machine.id, f"{machine.type} as {machine.market} in {machine.zone}")
        self._agenda.add(machine.boots_at, Due.BOOT, machine.id)
        if fate is not None:
            self.condemn(machine, fate)

    def condemn(self, machine: Machine, fate: Fate) -> None:
        """It will be taken. An earlier fate stands."""
        known = self._fates.get(machine.id)
        if known is not None and known.taken_at <= fate.taken_at:
            return
        self._fates[machine.id] = fate
        if fate.rebalance_at is not None:
            self._agenda.add(fate.rebalance_at, Due.WARN, machine.id)
        if fate.notice_at is not None:
            self._agenda.add(fate.notice_at, Due.NOTICE, machine.id)
        self._agenda.add(fate.taken_at, Due.TAKE, machine.id)

    def set_notice(self, machine: Machine, notice_s: float, now: float) -> None:
        """When it is taken it is told so long before, 0: not at all. What it was told already stands."""
        fate = self._fates.get(machine.id)
        if fate is None or machine.notice_at is not None:
            return
        notice_at = max(fate.taken_at - notice_s, now) if notice_s > 0 else None
        self._fates[machine.id] = replace(fate, notice_at=notice_at)
        if notice_at is not None:
            self._agenda.add(notice_at, Due.NOTICE, machine.id)

    def stop(self, machine: Machine, by: End, now: float) -> None:
        """A second call changes nothing. What the seller ends is gone at once."""
        if machine.state not in AT_WORK:
            return
        machine.end = by
        if by is End.SELLER:
            self._end(machine, now, "without notice")
            return
        machine.state = State.STOPPING
        machine.stops_at = math.ceil(now + self._stop_s[machine.id])
        self._diary.write(now, What.STOPPING, machine.id, f"by its {by}")
        self._agenda.add(machine.stops_at, Due.END, machine.id)

    def carry_out(self, entry: Entry) -> None:
        machine = self._holdings.machines[entry.subject]
        match entry.due:
            case Due.BOOT:
                self._boot(machine, entry.at)
            case Due.WARN | Due.NOTICE | Due.TAKE:
                self._be_taken(machine, entry)
            case Due.END:
                self._end(machine, entry.at, f"by its {machine.end}")
            case Due.PRICE:
                raise AssertionError("a price belongs to no machine")

    def _boot(self, machine: Machine, at: float) -> None:
        if machine.state is State.PENDING:
            machine.state = State.RUNNING
            self._diary.write(at, What.BOOTED, machine.id)

    def _be_taken(self, machine: Machine, entry: Entry) -> None:
        """One step of its fate, unless it is stopping already or its fate has changed since."""
        fate = self._fates.get(machine.id)
        if machine.state not in AT_WORK or fate is None:
            return
        if entry.due is Due.WARN and entry.at == fate.rebalance_at and machine.rebalance_at is None:
            machine.rebalance_at = entry.at
            self._diary.write(entry.at, What.WARNED, machine.id)
        elif entry.due is Due.NOTICE and entry.at == fate.notice_at and machine.taken_at != fate.taken_at:
            machine.notice_at, machine.taken_at = entry.at, fate.taken_at
            self._diary.write(entry.at, What.NOTICED, machine.id, fate.why)
        elif entry.due is Due.TAKE and entry.at == fate.taken_at:
            machine.end = End.SELLER
            self._end(machine, entry.at, fate.why)

    def _end(self, machine: Machine, at: float, why: str) -> None:
        machine.state = State.ENDED
        machine.ended_at = int(at)
        del self._holdings.alive[machine.id], self._stop_s[machine.id]
        self._fates.pop(machine.id, None)
        self._private.free(machine.private_address)
        if machine.public_address is not None:
            self._public.free(machine.public_address)
        self._diary.write(at, What.ENDED, machine.id, why)
        self._let_go_of_disk(machine, at)

    def _let_go_of_disk(self, machine: Machine, at: float) -> None:
        disk = self._holdings.disks[machine.disk_id]
        if disk.goes_with_machine:
            disk.deleted_at = machine.ended_at
            self._diary.write(at, What.DISK_DELETED, disk.id, f"with {machine.id}")
        else:
            disk.machine = None
