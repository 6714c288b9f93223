"""Sells machines on own hosts. What was bought is known to the hosts themselves: a server that starts anew finds it. An
order is carried out in two steps: first room is made on every host, then all agents start; in between nothing runs, so
that all or none is kept whoever dies."""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from crucible.model.errors import (
    InvalidRequest,
    NoCapacity,
    OrderRejected,
    OutcomeUnknown,
    ProviderError,
    Unreachable,
)
from crucible.model.host import Host, HostUse
from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Boot, Machine, MachineState, Order, SellerFacts
from crucible.model.offer import Offer
from crucible.providers.onprem.fleet import Fleet, Sight, bounded
from crucible.providers.onprem.health import examined
from crucible.providers.onprem.kept_host import KeeperRefused
from crucible.providers.onprem.stock import PROVIDER, REGION, choose, max_machines, offers_of

MACHINE_ID = re.compile(r"host-[0-9a-f]{20}")
# A prepared order that has not been called for so long may have been given up: its hosts are anybody's again.
PROMISE_S = 60.0


class OnpremSeller:
    name = PROVIDER
    region = REGION

    def __init__(self, fleet: Fleet, promises: "Promises | None" = None) -> None:
        settings = fleet.settings
        self.facts = SellerFacts(
            idempotent_create=True,
            visibility=settings.answer_limit,
            boot_time=settings.boot_limit,
            counts_stock=True,
            powers_off=False,
            shares_files=False,
            orphan_after=settings.fence,
            fence=settings.fence,
        )
        self._fleet = fleet
        self._promises = promises or Promises()

    async def offers(self) -> Sequence[Offer]:
        return offers_of([sight.standing for sight in await self._fleet.look(anew=False)])

    async def machines(self) -> Sequence[Machine]:
        return [machine(sight.host, seen) for sight in await self._fleet.look() for seen in sight.machines]

    async def health(self) -> Mapping[str, Any]:
        return examined(await self._fleet.look())

    # --- buying -------------------------------------------------------------------------------------------------

    async def prepare(self, order: Order) -> Mapping[str, Any]:
        """Which machine stands on which host, with which devices. Without room the request is empty, and refused when
        it is carried out."""
        standings = [sight.standing for sight in await self._fleet.look()]
        chosen = choose(standings, order.offer, order.count, self._promises.others(order.id)) or []
        self._promises.make(order.id, {one.host.name: frozenset(devices) for one, devices in chosen})
        return {
            "order_id": order.id,
            "machines": [
                {"index": index, "host": one.host.name, "devices": list(devices)}
                for index, (one, devices) in enumerate(chosen)
            ],
        }

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        places: Sequence[Mapping[str, Any]] = order.body["request"]["machines"]
        if not places:
            raise NoCapacity(f"fewer than {order.count} own hosts are free for {order.offer}", **HERE)
        known = {host.name: host for host in await self._fleet.book.hosts()}
        lost = [place["host"] for place in places if place["host"] not in known]
        if lost:
            raise OrderRejected(f"host {lost[0]} is not registered any more", **HERE)
        hosts = [known[name] for name in dict.fromkeys(place["host"] for place in places)]
        purchase = Purchase(self._fleet, order, boot, places)
        try:
            machines = await purchase.carry_out(hosts)
        finally:
            self._fleet.look_again()
        self._promises.drop(order.id)
        return machines

    # --- giving back --------------------------------------------------------------------------------------------

    async def delete(self, machine: MachineId) -> None:
        # Anything else was never sold here.
        if not MACHINE_ID.fullmatch(machine):
            return
        for sight in await self._where(machine):
            if sight.problem is not None:
                raise ProviderError(f"machine {machine} cannot be ended: {sight.problem}", **HERE)
            try:
                await self._fleet.kept(sight.host).ask("delete", machine_id=machine)
                self._fleet.look_again()
            except KeeperRefused as error:
                raise error.as_seller(sight.host.name) from error
            except Unreachable as error:
                raise ProviderError(f"machine {machine} cannot be ended: {error.message}", **HERE) from error

    async def last_words(self, machine: MachineId) -> str | None:
        if not MACHINE_ID.fullmatch(machine):
            return None
        for sight in await self._where(machine):
            if sight.problem is not None:
                return None
            answer = await bounded(self._fleet.kept(sight.host).ask("words", machine_id=machine))
            if isinstance(answer, dict) and answer["text"]:
                return str(answer["text"])
        return None

    async def _where(self, machine: MachineId) -> list[Sight]:
        sights = await self._fleet.look(anew=False)
        return [sight for sight in sights if any(seen["id"] == machine for seen in sight.machines)] or [
            sight for sight in await self._fleet.look() if any(seen["id"] == machine for seen in sight.machines)
        ]


