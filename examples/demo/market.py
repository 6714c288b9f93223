"""The Lab's market on a virtual clock, as sellers that the engine buys from: the same types, zones, prices and luck as
in a Lab, and nobody waits. What its machines run is pretended (`pretending.py`)."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from crucible.catalog import Catalog
from crucible.lab import geography, history
from crucible.model.catalog import Price
from crucible.model.errors import NoCapacity, OrderRejected, ProviderError
from crucible.model.ids import MachineId, OrderId
from crucible.model.lease import Boot, Machine, MachineState, Order, SellerFacts
from crucible.model.ledger import PriceSince
from crucible.model.offer import Market as Sold
from crucible.model.offer import Offer
from crucible.model.units import MicroUsd
from crucible.ports.clock import Clock
from crucible.providers.aws import tags
from crucible.providers.aws.prices import SOURCE_ON_DEMAND, SOURCE_SPOT
from crucible.providers.aws.region import FACTS
from crucible.providers.aws.settings import AwsSettings
from crucible.testing.fake_agents import Fleet
from crucible.world import machine as theirs
from crucible.world.facts import Facts, Market
from crucible.world.prices import PriceLine
from crucible.world.world import World

ACCOUNT = "000000000001"
STATES = {
    theirs.State.PENDING: MachineState.STARTING,
    theirs.State.RUNNING: MachineState.RUNNING,
    theirs.State.STOPPING: MachineState.STOPPING,
    theirs.State.ENDED: MachineState.GONE,
}
TAKEN = "AWS took the spot machine back"
# Whose prices were told, of all that are sold: every change makes the table of all offers anew.
TOLD = ("g4dn.xlarge", "g5.12xlarge", "g5.48xlarge", "g6.xlarge", "g6.12xlarge", "g6e.12xlarge", "p4d.24xlarge",
        "p5.48xlarge")  # fmt: skip
# Looked at so seldom that days pass in seconds; machines of the past wait for nobody.
UNHURRIED = timedelta(minutes=5)


def a_world(catalog: Catalog, regions: Sequence[str], until: datetime, hazard: float) -> World:
    """Its prices lead to those that a Lab begins with at `until`."""
    prices = history.History(until.timestamp(), 0, None)
    facts = geography.facts(catalog, regions, ACCOUNT, prices.line, hazard=hazard)
    return World(facts, salt=ACCOUNT)


@dataclass(kw_only=True)
class PastMarket:
    """Lets the world's time pass, and does with agents what follows from it."""

    world: World
    clock: Clock
    fleet: Fleet
    boots: dict[str, tuple[Order, Boot]] = field(default_factory=dict)  # by machine
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._lines = {(sale.zone, sale.type): PriceLine(sale.spot) for sale in self.world.facts.sales}

    async def run(self) -> None:
        while True:
            self._changed.clear()
            for happening in self.world.tick(self.now()):
                self._follow(happening)
            at = self.world.next_at()
            await self.clock.wait(self._changed, 3600.0 if at is None else at - self.now())

    def now(self) -> float:
        return self.clock.now().timestamp()

    def wake(self) -> None:
        self._changed.set()

    def _follow(self, happening: theirs.Happening) -> None:
        machine = MachineId(happening.subject)
        match happening.what:
            case theirs.What.BOOTED if machine in self.boots:
                order, boot = self.boots[machine]
                self.fleet.boot(self.shown(self.world.machine(machine)), order, boot)
            case theirs.What.NOTICED:
                taken_at = self.world.machine(machine).taken_at
                self.fleet.notice(machine, (taken_at or happening.at) - happening.at)
            case theirs.What.STOPPING | theirs.What.ENDED:
                self.fleet.end(machine)
            case _:
                pass

    def shown(self, machine: theirs.Machine) -> Machine:
        """As a listing tells of it, with its prices so far."""
        was_taken = machine.end is theirs.End.SELLER
        is_spot = machine.market is Market.SPOT
        return Machine(
            id=MachineId(machine.id),
            order_id=OrderId(machine.tags[tags.ORDER]),
            index=machine.index,
            state=STATES[machine.state],
            address=machine.private_address,
            reason=TAKEN if was_taken else None,
            started_at=moment(machine.launched_at),
            ended_at=None if machine.ended_at is None else moment(machine.ended_at),
            was_taken=was_taken and is_spot,
            prices=self._prices(machine) if is_spot else (),
            extras=tags.rates(machine.tags),
        )

    def _prices(self, machine: theirs.Machine) -> tuple[PriceSince, ...]:
        began, until = machine.launched_at, self.now() if machine.ended_at is None else machine.ended_at
        return tuple(
            PriceSince(moment(max(point.at, began)), MicroUsd(point.microusd_per_hour))
            for point in self._lines[machine.zone, machine.type].within(began, until)
        )


