"""A seller whose calls are counted and timed. It has the abilities of the seller inside, and no others: whoever asks
whether it can prepare, remember or count quotas gets that one's answer."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from crucible.engine.metrics import CALL_TIME, CALLS
from crucible.model.errors import PlatformError
from crucible.model.ids import MachineId
from crucible.model.lease import Boot, Leftover, Machine, Order, SellerFacts
from crucible.model.offer import Offer
from crucible.model.quota import Quota
from crucible.ports.clock import Clock
from crucible.ports.meter import Instrument, Meter
from crucible.ports.seller import Examines, Prepares, Quotas, Reaps, Remembers, Seller

T = TypeVar("T")

OK, TIMEOUT, BROKEN = "ok", "timeout", "broken"
# What every seller is asked, and what may come of it: shown from the start.
USUAL = ("offers", "create", "delete", "machines")
USUAL_OUTCOMES = (OK, TIMEOUT, "no_capacity", "rate_limited", "credentials_rejected", "outcome_unknown")


class Metered:
    def __init__(self, seller: Seller, meter: Meter, clock: Clock) -> None:
        self.name, self.region = seller.name, seller.region
        self._seller: Any = seller  # its abilities were asked for when this class was put together
        self._meter, self._clock = meter, clock
        self._counts: dict[tuple[str, str], Instrument] = {}
        self._times: dict[str, Instrument] = {}
        for call in USUAL:
            for outcome in USUAL_OUTCOMES:
                self._count(call, outcome)

    @property
    def facts(self) -> SellerFacts:
        facts: SellerFacts = self._seller.facts
        return facts

    async def offers(self) -> Sequence[Offer]:
        return await self._timed("offers", self._seller.offers())

    async def create(self, order: Order, boot: Boot) -> Sequence[Machine]:
        return await self._timed("create", self._seller.create(order, boot))

    async def delete(self, machine: MachineId) -> None:
        await self._timed("delete", self._seller.delete(machine))

    async def machines(self) -> Sequence[Machine]:
        return await self._timed("machines", self._seller.machines())

    async def _timed(self, call: str, answer: Awaitable[T]) -> T:
        began, outcome = self._clock.monotonic(), BROKEN
        try:
            result = await answer
            outcome = OK
            return result
        except PlatformError as error:
            outcome = error.code
            raise
        except OSError:
            outcome = "os_error"
            raise
        except BaseException as error:
            # Whoever waits too long for an answer cancels the call.
            outcome = BROKEN if isinstance(error, Exception) else TIMEOUT
            raise
        finally:
            self._count(call, outcome)(1)
            self._time(call)(self._clock.monotonic() - began)

    def _count(self, call: str, outcome: str) -> Instrument:
        found = self._counts.get((call, outcome))
        if found is None:
            found = self._meter.counter(CALLS, self.name, self.region, call, outcome)
            self._counts[call, outcome] = found
        return found

    def _time(self, call: str) -> Instrument:
        found = self._times.get(call)
        if found is None:
            found = self._times[call] = self._meter.histogram(CALL_TIME, self.name, call)
        return found


class MeteredPrepares(Metered):
    async def prepare(self, order: Order) -> Mapping[str, Any]:
        return await self._timed("prepare", self._seller.prepare(order))


class MeteredReaps(Metered):
    async def leftovers(self) -> Sequence[Leftover]:
        return await self._timed("leftovers", self._seller.leftovers())

    async def remove(self, leftover: Leftover) -> None:
        await self._timed("remove", self._seller.remove(leftover))


class MeteredRemembers(Metered):
    async def last_words(self, machine: MachineId) -> str | None:
        return await self._timed("last_words", self._seller.last_words(machine))


class MeteredQuotas(Metered):
    async def quotas(self) -> Sequence[Quota]:
        return await self._timed("quotas", self._seller.quotas())


class MeteredExamines(Metered):
    async def health(self) -> Mapping[str, Any]:
        return await self._timed("health", self._seller.health())


ABILITIES: tuple[tuple[type, type[Metered]], ...] = (
    (Prepares, MeteredPrepares),
    (Reaps, MeteredReaps),
    (Remembers, MeteredRemembers),
    (Quotas, MeteredQuotas),
    (Examines, MeteredExamines),
)


def metered(seller: Seller, meter: Meter, clock: Clock) -> Seller:
    abilities = [kind for ability, kind in ABILITIES if isinstance(seller, ability)]
    made: Seller = type("MeteredSeller", (*abilities, Metered), {})(seller, meter, clock)
    return made
