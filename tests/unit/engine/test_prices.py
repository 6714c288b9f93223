"""Sources that fail, hang or lie, on a virtual clock: the others are stored all the same."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest

from crucible.core.offers import make_table
from crucible.engine.context import Context
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.prices import PriceBook, PriceRefresher, is_stale, table_facts
from crucible.engine.wakes import Wakes
from crucible.model.catalog import Hazard, InstanceType, Price
from crucible.model.errors import CredentialsRejected
from crucible.model.offer import Fabric, Market
from crucible.model.policy import Policy
from crucible.model.storage import parse
from crucible.ports.prices import Feed, PriceFacts, Prices
from crucible.ports.store import Store
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.testing.fake_objects import FakeStorage
from crucible.testing.store_price_contract import a_price
from crucible.testing.virtual import EPOCH, SeededIds, SeededRandom, run_virtually, virtual_clock

T = TypeVar("T")
QUARTER_S = 900.0


class Told:
    """A source that a test puts its words into."""

    def __init__(self, name: str, *prices: Price, error: Exception | None = None, takes_s: float = 0) -> None:
        self.name = name
        self.told: Sequence[Price] = prices
        self.error = error
        self.takes_s = takes_s
        self.asked = 0

    async def prices(self) -> Sequence[Price]:
        self.asked += 1
        await asyncio.sleep(self.takes_s)
        if self.error is not None:
            raise self.error
        return self.told


class World:
    def __init__(self, store: Store, sources: Sequence[Prices], folder: Path, name: str = "server") -> None:
        loop = asyncio.get_running_loop()
        self.store = store
        self.clock = virtual_clock(loop)
        self.context = Context(
            store=store,
            streams=FileStreams(folder, add_segment=store.add_segment, segments=store.segments, inline=True),
            sellers={},
            clock=self.clock,
            ids=SeededIds(),
            random=SeededRandom(0),
            keys=Keys(b"key"),
            hub=Hub(self.clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id=name,
            url="http://here",
            checkpoint_root="file:///nowhere",
            storage=FakeStorage(now=self.clock.now),
            storage_root=parse("s3://kept/checkpoints"),
            failpoint=lambda name: None,
        )
        self.book = PriceBook(store, self.clock)
        self.refresher = PriceRefresher(self.context, sources, self.book)


@pytest.fixture
def playing(tmp_path: Path) -> Callable[..., None]:
    """Plays a scene in a world with these sources."""

    def play(scene: Callable[[World], Awaitable[None]], *sources: Prices) -> None:
        async def whole() -> None:
            store = await open_store("sqlite://", clock_monotonic=asyncio.get_running_loop().time)
            await scene(World(store, sources, tmp_path))
            await store.close()

        run_virtually(whole())

    return play


async def running_for(seconds: float, *loops: Callable[[], Awaitable[None]]) -> None:
    tasks = [asyncio.ensure_future(loop()) for loop in loops]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_one_failing_source_never_blocks_the_others(playing: Callable[..., None]) -> None:
    sources = [
        Told("hangs", takes_s=1e6),
        Told("rejected", error=CredentialsRejected("the key was refused: renew it")),
        Told("broken", error=ZeroDivisionError("oops")),
        Told("unreachable", error=ConnectionRefusedError(111, "Connection refused")),
        Told("lies", a_price(-1)),
        Told("good", a_price(3)),
    ]

    async def scene(world: World) -> None:
        done = {one.source: one for one in await world.refresher.refresh()}
        assert [done["good"].error, done["good"].rows, done["good"].changed] == [None, 1, 1]
        assert {name: one.error for name, one in done.items() if one.error} == {
            "hangs": "no answer within 60 s",
            "rejected": "the key was refused: renew it",
            "broken": "broken: ZeroDivisionError: oops",
            "unreachable": "[Errno 111] Connection refused",
            "lies": "a price below zero for p5.48xlarge in us-east-1: nothing of this list was taken",
        }
        assert [price.price for price in (await world.book.overlay())[1]] == [3_000_000]
        feeds = {feed.name: feed for feed in await world.refresher.feeds()}
        assert list(feeds) == [source.name for source in sources]
        assert feeds["good"] == Feed(name="good", refreshed_at=EPOCH + timedelta(seconds=60), rows=1, changed=1)
        assert feeds["hangs"].refreshed_at is None and feeds["hangs"].failed_at is not None

    playing(scene, *sources)


def test_prices_are_refreshed_every_quarter_of_an_hour(playing: Callable[..., None]) -> None:
    source = Told("test", a_price(3))

    async def scene(world: World) -> None:
        await running_for(10 * QUARTER_S + 1, world.refresher.run)

    playing(scene, source)
    assert source.asked == 11


def test_servers_that_share_a_database_share_the_asking(tmp_path: Path) -> None:
    source = Told("test", a_price(3))

    async def scene() -> None:
        store = await open_store("sqlite://", clock_monotonic=asyncio.get_running_loop().time)
        worlds = [World(store, [source], tmp_path, name) for name in ("one", "two", "three")]
        await running_for(4 * QUARTER_S + 1, *(world.refresher.run for world in worlds))

    run_virtually(scene())
    assert 4 <= source.asked <= 5


def test_what_a_source_told_stays_when_it_fails(playing: Callable[..., None]) -> None:
    source = Told("test", a_price(3))

    async def scene(world: World) -> None:
        await world.refresher.refresh()
        source.error = ConnectionResetError("gone")
        await world.refresher.refresh()
        assert len((await world.book.overlay())[1]) == 1
        (feed,) = await world.refresher.feeds()
        assert (feed.rows, feed.error) == (1, "gone")

    playing(scene, source)


def test_the_first_source_is_believed(playing: Callable[..., None]) -> None:
    contract, market = Told("contract", a_price(3)), Told("market", a_price(9), a_price(5, zone="b"))

    async def scene(world: World) -> None:
        for told in ({3_000_000, 5_000_000}, {3_000_000, 5_000_000}):
            await world.refresher.refresh()
            assert {price.price for price in (await world.book.overlay())[1]} == told
        contract.error = OSError("unplugged")  # it still holds
        await world.refresher.refresh()
        assert {price.price for price in (await world.book.overlay())[1]} == {3_000_000, 5_000_000}
        contract.error, contract.told = None, ()  # it ended
        await world.refresher.refresh()
        assert {price.price for price in (await world.book.overlay())[1]} == {9_000_000, 5_000_000}

    playing(scene, contract, market)


def test_a_source_that_is_no_longer_configured_sets_no_prices(playing: Callable[..., None]) -> None:
    async def scene(world: World) -> None:
        await world.store.save_prices("old list", [a_price(1)], world.clock.now())
        assert len((await world.book.overlay())[1]) == 1
        await world.refresher.refresh()
        assert (await world.book.overlay())[1] == ()
        assert await world.store.price_feeds() == ()

    playing(scene)


def test_a_price_of_tomorrow_is_one_of_now(playing: Callable[..., None]) -> None:
    async def scene(world: World) -> None:
        await world.refresher.refresh()
        assert [price.as_of for price in (await world.book.overlay())[1]] == [EPOCH]

    playing(scene, Told("test", a_price(3, as_of=EPOCH + timedelta(days=1))))


def test_whoever_asks_during_a_round_shares_the_next(playing: Callable[..., None]) -> None:
    source = Told("test", a_price(3), takes_s=10)

    async def scene(world: World) -> None:
        first = asyncio.ensure_future(world.refresher.refresh())
        await asyncio.sleep(5)
        source.told = [a_price(3), a_price(4, zone="b")]  # too late for the round that is under way?
        others = await asyncio.gather(*(world.refresher.refresh() for _ in range(5)))
        assert await first is not others[0]
        assert all(other is others[0] for other in others)
        assert [one.rows for one in others[0]] == [2]

    playing(scene, source)
    assert source.asked == 2


def test_a_round_that_was_cut_off_answers_nobody(playing: Callable[..., None]) -> None:
    source = Told("test", a_price(3), takes_s=10)

    async def scene(world: World) -> None:
        first = asyncio.ensure_future(world.refresher.refresh())
        await asyncio.sleep(5)
        second = asyncio.ensure_future(world.refresher.refresh())
        await asyncio.sleep(1)
        first.cancel()
        assert [one.rows for one in await second] == [1]

    playing(scene, source)
    assert source.asked == 2


def test_the_overlay_is_the_same_until_something_changes(playing: Callable[..., None]) -> None:
    async def scene(world: World) -> None:
        assert await world.book.overlay() == (0, ())
        await world.refresher.refresh()
        version, prices = await world.book.overlay()
        assert version == 1
        for _ in range(3):
            await asyncio.sleep(5)
            await world.refresher.refresh()
            again = await world.book.overlay()
            assert again[0] == version and again[1] is prices
        # Another server stores something: known within a moment.
        await world.store.save_prices("test", [a_price(8)], world.clock.now())
        await asyncio.sleep(1.1)
        assert [(await world.book.overlay())[0], *(p.price for p in (await world.book.overlay())[1])] == [2, 8_000_000]

    playing(scene, Told("test", a_price(3, as_of=EPOCH)))


def test_a_large_overlay_is_read_whole(playing: Callable[..., None]) -> None:
    prices = [a_price(3, zone=f"z{number}") for number in range(4500)]

    async def scene(world: World) -> None:
        await world.refresher.refresh()
        overlays = await asyncio.gather(world.book.overlay(), world.book.overlay())
        assert [version for version, _ in overlays] == [1, 1]
        assert len(overlays[0][1]) == 4500 and overlays[0][1] is overlays[1][1]

    playing(scene, Told("test", *prices))


def test_a_price_is_stale_after_an_hour() -> None:
    limit = Policy().price_stale
    assert not is_stale(EPOCH, EPOCH + timedelta(hours=1), limit)
    assert is_stale(EPOCH, EPOCH + timedelta(hours=1, seconds=1), limit)


def test_what_the_catalog_knows_is_written_beside_the_price() -> None:
    shape = InstanceType(
        provider="aws", name="p5", gpu="H100", gpus=8, gpu_memory_gib=80, cpus=192, memory_gib=2048, fabric=Fabric.HIGH
    )
    bare = InstanceType(provider="aws", name="m5", gpu=None, gpus=0, gpu_memory_gib=0, cpus=4, memory_gib=16)
    prices = [
        a_price(3, instance_type="p5"),
        a_price(9, instance_type="p5", market=Market.ON_DEMAND),
        a_price(1, instance_type="m5", market=Market.ON_DEMAND),
    ]
    hazard = Hazard(
        provider="aws",
        region="",
        instance_type="",
        per_hour=0.02,
        low=0,
        high=1,
        availability=0.9,
        method="",
        as_of=EPOCH,
    )
    facts = table_facts(make_table([shape, bare], prices, hazards=[hazard]))
    assert facts["aws", "us-east-1", "p5"] == PriceFacts(
        gpu_type="H100",
        gpus_per_instance=8,
        memory_per_gpu_gb=80,
        interconnect=Fabric.HIGH,
        spot_availability=0.9,
        interruption_rate=0.02,
    )
    assert facts["aws", "us-east-1", "m5"].gpu_type is None
    assert facts["aws", "us-east-1", "m5"].interruption_rate is None
