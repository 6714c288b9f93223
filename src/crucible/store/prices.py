"""Prices: what is charged now, and every change of it. Saving is told everything that one source knows; who wins where
two sources tell a price of the same thing is decided by whoever saves."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Column, Select, Table, bindparam, delete, func, insert, or_, select, tuple_
from sqlalchemy.dialects.postgresql import insert as upsert

from crucible.model.catalog import Price
from crucible.model.offer import Market
from crucible.model.units import MicroUsd
from crucible.ports.prices import Feed, PriceFacts, PriceKey, PriceMark, PriceQuery, key_of
from crucible.store.mapping import Rows, clean, micros, moment
from crucible.store.price_tables import gpu_pricing, price_feeds, price_history
from crucible.store.sql import Among, Row, Sql, Transaction, as_list

# A year to compare with, and a little more.
HISTORY_KEPT = timedelta(days=400)
# Saves take turns; readers go on.
LOCK = "LOCK TABLE gpu_pricing IN SHARE ROW EXCLUSIVE MODE"

FEEDS = Rows(Feed, price_feeds)
CHUNK = 5000
NOTHING_KNOWN = PriceFacts()
KEY = ("provider", "region", "zone", "instance_type", "market")
_WORDS = {market: market.name.lower() for market in Market}
_MARKETS = {word: market for market, word in _WORDS.items()}
_P, _H = gpu_pricing.c, price_history.c


def _key(table: Table) -> list[Column[Any]]:
    return [table.c[name] for name in KEY]


# --- saving ---------------------------------------------------------------------------------------------------------

_KNOWN = Sql(
    select(_P.id, *_key(gpu_pricing), _P.price_per_hour_microusd, _P.as_of, _P.source, _P.feed).where(
        or_(_P.feed == bindparam("feed"), Among(_P.provider, "providers"))
    )
)
_WRITTEN = [column for column in gpu_pricing.columns if column.computed is None and column.name != "id"]
_NEW = upsert(gpu_pricing).values({column.name: bindparam(column.name) for column in _WRITTEN})
_SAVE = Sql(
    _NEW.on_conflict_do_update(
        index_elements=list(KEY),
        set_={column.name: _NEW.excluded[column.name] for column in _WRITTEN if column.name not in KEY},
    )
)
_REMEMBER = Sql(
    insert(price_history).values(
        {c.name: bindparam(c.name) for c in price_history.columns if c.computed is None and c.name != "id"}
    )
)
_FEED = upsert(price_feeds).values(FEEDS.parameters())
_MET = Sql(
    _FEED.on_conflict_do_update(index_elements=["name"], set_={c.name: _FEED.excluded[c.name] for c in FEEDS.columns})
)
_FAILED = Sql(
    _FEED.on_conflict_do_update(
        index_elements=["name"], set_={"error": _FEED.excluded.error, "failed_at": _FEED.excluded.failed_at}
    )
)
_WITHDRAW = Sql(delete(gpu_pricing).where(_P.id == bindparam("row")))
_FORGET = Sql(delete(price_history).where(_H.as_of < bindparam("before")))
_MARK = Sql(select(func.count(), func.coalesce(func.max(_P.last_updated), 0)).select_from(gpu_pricing))


class Known(NamedTuple):
    id: int
    price: int | None
    as_of: int
    source: str
    feed: str


def save(
    tx: Transaction,
    feed: str,
    prices: Sequence[Price],
    now: datetime,
    facts: Mapping[tuple[str, str, str], PriceFacts],
    yields_to: Collection[str],
) -> int:
    if tx.is_shared:
        tx.script([LOCK])
    told = _newest(prices)
    known = _known(tx, feed, {key.provider for key in told})
    told = {key: price for key, price in told.items() if key not in known or known[key].feed not in yields_to}
    # Always later than before: a reader tells by it whether anything has changed.
    written = max(micros(now), mark(tx).newest + 1)
    news = [(key, price) for key, price in sorted(told.items()) if _is_news(known.get(key), price, feed)]
    changes = [price for key, price in news if key not in known or known[key].price != price.price]
    gone = [{"row": old.id} for key, old in known.items() if old.feed == feed and key not in told]
    tx.run_many(_WITHDRAW, gone)
    for some in _chunks([price for _, price in news]):
        tx.run_many(_SAVE, [_packed(price, feed, written, facts) for price in some])
    for some in _chunks(changes):
        tx.run_many(_REMEMBER, [_remembered(price) for price in some])
    tx.run(_FORGET, {"before": micros(now - HISTORY_KEPT)})
    changed = len(changes) + len(gone)
    tx.run(_MET, FEEDS.pack(Feed(name=feed, refreshed_at=now, rows=len(told), changed=changed)))
    return changed


def _chunks(prices: Sequence[Price]) -> Iterator[Sequence[Price]]:
    """A database ends a transaction that lies idle while we pack."""
    return (prices[first : first + CHUNK] for first in range(0, len(prices), CHUNK))


def _newest(prices: Iterable[Price]) -> dict[PriceKey, Price]:
    found: dict[PriceKey, Price] = {}
    for price in prices:
        key = key_of(price)
        if key not in found or found[key].as_of <= price.as_of:
            found[key] = price
    return found


def _known(tx: Transaction, feed: str, providers: set[str]) -> dict[PriceKey, Known]:
    rows = tx.rows(_KNOWN, feed=feed, providers=as_list(sorted(providers)))
    return {_key_in(row[1:6]): Known(row[0], *row[6:]) for row in rows}


def _is_news(old: Known | None, price: Price, feed: str) -> bool:
    if old is None or old.feed != feed:
        return True
    at = micros(price.as_of)
    return at >= old.as_of and (at, price.price, price.source) != (old.as_of, old.price, old.source)


def _packed(price: Price, feed: str, written: int, facts: Mapping[tuple[str, str, str], PriceFacts]) -> dict[str, Any]:
    region_facts = facts.get((price.provider, price.region, price.instance_type))
    known = region_facts or facts.get((price.provider, "", price.instance_type), NOTHING_KNOWN)
    is_spot = price.market is Market.SPOT
    return _remembered(price) | {
        "gpu_type": known.gpu_type,
        "gpus_per_instance": known.gpus_per_instance,
        "memory_per_gpu_gb": known.memory_per_gpu_gb,
        "interconnect": None if known.interconnect is None else known.interconnect.name.lower(),
        "spot_availability": known.spot_availability if is_spot else None,
        "interruption_rate": known.interruption_rate if is_spot else None,
        "feed": feed,
        "last_updated": written,
    }


def _remembered(price: Price) -> dict[str, Any]:
    return {
        "provider": clean(price.provider),
        "region": clean(price.region),
        "zone": clean(price.zone),
        "instance_type": clean(price.instance_type),
        "market": _WORDS[price.market],
        "price_per_hour_microusd": price.price,
        "as_of": micros(price.as_of),
        "source": clean(price.source),
    }


# --- reading --------------------------------------------------------------------------------------------------------


def mark(tx: Transaction) -> PriceMark:
    row = tx.row(_MARK)
    assert row is not None
    return PriceMark(int(row[0]), int(row[1]))


def page(tx: Transaction, after: PriceKey | None, limit: int) -> Sequence[Price]:
    values = {} if after is None else {**after._asdict(), "market": _WORDS[after.market]}
    return [_price(row) for row in tx.rows(_page(bool(values)), limit=limit, **values)]


@cache
def _page(is_next: bool) -> Sql:
    query = _selected(gpu_pricing)
    if is_next:
        query = query.where(tuple_(*_key(gpu_pricing)) > tuple_(*(bindparam(name) for name in KEY)))
    return Sql(query.order_by(*_key(gpu_pricing)).limit(bindparam("limit")))


def history(tx: Transaction, query: PriceQuery) -> Sequence[Price]:
    """The newest of them, oldest first."""
    given = {name: value for name in KEY[:4] if (value := getattr(query, name))}
    if query.market is not None:
        given["market"] = _WORDS[query.market]
    since = {} if query.since is None else {"since": micros(query.since)}
    rows = tx.rows(_history(frozenset(given), bool(since)), limit=query.limit, **given, **since)
    return [_price(row) for row in reversed(rows)]


@cache
def _history(given: frozenset[str], is_bounded: bool) -> Sql:
    query = _selected(price_history).where(*(_H[name] == bindparam(name) for name in sorted(given)))
    if is_bounded:
        query = query.where(_H.as_of >= bindparam("since"))
    return Sql(query.order_by(_H.as_of.desc(), _H.id.desc()).limit(bindparam("limit")))


def _selected(table: Table) -> Select[Any]:
    return select(*_key(table), table.c.price_per_hour_microusd, table.c.as_of, table.c.source)


def _price(row: Row) -> Price:
    provider, region, zone, instance_type, market, price, as_of, source = row
    return Price(
        provider=provider,
        region=region,
        zone=zone,
        instance_type=instance_type,
        market=_MARKETS[market],
        price=None if price is None else MicroUsd(price),
        as_of=moment(as_of),
        source=source,
    )


def _key_in(row: Row) -> PriceKey:
    provider, region, zone, instance_type, market = row
    return PriceKey(provider, region, zone, instance_type, _MARKETS[market])


# --- feeds ----------------------------------------------------------------------------------------------------------

_FEEDS = Sql(select(*FEEDS.columns).order_by(price_feeds.c.name))
_FORGET_PRICES = Sql(delete(gpu_pricing).where(_P.feed == bindparam("feed")))
_FORGET_FEED = Sql(delete(price_feeds).where(price_feeds.c.name == bindparam("feed")))


def failed(tx: Transaction, feed: str, error: str, now: datetime) -> None:
    """What it told before stays."""
    tx.run(_FAILED, FEEDS.pack(Feed(name=feed, error=error, failed_at=now)))


def feeds(tx: Transaction) -> Sequence[Feed]:
    return FEEDS.unpack_all(tx.rows(_FEEDS))


def forget(tx: Transaction, feed: str) -> None:
    if tx.is_shared:
        tx.script([LOCK])
    for sql in (_FORGET_PRICES, _FORGET_FEED):
        tx.run(sql, {"feed": feed})