class Purchase:
    def __init__(self, fleet: Fleet, order: Order, boot: Boot, places: Sequence[Mapping[str, Any]]) -> None:
        self._fleet = fleet
        self._order = order
        self._boot = boot
        self._places = places

    async def carry_out(self, hosts: Sequence[Host]) -> Sequence[Machine]:
        """Room first, on all of them; then all are started. Raises NoCapacity, OrderRejected, RateLimited with nothing
        left behind that starts by itself; OutcomeUnknown."""
        made = await self._all(hosts, self._make)
        may_run = any(not isinstance(answer, Exception) and answer["was_started"] for answer in made)
        await self._check(hosts, made, may_run=may_run)
        started = await self._all(hosts, lambda host: self._fleet.kept(host).ask("start", order_id=self._order.id))
        await self._check(hosts, started, may_run=True)
        await self._all(hosts, lambda host: self._fleet.note_success(host.name))
        answers = zip(hosts, started, strict=True)
        return self._whole([machine(host, seen) for host, answer in answers for seen in answer["machines"]])

    async def _make(self, host: Host) -> dict[str, Any]:
        kept = self._fleet.kept(host)
        url = await kept.route()
        servers = [url] if url not in self._boot.servers else list(self._boot.servers)
        fence_s = self._fleet.settings.fence.total_seconds()
        return await kept.ask(
            "make",
            order_id=self._order.id,
            machines=[place for place in self._places if place["host"] == host.name],
            exclusive=host.use is HostUse.EXCLUSIVE,
            max_machines=max_machines(host),
            boot={
                "servers": servers,
                "enrolment_token": self._boot.enrolment_token,
                "address": address_of(host),
                "enrol_within_s": fence_s,
                "fence_s": fence_s,
            },
        )

    async def _all(self, hosts: Sequence[Host], act: Any) -> list[Any]:
        return list(await asyncio.gather(*(bounded(act(host)) for host in hosts)))

    async def _check(self, hosts: Sequence[Host], answers: Sequence[Any], *, may_run: bool) -> None:
        """One host that cannot is enough: what was not running before is taken away again everywhere. `may_run`: this
        order may have started machines before. If not, a host that does not answer is only one that has no room: what
        it keeps for us expires, and what an earlier call may have started there after all belongs to no lease then."""
        failed = [(host, error) for host, error in zip(hosts, answers, strict=True) if isinstance(error, Exception)]
        if not failed:
            return
        for host, error in failed:
            if not (isinstance(error, KeeperRefused) and error.why in ("no_capacity", "busy", "unknown")):
                await bounded(self._fleet.note_failure(host.name, str(error)))
        undone = await self._all(hosts, lambda host: self._fleet.kept(host).ask("undo", order_id=self._order.id))
        host, error = failed[0]
        if may_run and (any(isinstance(answer, Exception) for answer in undone) or isinstance(error, Unreachable)):
            raise OutcomeUnknown(f"host {host.name}: {message_of(error)}", **HERE) from error
        if isinstance(error, Unreachable):
            raise NoCapacity(f"host {host.name}: {message_of(error)}", **HERE) from error
        if isinstance(error, KeeperRefused):
            raise error.as_seller(host.name) from error
        raise OrderRejected(f"host {host.name}: {message_of(error)}", **HERE) from error

    def _whole(self, found: Sequence[Machine]) -> list[Machine]:
        """One for each index: what a host has forgotten ended long ago."""
        by_index = {one.index: one for one in found}
        return [by_index.get(index) or self._forgotten(index) for index in range(self._order.count)]

    def _forgotten(self, index: int) -> Machine:
        raise OutcomeUnknown(f"machine {index} of order {self._order.id} is not there yet", **HERE)


class Promises:
    """What orders of this process have prepared and not yet bought: others look for another place first. A server
    beside this one does not know; whoever comes second is refused by the host."""

    def __init__(self) -> None:
        self._made: dict[OrderId, tuple[float, Mapping[str, frozenset[str]]]] = {}

    def make(self, order_id: OrderId, places: Mapping[str, frozenset[str]]) -> None:
        self._made[order_id] = (time.monotonic() + PROMISE_S, places)

    def drop(self, order_id: OrderId) -> None:
        self._made.pop(order_id, None)

    def others(self, order_id: OrderId) -> dict[str, frozenset[str]]:
        """Devices by host."""
        now = time.monotonic()
        self._made = {name: made for name, made in self._made.items() if made[0] > now}
        found: dict[str, frozenset[str]] = {}
        for name, (_, places) in self._made.items():
            if name != order_id:
                for host, devices in places.items():
                    found[host] = found.get(host, frozenset()) | devices
        return found


HERE: Mapping[str, Any] = {"provider": PROVIDER, "region": REGION}


def machine(host: Host, seen: Mapping[str, Any]) -> Machine:
    return Machine(
        id=MachineId(seen["id"]),
        order_id=OrderId(seen["order_id"]),
        index=seen["index"],
        state=MachineState(seen["state"]),
        devices=tuple(seen["devices"]),
        address=address_of(host),
        reason=seen["reason"],
    )


def address_of(host: Host) -> str:
    """Where the other hosts of its zone reach it."""
    return host.internal_address or host.facts.get("address") or host.address


def message_of(error: Exception) -> str:
    return (
        error.message if isinstance(error, InvalidRequest | Unreachable | ProviderError | KeeperRefused) else str(error)
    )
