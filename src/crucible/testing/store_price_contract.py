"""Prices and their history. A part of StoreContract."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from crucible.model.catalog import Price
from crucible.model.offer import Fabric, Market
from crucible.model.units import MicroUsd
from crucible.ports.prices import Feed, PriceFacts, PriceQuery, key_of
from crucible.ports.store import Store
from crucible.testing.specimens import LATER, NOW

SOON = NOW + timedelta(minutes=15)


def a_price(dollars: float | None = 3.0, **fields: Any) -> Price:
    price = Price(
        provider="aws",
        region="us-east-1",
        zone="us-east-1a",
        instance_type="p5.48xlarge",
        market=Market.SPOT,
        price=None if dollars is None else MicroUsd(round(dollars * 1_000_000)),
        as_of=NOW,
        source="spot price history",
    )
    return replace(price, **fields)


class PriceContract:
    async def test_prices_are_read_back(self, store: Store) -> None:
        prices = [
            a_price(),
            a_price(None, market=Market.ON_DEMAND),
            a_price(0, provider="onprem", region="berlin", zone="", market=Market.RESERVED),
        ]
        facts = {("aws", "us-east-1", "p5.48xlarge"): PriceFacts(gpu_type="H100", interconnect=Fabric.HIGH)}
        assert await store.save_prices("test", prices, NOW, facts=facts) == 3
        assert sorted(await store.prices(), key=key_of) == sorted(prices, key=key_of)

    async def test_pages_leave_nothing_out(self, store: Store) -> None:
        prices = [a_price(zone=f"zone-{number}") for number in range(25)]
        await store.save_prices("test", prices, NOW)
        found: list[Price] = []
        while page := await store.prices(key_of(found[-1]) if found else None, 10):
            found += page
        assert len(found) == 25
        assert set(found) == set(prices)

    async def test_only_a_change_joins_the_history(self, store: Store) -> None:
        first, same = a_price(3), a_price(3, as_of=SOON)
        changed = a_price(4, as_of=LATER)
        assert [await store.save_prices("test", [price], NOW) for price in (first, same, changed)] == [1, 0, 1]
        assert list(await store.prices()) == [changed]
        assert list(await store.price_history(PriceQuery())) == [first, changed]

    async def test_a_price_that_was_confirmed_is_as_young_as_that(self, store: Store) -> None:
        for at in (NOW, SOON):
            await store.save_prices("test", [a_price(3, as_of=at)], at)
        assert [price.as_of for price in await store.prices()] == [SOON]

    async def test_an_older_price_is_not_taken(self, store: Store) -> None:
        await store.save_prices("test", [a_price(4, as_of=LATER)], LATER)
        assert await store.save_prices("test", [a_price(3)], LATER) == 0
        assert [price.price for price in await store.prices()] == [4_000_000]

    async def test_of_one_thing_told_twice_the_newest_counts(self, store: Store) -> None:
        assert await store.save_prices("test", [a_price(4, as_of=LATER), a_price(3)], LATER) == 1
        assert [price.price for price in await store.prices()] == [4_000_000]

    async def test_what_a_feed_no_longer_tells_is_withdrawn(self, store: Store) -> None:
        kept, dropped = a_price(), a_price(zone="us-east-1b")
        await store.save_prices("other", [a_price(provider="gcp")], NOW)
        await store.save_prices("test", [kept, dropped], NOW)
        assert await store.save_prices("test", [kept], SOON) == 1
        assert {(price.provider, price.zone) for price in await store.prices()} == {
            ("aws", "us-east-1a"),
            ("gcp", "us-east-1a"),
        }
        assert len(await store.price_history(PriceQuery(zone="us-east-1b"))) == 1

    async def test_a_feed_takes_over_what_another_told_whatever_its_date(self, store: Store) -> None:
        await store.save_prices("market", [a_price(4, as_of=LATER)], LATER)
        assert await store.save_prices("contract", [a_price(3)], LATER) == 1
        assert [price.price for price in await store.prices()] == [3_000_000]
        assert await store.save_prices("market", [], LATER) == 0
        assert len(await store.prices()) == 1

    async def test_a_feed_yields_to_those_that_come_before_it(self, store: Store) -> None:
        await store.save_prices("contract", [a_price(3)], NOW)
        told = [a_price(4, as_of=LATER), a_price(5, zone="b")]
        for changed in (1, 0):
            assert await store.save_prices("market", told, LATER, yields_to=["contract"]) == changed
        assert {price.price for price in await store.prices()} == {3_000_000, 5_000_000}
        await store.save_prices("contract", [], LATER)
        assert await store.save_prices("market", told, LATER, yields_to=["contract"]) == 1
        assert {price.price for price in await store.prices()} == {4_000_000, 5_000_000}

    async def test_a_feed_that_fails_keeps_its_prices_and_says_why(self, store: Store) -> None:
        await store.save_prices("b", [a_price(), a_price(zone="b")], NOW)
        await store.price_feed_failed("b", "no route to host", SOON)
        await store.price_feed_failed("a", "key rejected", SOON)
        assert list(await store.price_feeds()) == [
            Feed(name="a", error="key rejected", failed_at=SOON),
            Feed(name="b", refreshed_at=NOW, rows=2, changed=2, error="no route to host", failed_at=SOON),
        ]
        assert len(await store.prices()) == 2
        await store.save_prices("b", [a_price()], LATER)
        assert (await store.price_feeds())[1] == Feed(name="b", refreshed_at=LATER, rows=1, changed=1)

    async def test_a_feed_is_forgotten_with_what_it_told(self, store: Store) -> None:
        await store.save_prices("a", [a_price()], NOW)
        await store.save_prices("b", [a_price(zone="b")], NOW)
        await store.forget_price_feed("a")
        assert [price.zone for price in await store.prices()] == ["b"]
        assert [feed.name for feed in await store.price_feeds()] == ["b"]
        assert len(await store.price_history(PriceQuery())) == 2

    async def test_the_mark_moves_with_every_change_and_only_then(self, store: Store) -> None:
        marks = [await store.price_mark()]
        for prices, now in (
            ([a_price(3)], NOW),
            ([a_price(3, as_of=SOON)], NOW),
            ([a_price(3, as_of=SOON), a_price(zone="b")], NOW - timedelta(days=1)),  # the clock may have been wrong
            ([a_price(zone="b")], SOON),
            ([a_price(zone="c")], SOON),
            ([], SOON),
        ):
            await store.save_prices("test", prices, now)
            marks.append(await store.price_mark())
            await store.save_prices("test", prices, now)
            assert await store.price_mark() == marks[-1]
        assert all(one != other for one, other in pairwise(marks))
        assert len(set(marks[:-1])) == len(marks) - 1

    async def test_history_is_asked_by_what_and_since_when(self, store: Store) -> None:
        for hours in range(6):
            at = NOW + timedelta(hours=hours)
            prices = [
                a_price(1 + hours, as_of=at, instance_type=name, market=market)
                for name in ("a", "b")
                for market in (Market.SPOT, Market.ON_DEMAND)
            ]
            await store.save_prices("test", prices, at)
        spot = PriceQuery(provider="aws", instance_type="b", region="us-east-1", market=Market.SPOT)
        assert [price.price for price in await store.price_history(spot)] == [n * 1_000_000 for n in range(1, 7)]
        newest = replace(spot, limit=2)
        assert [price.price for price in await store.price_history(newest)] == [5_000_000, 6_000_000]
        late = replace(spot, since=NOW + timedelta(hours=5))
        assert [price.as_of for price in await store.price_history(late)] == [NOW + timedelta(hours=5)]
        assert not await store.price_history(PriceQuery(provider="gcp"))

    async def test_a_history_is_kept_for_a_year_not_for_ever(self, store: Store) -> None:
        await store.save_prices("test", [a_price(3)], NOW)
        much_later = NOW + timedelta(days=500)
        await store.save_prices("test", [a_price(4, as_of=much_later)], much_later)
        assert [price.price for price in await store.price_history(PriceQuery())] == [4_000_000]

    async def test_feeds_that_save_at_the_same_time_lose_nothing(self, store: Store) -> None:
        async def tell(feed: str) -> None:
            for turn in range(4):
                zones = [f"{feed}-{number}" for number in range(20)]
                at = NOW + timedelta(minutes=turn)
                await store.save_prices(feed, [a_price(1 + turn, zone=zone, as_of=at) for zone in zones], at)

        await asyncio.gather(*(tell(feed) for feed in ("a", "b", "c")))
        assert len(await store.prices()) == 60
        assert len(await store.price_history(PriceQuery())) == 240

    async def test_twenty_thousand_prices_are_saved_at_once(self, store: Store) -> None:
        prices = [a_price(1 + number % 7, zone=f"zone-{number}") for number in range(20_000)]
        async with asyncio.timeout(30):  # a second or two on an idle machine
            assert await store.save_prices("test", prices, NOW) == 20_000
            assert await store.save_prices("test", [replace(price, as_of=SOON) for price in prices], SOON) == 0
        assert (await store.price_mark()).rows == 20_000
