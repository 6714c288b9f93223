"""Prices that live: every source is asked every quarter of an hour and when somebody wants it; what it tells is stored,
and whoever plans reads it as one list. A source that fails never keeps the others waiting, and what it told before
stays."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from crucible.core.offers import UNKNOWN, OfferTable, known
from crucible.engine.context import Context, log
from crucible.model.catalog import Price
from crucible.model.errors import ProviderError
from crucible.model.offer import Fabric, Market
from crucible.ports.clock import Clock
from crucible.ports.prices import Feed, PriceFacts, PriceMark, Prices, key_of
from crucible.ports.store import Store

TIMEOUT_S = 60.0
ASKED_TIMEOUT_S = 20.0  # while somebody waits for the answer
# More than every type of every zone of every cloud together.
MAX_PRICES = 200_000
# While another server has refreshed lately: how often to see whether its turn is over.
LOOK_S = 60.0
# Read at a time; between two pages others get their turn.
PAGE = 2000
# Whether another server has stored something is asked so often at most.
LOOK_AGAIN_S = 1.0
UNKNOWN_TOLD = 20
MAX_ERROR = 500  # characters of a source's words

Facts = Mapping[tuple[str, str, str], PriceFacts]


def no_facts() -> Facts:
    return {}


async def nobody_waits() -> None:
    """For those who are told of no refresh."""


class PriceBook:
    """What is stored, as one list. It stays the same object until something changes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._mark = PriceMark(0, 0)
        self._version = 0
        self._prices: tuple[Price, ...] = ()
        self._looked_at: float | None = None
        self._expired = 0
        self._reading = asyncio.Lock()

    async def overlay(self) -> tuple[int, Sequence[Price]]:
        """A number that grows with every change, and the prices: each replaces the catalog's of the same key."""
        if self._is_fresh():
            return self._version, self._prices
        async with self._reading:
            if not self._is_fresh():
                await self._look()
            return self._version, self._prices

    def expire(self) -> None:
        """Something was just stored."""
        self._looked_at = None
        self._expired += 1

    def _is_fresh(self) -> bool:
        return self._looked_at is not None and self._clock.monotonic() - self._looked_at < LOOK_AGAIN_S

    async def _look(self) -> None:
        began, expired = self._clock.monotonic(), self._expired
        while (mark := await self._store.price_mark()) != self._mark:
            prices = await self._read()
            if await self._store.price_mark() == mark:  # else somebody wrote meanwhile: again
                self._mark, self._prices, self._version = mark, prices, self._version + 1
        if expired == self._expired:  # else something was stored while we looked
            self._looked_at = began

    async def _read(self) -> tuple[Price, ...]:
        found: list[Price] = []
        while page := await self._store.prices(key_of(found[-1]) if found else None, PAGE):
            found += page
            await self._clock.sleep(0)
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What came of asking one source."""

    source: str
    rows: int = 0
    changed: int = 0
    unknown_types: tuple[str, ...] = ()  # the first few of those that the catalog does not know: nobody can plan them
    error: str | None = None
    took_s: float = 0.0


class PriceRefresher:
    """Where two sources tell a price of the same thing, the one that stands first in `sources` is believed."""

    def __init__(
        self,
        context: Context,
        sources: Sequence[Prices],
        book: PriceBook,
        facts: Callable[[], Facts] = no_facts,
        refreshed: Callable[[], Awaitable[None]] = nobody_waits,
    ) -> None:
        """`refreshed` is called after every round."""
        self._context = context
        self._sources = sources
        self._book = book
        self._facts = facts
        self._refreshed = refreshed
        self._turn = asyncio.Lock()
        self._begun = 0
        self._last: tuple[int, Sequence[Refreshed]] = (0, ())  # the number of the last round that ended, and its answer

    @property
    def every(self) -> timedelta:
        return self._context.policy.price_refresh

    @property
    def stale_after(self) -> timedelta:
        return self._context.policy.price_stale

    async def run(self) -> None:
        """For ever. The claim is not given back: it says for how long nobody need ask again."""
        context = self._context
        while True:
            claim = await context.store.claim("prices", context.server_id, self.every)
            if claim is not None:
                await self.refresh()
            rest_s = self.every.total_seconds() if claim is not None else LOOK_S
            context.vitals.beat("prices", rest_s)
            await context.clock.sleep(rest_s)

    async def refresh(self, timeout_s: float = TIMEOUT_S) -> Sequence[Refreshed]:
        """A round that begins after this was asked: an older one may have missed what has changed. Whoever asks during
        one round shares the next."""
        begun = self._begun
        async with self._turn:
            if self._last[0] <= begun:
                self._begun += 1
                self._last = self._begun, await self._refresh(timeout_s)
            return self._last[1]

    async def feeds(self) -> Sequence[Feed]:
        """Every source of this server as it was met last, in the order in which they are believed."""
        met = {feed.name: feed for feed in await self._context.store.price_feeds()}
        return [met.get(source.name, Feed(name=source.name)) for source in self._sources]

    async def _refresh(self, timeout_s: float) -> Sequence[Refreshed]:
        await self._forget_others()
        answers = await asyncio.gather(*(self._ask(source, timeout_s) for source in self._sources))
        facts = self._facts() if self._sources else {}  # at a start without any source the catalog is not read yet
        done: list[Refreshed] = []
        for source, answer in zip(self._sources, answers, strict=True):
            before = [one.name for one in self._sources[: len(done)]]
            done.append(await self._keep(source.name, answer, facts, before))
        self._book.expire()
        await self._refreshed()
        return done

    async def _forget_others(self) -> None:
        """A list that is no longer read must not go on setting prices."""
        names = {source.name for source in self._sources}
        for feed in await self._context.store.price_feeds():
            if feed.name not in names:
                await self._context.store.forget_price_feed(feed.name)

    async def _ask(self, source: Prices, timeout_s: float) -> "Answer":
        clock = self._context.clock
        began = clock.monotonic()
        prices: Sequence[Price] = ()
        error: str | None = None
        try:
            prices = checked(await clock.wait_for(source.prices(), timeout_s), clock.now())
        except TimeoutError:
            error = f"no answer within {timeout_s:.0f} s"
        except (ProviderError, OSError) as failure:
            error = str(failure)[:MAX_ERROR] or type(failure).__name__
        except Exception as failure:
            # One source's bug must not keep the others from being stored.
            log.exception("the price source %s is broken", source.name)
            error = f"broken: {type(failure).__name__}: {failure}"[:MAX_ERROR]
        return Answer(prices, error, clock.monotonic() - began)

    async def _keep(self, name: str, answer: "Answer", facts: Facts, before: Sequence[str]) -> Refreshed:
        store, now = self._context.store, self._context.clock.now()
        if answer.error is not None:
            log.warning("no prices from %s: %s", name, answer.error)
            await store.price_feed_failed(name, answer.error, now)
            return Refreshed(name, error=answer.error, took_s=answer.took_s)
        changed = await store.save_prices(name, answer.prices, now, facts=facts, yields_to=before)
        return Refreshed(name, len(answer.prices), changed, unknown_types(answer.prices, facts), took_s=answer.took_s)


@dataclass(frozen=True, slots=True)
class Answer:
    prices: Sequence[Price]
    error: str | None
    took_s: float


def checked(prices: Sequence[Price], now: datetime) -> Sequence[Price]:
    """Raises ProviderError for what no seller charges. A price of tomorrow is one of now: their clock may be wrong."""
    if len(prices) > MAX_PRICES:
        raise ProviderError(f"{len(prices)} prices at once; at most {MAX_PRICES} are taken")
    for price in prices:
        if price.price is not None and price.price < 0:
            raise ProviderError(
                f"a price below zero for {price.instance_type} in {price.region}: nothing of this list was taken",
                provider=price.provider,
                region=price.region,
            )
    return [price if price.as_of <= now else replace(price, as_of=now) for price in prices]


def unknown_types(prices: Sequence[Price], facts: Facts) -> tuple[str, ...]:
    known_ones = {(provider, instance_type) for provider, _, instance_type in facts}
    told = {(price.provider, price.instance_type) for price in prices}
    return tuple(f"{provider}/{name}" for provider, name in sorted(told - known_ones)[:UNKNOWN_TOLD])


def is_stale(as_of: datetime, now: datetime, limit: timedelta) -> bool:
    return now - as_of > limit


def table_facts(table: OfferTable) -> Facts:
    """What the catalog knows of the machines that prices are for; region "" is for every other region."""
    places = list(zip(table.shape.tolist(), table.place.tolist(), strict=True))
    spot = (table.market == Market.SPOT).nonzero()[0].tolist()
    spot_row = {places[row]: row for row in spot}
    facts: dict[tuple[str, str, str], PriceFacts] = {}
    for shape, name in enumerate(table.shapes.name):
        facts[table.sellers.name[table.shapes.seller[shape]], "", name] = shape_facts(table, shape)
    for shape, place in dict.fromkeys(places):
        row = spot_row.get((shape, place))
        provider, name = table.sellers.name[table.shapes.seller[shape]], table.shapes.name[shape]
        facts[provider, table.places.region[place], name] = replace(
            facts[provider, "", name],
            spot_availability=None if row is None else known(table.availability[row]),
            interruption_rate=None if row is None else known(table.hazard[row]),
        )
    return facts


def shape_facts(table: OfferTable, shape: int) -> PriceFacts:
    gpu = int(table.shapes.gpu[shape])
    return PriceFacts(
        gpu_type=None if gpu == UNKNOWN else table.gpus[gpu],
        gpus_per_instance=int(table.shapes.gpus[shape]),
        memory_per_gpu_gb=float(table.shapes.gpu_memory_gib[shape]),
        interconnect=Fabric(int(table.shapes.fabric[shape])),
    )
