"""The market as a whole: one object that is asked with the time in hand. Whatever became due before is carried out
first, at its own time, so that it does not matter who looks how often. What it hands out are copies."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from crucible.world.addresses import Addresses
from crucible.world.admission import Place, admit, check_reservable
from crucible.world.agenda import Agenda, Due
from crucible.world.atlas import Atlas
from crucible.world.billing import Till
from crucible.world.diary import Diary
from crucible.world.dice import Dice
from crucible.world.facts import Facts, Market, PricePoint
from crucible.world.hazard import Fate, demanded, fate
from crucible.world.holdings import Holdings, is_remembered
from crucible.world.invoice import Invoice
from crucible.world.lives import AT_WORK, Lives
from crucible.world.machine import Disk, End, Happening, Launch, Machine, Refused, RefusedBy, Reservation, What
from crucible.world.purchase import Tokens, Workshop

_Tagged = TypeVar("_Tagged", Machine, Disk, Reservation)


class World:
    """Single-threaded. `now` is in seconds since 1970; a `now` before the last one counts as the last one."""

    def __init__(self, facts: Facts, *, seed: int = 0, salt: str = "") -> None:
        """`seed` settles all that is left to chance. Worlds with another `salt` never have a name in common."""
        self.facts = facts
        self._atlas = Atlas(facts)
        self._dice = Dice(seed, salt)
        self._private = Addresses(facts.private_network)
        self._public = Addresses(facts.public_network)
        self._agenda = Agenda()
        self._diary = Diary()
        self._holdings = Holdings(self._atlas)
        self._lives = Lives(self._holdings, self._agenda, self._diary, self._private, self._public)
        self._workshop = Workshop(facts, self._dice, self._private, self._public)
        self._till = Till(self._holdings, self._atlas, facts.terms)
        self._tokens = Tokens()
        self._notice_s: dict[str, float] = {}  # of machines that are told sooner or later than is usual
        self._now: float | None = None

    # --- machines -----------------------------------------------------------------------------------------------

    def launch(self, ask: Launch, now: float) -> tuple[Machine, ...]:
        """Raises Refused, and then nothing has changed."""
        now = self._advance(now)
        self._atlas.account(ask.account)
        key = ("launch", ask.account, ask.region, ask.token or "")
        if ask.token and (known := self._tokens.ids(key, ask.fingerprint)) is not None:
            return tuple(_copy(self._holdings.machine(id)) for id in known)
        try:
            place = admit(ask, self._atlas, self._holdings, now)
            machines = self._make(ask, place, now)
        except Refused as refused:
            self._diary.write(now, What.REFUSED, f"{ask.type}@{ask.zone or ask.region}", refused.message)
            raise
        if ask.token:
            self._tokens.keep(key, ask.fingerprint, tuple(machine.id for machine in machines))
        return tuple(map(_copy, machines))

    def end(self, account: str, machine_id: str, now: float, by: End = End.OWNER) -> Machine:
        """A second call changes nothing, until the machine is forgotten. By the SELLER it is gone at once, without
        notice, whatever its market."""
        now = self._advance(now)
        machine = self._holdings.machine(machine_id, account)
        if not is_remembered(machine, now, self.facts.remember_s):
            raise Refused(RefusedBy.UNKNOWN, f"{machine_id} does not exist")
        self._lives.stop(machine, by, now)
        return _copy(machine)

    def shut_down(self, machine_id: str, now: float) -> None:
        """The guest switched itself off."""
        now = self._advance(now)
        machine = self._holdings.machine(machine_id)
        if machine.ends_on_shutdown:
            self._lives.stop(machine, End.GUEST, now)
        elif machine.state in AT_WORK:
            self._diary.write(now, What.SHUT_DOWN, machine.id, "the machine stays and costs on")

    def preempt(self, machine_id: str, now: float, notice_s: float | None = None) -> None:
        """Take a spot machine that is at work; it is told `notice_s` before, 0: not at all."""
        now = self._advance(now)
        machine = self._holdings.machine(machine_id)
        if machine.market is not Market.SPOT or machine.state not in AT_WORK:
            raise Refused(RefusedBy.UNKNOWN, f"{machine_id} is no spot machine at work")
        usual_s = self._notice_s.get(machine_id, self.facts.notice_s)
        self._lives.condemn(machine, demanded(now, usual_s if notice_s is None else notice_s))
        self._advance(now)

    def set_notice(self, machine_id: str, notice_s: float, now: float) -> None:
        """From now on this machine is told so long before it is taken, 0: not at all."""
        now = self._advance(now)
        machine = self._holdings.machine(machine_id)
        self._notice_s[machine_id] = notice_s
        self._lives.set_notice(machine, notice_s, now)

    def machine(self, machine_id: str) -> Machine:
        """Any, as it was when somebody last looked; whether its owner can see it yet or not."""
        return _copy(self._holdings.machine(machine_id))

    def machines(
        self, account: str, region: str | None, now: float, *, is_omniscient: bool = False
    ) -> tuple[Machine, ...]:
        """What its owner can see, in order of launch; omniscient: everything there ever was."""
        now = self._advance(now)
        if is_omniscient:
            found: Iterable[Machine] = self._holdings.machines.values()
        else:
            found = self._holdings.listed(now, self.facts.remember_s)
        return tuple(
            _copy(machine) for machine in found if machine.account == account and region in (None, machine.region)
        )

    # --- disks --------------------------------------------------------------------------------------------------

    def create_disk(self, account: str, zone: str, gib: int, now: float, tags: Mapping[str, str] | None = None) -> Disk:
        """One that belongs to no machine."""
        now = self._advance(now)
        region = self._atlas.zone(zone).region
        disk = Disk(
            id=self._dice.id("vol"),
            account=self._atlas.account(account).id,
            region=region,
            zone=zone,
            gib=gib,
            created_at=int(now),
            tags=dict(tags or {}),
            machine=None,
            goes_with_machine=False,
        )
        self._holdings.disks[disk.id] = disk
        return _copy(disk)

    def disks(self, account: str, region: str | None, now: float | None = None) -> tuple[Disk, ...]:
        """That are not deleted; without a time, as of the last one that was told."""
        self._advance_if(now)
        return tuple(
            _copy(disk)
            for disk in self._holdings.disks.values()
            if disk.account == account and region in (None, disk.region) and disk.deleted_at is None
        )

    def delete_disk(self, account: str, disk_id: str, now: float) -> None:
        now = self._advance(now)
        disk = self._holdings.disk(disk_id, account)
        if disk.deleted_at is not None:
            raise Refused(RefusedBy.UNKNOWN, f"{disk_id} does not exist")
        if disk.machine is not None:
            raise Refused(RefusedBy.IN_USE, f"{disk_id} is attached to {disk.machine}")
        disk.deleted_at = int(now)
        self._diary.write(now, What.DISK_DELETED, disk_id)

    def keep_disk(self, disk_id: str, now: float | None = None) -> None:
        """It will survive its machine, if that has not ended yet."""
        self._advance_if(now)
        self._holdings.disk(disk_id).goes_with_machine = False

    # --- reservations -------------------------------------------------------------------------------------------

    def reserve(
        self,
        account: str,
        zone: str,
        type: str,
        count: int,
        now: float,
        *,
        tags: Mapping[str, str] | None = None,
        token: str | None = None,
        fingerprint: str = "",
    ) -> Reservation:
        """Hold `count` places, all or none. They count against capacity and quota as if they were machines."""
        now = self._advance(now)
        region = self._atlas.zone(zone).region
        key = ("reserve", account, region, token or "")
        if token and (known := self._tokens.ids(key, fingerprint)) is not None:
            return _copy(self._holdings.reservation(known[0]))
        check_reservable(account, self._atlas.sale(zone, type), count, region, self._atlas, self._holdings)
        held = Reservation(
            id=self._dice.id("cr"),
            account=account,
            region=region,
            zone=zone,
            type=type,
            count=count,
            created_at=int(now),
            tags=dict(tags or {}),
        )
        self._holdings.reservations[held.id] = held
        self._diary.write(now, What.RESERVED, held.id, f"{count} x {type} in {zone}")
        if token:
            self._tokens.keep(key, fingerprint, (held.id,))
        return _copy(held)

    def cancel_reservation(self, account: str, reservation_id: str, now: float) -> Reservation:
        """A second call changes nothing. Machines on it stay and are charged from now on."""
        now = self._advance(now)
        held = self._holdings.reservation(reservation_id, account)
        if held.ended_at is None:
            held.ended_at = int(now)
            self._diary.write(now, What.RESERVATION_ENDED, held.id)
        return _copy(held)

    def reservations(self, account: str, region: str | None) -> tuple[Reservation, ...]:
        """Cancelled ones too."""
        return tuple(
            _copy(held)
            for held in self._holdings.reservations.values()
            if held.account == account and region in (None, held.region)
        )

    def unused(self, reservation_id: str) -> int:
        """How many of its places nobody uses."""
        return self._holdings.unused(self._holdings.reservation(reservation_id))

    # --- prices, quotas, tags -----------------------------------------------------------------------------------

    def spot_price(self, zone: str, type: str, now: float) -> int | None:
        line = self._atlas.lines.get((zone, type))
        return line.at(now) if line is not None else None

    def spot_history(
        self, region: str, types: Collection[str], start: float, end: float
    ) -> tuple[tuple[str, str, PricePoint], ...]:
        """(zone, type, price), newest first: of each the price in force at `start`, with its own earlier time, and
        every change up to `end`. No types: all of them."""
        found = [
            (zone, type, point)
            for (zone, type), line in self._atlas.lines.items()
            if self._atlas.zone(zone).region == region and (not types or type in types)
            for point in line.within(start, end)
        ]
        return tuple(sorted(found, key=lambda entry: (-entry[2].at, entry[0], entry[1])))

    def set_capacity(self, zone: str, type: str, market: Market, machines: int | None) -> None:
        """So many can be had, those in use included; nobody's is taken away. None: as the facts say."""
        self._atlas.set_capacity(zone, type, market, machines)

    def quota(self, account: str, region: str, pool: str, market: Market) -> int:
        return self._atlas.quota(account, region, pool, market)

    def usage(self, account: str, region: str, pool: str, market: Market, now: float | None = None) -> int:
        """vCPUs that count against the quota."""
        self._advance_if(now)
        return self._holdings.vcpus(account, region, pool, market)

    def tag(self, account: str, resource_id: str, tags: Mapping[str, str]) -> None:
        self._holdings.tags(account, resource_id).update(tags)

    def untag(self, account: str, resource_id: str, keys: Iterable[str]) -> None:
        present = self._holdings.tags(account, resource_id)
        for key in keys:
            present.pop(key, None)

    # --- time and money -----------------------------------------------------------------------------------------

    def tick(self, now: float) -> tuple[Happening, ...]:
        """Everything that happened since the last tick, in order of time."""
        self._advance(now)
        return self._diary.read()

    def next_at(self) -> float | None:
        """When `tick` has something to tell."""
        return min((at for at in (self._diary.unread_since(), self._agenda.next_at()) if at is not None), default=None)

    def events(self, after: int = 0) -> Sequence[Happening]:
        """The latest, for people: those with a number above `after`. Reading them here does not hide them from tick."""
        return self._diary.after(after)

    def invoice(self, account: str, now: float) -> Invoice:
        """By the seller's rules, what still runs up to now."""
        return self._till.invoice(account, int(self._advance(now)))

    @property
    def reuse_addresses(self) -> bool:
        """While it is set, a new machine gets the addresses of the one that ended last."""
        return self._private.reuses_last

    @reuse_addresses.setter
    def reuse_addresses(self, wanted: bool) -> None:
        self._private.reuses_last = self._public.reuses_last = wanted

    # --- inside -------------------------------------------------------------------------------------------------

    def _advance(self, now: float) -> float:
        """Carry out what is due, in order of its own time."""
        if self._now is None:
            for (zone, type), line in self._atlas.lines.items():
                if (change := line.after(now)) is not None:
                    self._agenda.add(change.at, Due.PRICE, _sold(zone, type))
        self._now = now = now if self._now is None else max(now, self._now)
        while (entry := self._agenda.pop(now)) is not None:
            if entry.due is Due.PRICE:
                self._change_price(entry.subject, entry.at)
            else:
                self._lives.carry_out(entry)
        return now

    def _advance_if(self, now: float | None) -> None:
        if now is not None:
            self._advance(now)

    def _change_price(self, sold: str, at: float) -> None:
        type, _, zone = sold.partition("@")
        line = self._atlas.line(zone, type)
        self._diary.write(at, What.PRICE_CHANGED, sold, f"{line.at(at)} micro-dollars per hour")
        if (change := line.after(at)) is not None:
            self._agenda.add(change.at, Due.PRICE, sold)

    def _make(self, ask: Launch, place: Place, now: float) -> Sequence[Machine]:
        machines, disks = self._workshop.make(ask, place, now)
        self._holdings.add(machines, disks)
        for machine in machines:
            stop_s, luck = self._dice.between(self.facts.stop_s), self._dice.luck()
            self._lives.begin(machine, stop_s, self._fate(machine, place, now, luck), now)
        return machines

    def _fate(self, machine: Machine, place: Place, now: float, luck: float) -> Fate | None:
        if machine.market is not Market.SPOT or place.max_price is None:
            return None
        line = self._atlas.line(machine.zone, machine.type)
        return fate(place.sale, line, place.max_price, self.facts, now, luck)


def _sold(zone: str, type: str) -> str:
    return f"{type}@{zone}"


def _copy(thing: _Tagged) -> _Tagged:
    return replace(thing, tags=dict(thing.tags))
