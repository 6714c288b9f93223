"""A seller's world for the lifecycle machine: the machines that exist and cost money, whatever we believe about them.
It answers as it is told to for the next call; what it was asked is kept beside what it did."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, TypeVar

from crucible.model.errors import NoCapacity, OutcomeUnknown, ProviderError
from crucible.model.ids import MachineId, OfferId, OrderId
from crucible.model.lease import Boot, Machine, MachineState, Order, SellerFacts
from crucible.model.ledger import ChargeKind, PriceSince, Rate, Terms
from crucible.model.offer import Offer, Target
from crucible.model.units import MicroUsd

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = Target("shop", "nowhere-1", "vm")
GPUS = 6
VISIBILITY = timedelta(seconds=30)
# As long as it remembers what has ended; afterwards only absence tells.
REMEMBERS = timedelta(minutes=20)
# More listings in a row than this never leave out what is there.
MOST_OMISSIONS = 2
PRICE_PER_GPU = 2_345_678
SPOT_PRICE = 777_777
DISK = Rate(ChargeKind.STORAGE, MicroUsd(8_000_001), 30 * 86400)
TERMS = Terms(unit_s=1, minimum_s=60, free_if_taken_within_s=3600)

Buying = Literal["answered", "lost reply", "error before", "refused"]
Deleting = Literal["done", "lying", "failing"]
Listing = Literal["whole", "lagging", "omitting", "failing"]


@dataclass
class HandClock:
    """Moves only when a rule moves it. Who sleeps on it is never woken: no loop of the engine runs here."""

    passed: float = 0.0

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    def cpu(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.get_running_loop().create_future()

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        return await awaitable

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        return event.is_set()


@dataclass
class Thing:
    """One machine, as it is."""

    id: MachineId
    order_id: OrderId
    index: int
    gpus: int
    devices: tuple[str, ...]
    prices: list[tuple[datetime, int]]  # per hour, each since then; more than one where it moves
    is_spot: bool
    token: str  # what its agent enrols with
    born_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None
    was_taken: bool = False

    @property
    def is_alive(self) -> bool:
        return self.ended_at is None

    def costs(self) -> int:
        """As the terms say, worked out by itself: micro-dollars."""
        assert self.ended_at is not None
        lived = (self.ended_at - self.born_at).total_seconds()
        is_free = self.is_spot and self.was_taken and lived < TERMS.free_if_taken_within_s
        end = max(self.ended_at, self.born_at + timedelta(seconds=TERMS.minimum_s))
        changes = [(at, price) for at, price in self.prices if at < self.ended_at or at == self.born_at]
        ends = [at for at, _ in changes[1:]] + [end]
        compute = sum(share(price, at, to, 3600) for (at, price), to in zip(changes, ends, strict=True))
        return (0 if is_free else compute) + share(DISK.amount, self.born_at, end, DISK.per_s)


def share(price: int, start: datetime, end: datetime, per_s: int) -> int:
    return round(Fraction(price) * round((end - start).total_seconds()) / per_s)


@dataclass
class Shop:
    clock: HandClock
    has_tokens: bool
    counts_stock: bool  # else it sells what a catalog says
    # Told of every call before anything happens.
    sees_purchase: Callable[[Order], None]
    sees_delete: Callable[[MachineId], None]
    name: str = TARGET.provider
    region: str = TARGET.region
    things: dict[MachineId, Thing] = field(default_factory=dict)
    calls: list[tuple[OrderId, str]] = field(default_factory=list)
    buying: Buying = "answered"
    deleting: Deleting = "done"
    listing: Listing = "whole"
    hidden: set[OrderId] = field(default_factory=set)  # whose machines a listing left out for no reason
    shown_ends: set[MachineId] = field(default_factory=set)  # in the last listing
    omissions: int = 0  # listings in a row that left something out
    spot_price: int = SPOT_PRICE
    _made: int = 0
    _prepared: int = 0

    def __post_init__(self) -> None:
        self.facts = SellerFacts(
            idempotent_create=self.has_tokens,
            visibility=VISIBILITY,
            boot_time=timedelta(seconds=60),
            counts_stock=self.counts_stock,
            terms=TERMS,
        )

    # --- what the engine asks -----------------------------------------------------------------------

    async def offers(self) -> Sequence[Offer]:
        return [self._offer(gpus) for gpus in range(GPUS + 1)]  # the largest is the whole stock

    async def prepare(self, order: Order) -> Mapping[str, Any]:
        """Never the same twice: only a request that was stored can be made again."""
        self._prepared += 1
        return {"request": self._prepared}

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        self.sees_purchase(order)
        self.calls.append((order.id, repr(order.body)))
        if self.buying == "error before":
            raise OutcomeUnknown("connection reset", provider=self.name)
        bought = [thing for thing in self.things.values() if thing.order_id == order.id]
        if not self.has_tokens or not bought:
            if self.buying == "refused" or order.count * order.gpus > GPUS - self.used():
                raise NoCapacity("sold out", provider=self.name)
            bought = [self._make(order, index, boot) for index in range(order.count)]
        if self.buying == "lost reply":
            raise OutcomeUnknown("no reply", provider=self.name)
        return [self._show(thing) for thing in bought]

    async def delete(self, machine: MachineId) -> None:
        self.sees_delete(machine)
        if self.deleting == "failing":
            raise ProviderError("try again in a minute", provider=self.name)
        if self.deleting == "done" and machine in self.things:
            self.end(machine, "deleted")

    async def machines(self) -> Sequence[Machine]:
        if self.listing == "failing":
            raise ProviderError("listing failed", provider=self.name)
        is_omitting = self.listing == "omitting" and self.omissions < MOST_OMISSIONS
        self.omissions = self.omissions + 1 if is_omitting else 0
        if is_omitting:
            self.hidden |= {thing.order_id for thing in self.alive()}
        shown = [] if is_omitting else [thing for thing in self.things.values() if self._is_shown(thing)]
        self.shown_ends = {thing.id for thing in shown if not thing.is_alive}
        return [self._show(thing) for thing in shown]

    # --- what happens -------------------------------------------------------------------------------

    def end(self, machine: MachineId, reason: str, *, was_taken: bool = False) -> None:
        thing = self.things[machine]
        if thing.is_alive:
            thing.ended_at, thing.reason, thing.was_taken = self._second(), reason, was_taken

    def move_price(self, price: int) -> None:
        """Of spot machines; a price that moves twice within a second has moved once."""
        self.spot_price, now = price, self._second()
        for thing in self.alive():
            if thing.is_spot:
                prices = [(at, old) for at, old in thing.prices if at != now]
                thing.prices = prices if prices and prices[-1][1] == price else [*prices, (now, price)]

    def alive(self) -> list[Thing]:
        return [thing for thing in self.things.values() if thing.is_alive]

    def used(self) -> int:
        return sum(thing.gpus for thing in self.alive())

    def _offer(self, gpus: int) -> Offer:
        return Offer(
            id=OfferId(f"shop/{gpus}"),
            target=TARGET,
            instance_type=f"shop-{gpus}gpu",
            gpu="H100" if gpus else None,
            gpus=gpus,
            gpu_memory_gib=80,
            cpus=8,
            memory_gib=64,
            price_per_hour=MicroUsd(PRICE_PER_GPU * gpus),
            stock="shop:gpus",
            free_gpus=GPUS - self.used(),
        )

    def _make(self, order: Order, index: int, boot: Boot) -> Thing:
        self._made += 1
        taken = {device for thing in self.alive() for device in thing.devices}
        free = [str(n) for n in range(GPUS) if str(n) not in taken]
        thing = Thing(
            id=MachineId(f"m{self._made}"),
            order_id=order.id,
            index=index,
            gpus=order.gpus,
            devices=tuple(free[: order.gpus]),
            prices=[(self._second(), self.spot_price if order.is_spot else order.price_per_hour)],
            is_spot=order.is_spot,
            token=boot.enrolment_token,
            born_at=self._second(),
        )
        self.things[thing.id] = thing
        return thing

    def _is_shown(self, thing: Thing) -> bool:
        now = self.clock.now()
        if thing.ended_at is not None and now - thing.ended_at > REMEMBERS:
            return False
        return self.listing != "lagging" or now - thing.born_at > VISIBILITY

    def _show(self, thing: Thing) -> Machine:
        return Machine(
            id=thing.id,
            order_id=thing.order_id,
            index=thing.index,
            state=MachineState.RUNNING if thing.is_alive else MachineState.GONE,
            devices=thing.devices,
            address="127.0.0.1",
            reason=thing.reason,
            started_at=thing.born_at,
            ended_at=thing.ended_at,
            was_taken=thing.was_taken,
            prices=tuple(PriceSince(at, MicroUsd(price)) for at, price in thing.prices if thing.is_spot),
            extras=(DISK,),
        )

    def _second(self) -> datetime:
        return self.clock.now().replace(microsecond=0)