class PastRegion:
    """One region of it, as a seller. What is bought costs what AWS would ask for: a disk and an address too."""

    name = geography.PROVIDER

    def __init__(self, market: PastMarket, region: str) -> None:
        self.region = region
        self.facts: SellerFacts = replace(FACTS, poll_every=UNHURRIED)
        self._market = market
        self._zones = {zone.id: zone.name for zone in market.world.facts.zones}

    async def offers(self) -> Sequence[Offer]:
        return ()

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        try:
            bought = self._market.world.launch(self._ask(order), self._market.now())
        except theirs.Refused as refused:
            raise self._trouble(refused) from refused
        for machine in bought:
            self._market.boots[machine.id] = order, boot
        self._market.wake()
        return [replace(self._market.shown(one), started_at=None, prices=(), extras=()) for one in bought]

    async def delete(self, machine: MachineId) -> None:
        try:
            self._market.world.end(ACCOUNT, machine, self._market.now())
        except theirs.Refused:
            return  # absent is success
        self._market.wake()

    async def machines(self) -> Sequence[Machine]:
        listed = self._market.world.machines(ACCOUNT, self.region, self._market.now())
        return [self._market.shown(one) for one in listed]

    def _ask(self, order: Order) -> theirs.Launch:
        usual = AwsSettings()
        beside = tags.extras(usual.disk_type, usual.disk_gib, usual.has_public_address)
        return theirs.Launch(
            account=ACCOUNT,
            region=self.region,
            zone=self._zones.get(order.zone),
            type=order.instance_type,
            market=Market.SPOT if order.is_spot else Market.ON_DEMAND,
            least=order.count,
            most=order.count,
            token=order.id,
            disk_gib=usual.disk_gib,
            tags={tags.ORDER: order.id, tags.EXTRAS: beside},
        )

    def _trouble(self, refused: theirs.Refused) -> ProviderError:
        kind = NoCapacity if refused.by is theirs.RefusedBy.CAPACITY else OrderRejected
        return kind(refused.message, provider=self.name, region=self.region)


class PastPrices:
    """What one region asks for at the moment, as AWS tells it."""

    def __init__(self, world: World, region: str, now: Callable[[], datetime]) -> None:
        self.name = f"{geography.PROVIDER}:{region}"
        self._world, self._region, self._now = world, region, now
        self._zones = zones_of(world.facts, region)

    async def prices(self) -> Sequence[Price]:
        sales = [sale for sale in self._world.facts.sales if sale.zone in self._zones and sale.type in TOLD]
        on_demand = {sale.type: sale.on_demand for sale in sales}
        spot = [(sale, self._world.spot_price(sale.zone, sale.type, self._now().timestamp())) for sale in sales]
        return [
            *(self._price("*", type_, Sold.ON_DEMAND, price, SOURCE_ON_DEMAND) for type_, price in on_demand.items()),
            *(
                self._price(self._zones[sale.zone], sale.type, Sold.SPOT, price, SOURCE_SPOT)
                for sale, price in spot
                if price is not None
            ),
        ]

    def _price(self, zone: str, instance_type: str, market: Sold, price: int, source: str) -> Price:
        return Price(
            provider=geography.PROVIDER,
            region=self._region,
            zone=zone,
            instance_type=instance_type,
            market=market,
            price=MicroUsd(price),
            as_of=self._now(),
            source=source,
        )


def zones_of(facts: Facts, region: str) -> Mapping[str, str]:
    """By name, the ids that mean the same place in every account."""
    return {zone.name: zone.id for zone in facts.zones if zone.region == region}


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
