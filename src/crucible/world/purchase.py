"""Making what was bought. Whether it may be bought is decided before; what becomes of it, after."""

from crucible.world.addresses import Addresses
from crucible.world.admission import Place
from crucible.world.dice import Dice
from crucible.world.facts import Facts, Market
from crucible.world.machine import Disk, Launch, Machine, Refused, RefusedBy


class Tokens:
    """Which purchase a token stands for. A refused purchase leaves its token unused."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], tuple[str, tuple[str, ...]]] = {}

    def ids(self, key: tuple[str, ...], fingerprint: str) -> tuple[str, ...] | None:
        """What was bought with it; Refused(TOKEN) if it was something else."""
        known = self._known.get(key)
        if known is not None and known[0] != fingerprint:
            raise Refused(RefusedBy.TOKEN, f"the token {key[-1]} stands for another purchase")
        return known[1] if known is not None else None

    def keep(self, key: tuple[str, ...], fingerprint: str, ids: tuple[str, ...]) -> None:
        self._known[key] = (fingerprint, ids)


class Workshop:
    def __init__(self, facts: Facts, dice: Dice, private: Addresses, public: Addresses) -> None:
        self._facts = facts
        self._dice = dice
        self._private = private
        self._public = public

    def make(self, ask: Launch, place: Place, now: float) -> tuple[list[Machine], list[Disk]]:
        if min(self._private.left, self._public.left) < place.count:
            raise Refused(RefusedBy.CAPACITY, f"there are no {place.count} addresses left")
        launch_id = self._dice.id("r")
        machines = [self._machine(ask, place, launch_id, index, now) for index in range(place.count)]
        return machines, [_disk(ask, machine) for machine in machines]

    def _machine(self, ask: Launch, place: Place, launch_id: str, index: int, now: float) -> Machine:
        return Machine(
            id=self._dice.id("i"),
            launch_id=launch_id,
            index=index,
            account=ask.account,
            region=ask.region,
            zone=place.sale.zone,
            type=ask.type,
            market=ask.market,
            launched_at=int(now),
            boots_at=now + self._dice.between(self._facts.boot_s),
            visible_at=now + ask.visible_after_s,
            tags=dict(ask.tags),
            user_data=ask.user_data,
            private_address=self._private.take(),
            public_address=self._public.take() if ask.has_address else None,
            disk_id=self._dice.id("vol"),
            request_id=self._dice.request_id() if ask.market is Market.SPOT else None,
            max_price=place.max_price,
            token=ask.token,
            reservation=ask.reservation,
            ends_on_shutdown=ask.ends_on_shutdown,
        )


def _disk(ask: Launch, machine: Machine) -> Disk:
    return Disk(
        id=machine.disk_id,
        account=machine.account,
        region=machine.region,
        zone=machine.zone,
        gib=ask.disk_gib,
        created_at=machine.launched_at,
        tags=dict(ask.disk_tags),
        machine=machine.id,
    )
