"""What is on sale and for how much: prices with their age, their history and their sources; offers; providers side by
side."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from crucible.api.deps import Deps
from crucible.api.door import principal
from crucible.api.price_views import PriceViews
from crucible.api.reply import json_reply
from crucible.api.routing import add, described_query, queried
from crucible.core import browse
from crucible.core.browse import Grouping, OfferQuery, Sort
from crucible.core.capacity import pools
from crucible.core.offers import UNKNOWN, Ints, OfferTable
from crucible.engine.prices import ASKED_TIMEOUT_S
from crucible.model.errors import InvalidRequest
from crucible.model.offer import Market
from crucible.model.units import micro_usd
from crucible.ports.prices import PriceQuery
from crucible.wire import prices as wire


class PriceRoutes:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def add_to(self, router: APIRouter) -> None:
        routes = (
            ("/v1/prices", self.prices, wire.PricePage, wire.PriceListQuery),
            ("/v1/prices/history", self.history, wire.PriceHistory, wire.PriceHistoryQuery),
            ("/v1/offers", self.offers, wire.Offers, wire.OfferListQuery),
            ("/v1/compare", self.compare, wire.Comparison, wire.CompareQuery),
        )
        for path, handler, answer, query in routes:
            add(router, "GET", path, handler, answer, openapi_extra=described_query(query))
        add(router, "GET", "/v1/capacity", self.capacity, wire.Capacity)
        add(router, "GET", "/v1/prices/sources", self.sources, wire.PriceSources)
        add(router, "POST", "/v1/prices/refresh", self.refresh, wire.PricesRefreshed)

    async def prices(self, request: Request) -> Response:
        """The catalog's and what was told since; each with its age."""
        asked = queried(wire.PriceListQuery, request)
        table, views = await self._deps.table(), self._views()
        gpu, gpus = wish(asked.gpu)
        query = OfferQuery(
            gpu=gpu,
            gpus=gpus,
            provider=asked.provider,
            region=asked.region,
            instance_type=asked.instance_type,
            market=market_of(asked.market),
        )
        # What a seller lists of its own stock is an offer, not a price list.
        rows = browse.matching(table, query)
        rows = rows[rows < len(table) - len(table.live)]
        rest = browse.after(table, rows, asked.cursor) if asked.cursor else rows
        page = rest[: asked.limit]
        more = table.id_of(int(page[-1])) if len(rest) > asked.limit else None
        items = [views.price(one) for one in browse.listings(table, page)]
        return json_reply({"items": items, "next_cursor": more, "summary": self._summary(table, rows)})

    async def history(self, request: Request) -> Response:
        """Changes that were recorded, oldest first."""
        asked = queried(wire.PriceHistoryQuery, request)
        if asked.since is not None and asked.since.tzinfo is None:
            raise InvalidRequest(
                "since must be a moment with its time zone, such as 2026-11-01T00:00:00Z", field="since"
            )
        query = PriceQuery(
            provider=asked.provider,
            region=asked.region,
            zone=asked.zone,
            instance_type=asked.instance_type,
            market=market_of(asked.market),
            since=asked.since,
            limit=asked.limit,
        )
        found = await self._deps.store.price_history(query)
        return json_reply({"items": [self._views().change(price) for price in found]})

    async def sources(self, request: Request) -> Response:
        """Who tells prices, in the order in which they are believed, and how the last meeting went."""
        refresher = self._deps.prices
        items = [self._views().source(feed) for feed in await refresher.feeds()]
        every, limit = refresher.every.total_seconds(), refresher.stale_after.total_seconds()
        return json_reply({"items": items, "refresh_every_s": every, "stale_after_s": limit})

    async def refresh(self, request: Request) -> Response:
        """Ask every source now. One that fails is named; the others are stored all the same."""
        await self._deps.audits.note(principal(request), "prices.refresh", "prices")
        done = await self._deps.prices.refresh(ASKED_TIMEOUT_S)
        return json_reply({"items": [self._views().refreshed(one) for one in done]})

    async def offers(self, request: Request) -> Response:
        """What could be bought now, the cheapest GPU first; with `group_by` the best of each group."""
        asked = queried(wire.OfferListQuery, request)
        table, views = await self._deps.table(), self._views()
        rows = browse.ranked(table, browse.matching(table, offer_query(asked)), Sort(asked.sort))
        answer: dict[str, Any] = {"items": [], "groups": [], "matched": len(rows), "total": len(table)}
        if asked.group_by:
            groups = browse.grouped(table, rows, Grouping(asked.group_by), asked.limit)
            answer["groups"] = [views.group(group) for group in groups]
        else:
            answer["items"] = [views.offer(one) for one in browse.listings(table, rows[: asked.limit])]
        return json_reply(answer)

    async def capacity(self, request: Request) -> Response:
        """GPUs of this computer, own hosts and Slurm clusters: how many there are, and how many are free."""
        table = await self._deps.table()
        return json_reply({"items": [asdict(pool) for pool in pools(table.live.values())]})

    async def compare(self, request: Request) -> Response:
        """Every provider that has the GPU: cheapest on demand, cheapest spot, and how each bills."""
        asked = queried(wire.CompareQuery, request)
        table, views = await self._deps.table(), self._views()
        sides = browse.side_by_side(table, asked.gpu, asked.gpus, asked.hours, self._deps.enabled)
        items = [views.side(side) for side in sides]
        return json_reply({"gpu": asked.gpu, "gpus": asked.gpus, "hours": asked.hours, "items": items})

    def _views(self) -> PriceViews:
        return PriceViews(self._deps.clock.now(), self._deps.prices.stale_after, self._deps.enabled_places)

    def _summary(self, table: OfferTable, rows: Ints) -> dict[str, Any]:
        as_of = table.as_of[rows]
        oldest_fresh = (self._deps.clock.now() - self._deps.prices.stale_after).timestamp()
        return {
            "count": len(rows),
            "priced": int(np.count_nonzero(table.price[rows] != UNKNOWN)),
            "stale": int(np.count_nonzero(as_of < oldest_fresh)),
            "newest": datetime.fromtimestamp(int(as_of.max()), UTC) if len(rows) else None,
            "oldest": datetime.fromtimestamp(int(as_of.min()), UTC) if len(rows) else None,
        }


def offer_query(asked: wire.OfferListQuery) -> OfferQuery:
    gpu, gpus = wish(asked.gpu)
    markets = {None: None, True: Market.SPOT, False: Market.ON_DEMAND}
    return OfferQuery(
        gpu=gpu,
        gpus=gpus,
        provider=asked.provider,
        region=asked.region,
        instance_type=asked.instance_type,
        market=markets[asked.spot],
        max_price=None if asked.max_price is None else micro_usd(asked.max_price),
        gpu_memory_gib=asked.gpu_memory,
    )


def wish(text: str) -> tuple[str, int | None]:
    """H100:8 is the GPU and how many of them."""
    name, _, count = text.partition(":")
    return name, int(count) if count else None


def market_of(word: str) -> Market | None:
    return Market[word.upper()] if word else None
