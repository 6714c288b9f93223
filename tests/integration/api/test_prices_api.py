"""Prices, offers and comparisons over HTTP: every price with its age, and one bad source among good ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from crucible.api.app import ApiSettings
from crucible.core.offers import make_table
from crucible.core.perf import make_book
from crucible.engine.planner import Knowledge
from crucible.model.catalog import Billing, Hazard, InstanceType, Price
from crucible.model.offer import Fabric, Market
from crucible.model.units import micro_usd

from .conftest import Server

OLD = datetime(2026, 1, 1, tzinfo=UTC)


def a_type(provider: str, name: str, gpu: str, gpus: int) -> InstanceType:
    return InstanceType(
        provider=provider,
        name=name,
        gpu=gpu,
        gpus=gpus,
        gpu_memory_gib=80,
        cpus=96,
        memory_gib=1024,
        fabric=Fabric.HIGH,
    )


def a_price(provider: str, name: str, dollars: float | None, **fields: Any) -> Price:
    price = Price(
        provider=provider,
        region="us-east-1",
        zone="",
        instance_type=name,
        market=Market.ON_DEMAND,
        price=None if dollars is None else micro_usd(dollars),
        as_of=OLD,
        source="catalog",
    )
    return replace(price, **fields)


CATALOG = [
    a_price("aws", "p5", 55),
    a_price("aws", "p5", 20, market=Market.SPOT, zone="us-east-1a"),
    a_price("aws", "p5", 21, market=Market.SPOT, zone="us-east-1b"),
    a_price("aws", "p5", 60, region="eu-west-1"),
    a_price("lambda", "h100x8", 24),
    a_price("lambda", "h100x1", 3.5),
    a_price("azure", "nd96", None),
]
TABLE = make_table(
    [
        a_type("aws", "p5", "H100-SXM", 8),
        a_type("azure", "nd96", "H100-SXM", 8),
        a_type("lambda", "h100x1", "H100-PCIe", 1),
        a_type("lambda", "h100x8", "H100-SXM", 8),
    ],
    CATALOG,
    billing=[
        Billing(provider="lambda", unit_s=60, minimum_s=0, start_s=120, egress_usd_per_gb=0, max_nodes=1, source="docs")
    ],
    hazards=[
        Hazard(
            provider="aws",
            region="",
            instance_type="",
            per_hour=0.05,
            low=0,
            high=1,
            availability=0.8,
            method="test",
            as_of=OLD.date(),
        )
    ],
)


class Contract:
    """A source whose prices a test sets."""

    name = "contract"

    def __init__(self) -> None:
        self.told: Sequence[Price] = ()

    async def prices(self) -> Sequence[Price]:
        return [replace(price, as_of=datetime.now(UTC), source="contract 17") for price in self.told]


class Unplugged:
    name = "unplugged"

    async def prices(self) -> Sequence[Price]:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.fixture(scope="module")
def contract() -> Contract:
    return Contract()


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory, contract: Contract) -> Iterator[Server]:
    running = Server(
        folder=tmp_path_factory.mktemp("market"),
        settings=ApiSettings(version="9.9.9", providers=("fake",)),
        knowledge=Knowledge(TABLE, make_book((), ())),
        price_sources=[contract, Unplugged()],
    )
    running.start()
    yield running
    running.stop()


def get(server: Server, path: str, token: str = "alice", **query: Any) -> Any:
    reply = server.call("GET", f"{path}?{urlencode(query)}", token)
    assert reply.status == 200, reply.text
    return reply.json


def test_prices_tell_their_age_and_that_they_are_old(market: Server) -> None:
    page = get(market, "/v1/prices", provider="aws", market="spot")
    assert [(item["zone"], item["price_per_hour_usd"]) for item in page["items"]] == [
        ("us-east-1a", 20.0),
        ("us-east-1b", 21.0),
    ]
    item = page["items"][0]
    assert item["is_stale"] is True and item["source"] == "catalog"
    assert item["as_of"] == "2026-01-01T00:00:00Z"
    assert item["age_s"] == pytest.approx((datetime.now(UTC) - OLD).total_seconds(), abs=60)
    summary = page["summary"]
    assert (summary["count"], summary["priced"], summary["stale"]) == (2, 2, 2)


def test_prices_come_page_by_page(market: Server) -> None:
    found: list[str] = []
    cursor = ""
    while cursor is not None:
        page = get(market, "/v1/prices", limit=2, cursor=cursor)
        found += [
            f"{i['provider']}/{i['region']}/{i['zone']}/{i['instance_type']}/{i['market']}" for i in page["items"]
        ]
        cursor = page["next_cursor"]
    assert len(found) == len(set(found)) == len(CATALOG)
    assert page["summary"]["count"] == len(CATALOG)


def test_an_unknown_price_is_null_never_zero(market: Server) -> None:
    (item,) = get(market, "/v1/prices", provider="azure")["items"]
    assert item["price_per_hour_usd"] is None


def test_a_refresh_changes_what_is_on_sale_and_names_what_failed(market: Server, contract: Contract) -> None:
    contract.told = [a_price("aws", "p5", 44), a_price("aws", "unheard-of", 1)]
    done = market.call("POST", "/v1/prices/refresh", "admin").json["items"]
    assert [(one["source"], one["rows"], one["changed"], one["error"]) for one in done] == [
        ("contract", 2, 2, None),
        ("unplugged", 0, 0, "[Errno 111] Connection refused"),
    ]
    assert done[0]["unknown_types"] == ["aws/unheard-of"]
    (item,) = get(market, "/v1/prices", provider="aws", region="us-east-1", market="on_demand")["items"]
    assert (item["price_per_hour_usd"], item["is_stale"], item["source"]) == (44.0, False, "contract 17")
    assert item["age_s"] < 60
    contract.told = []
    assert market.call("POST", "/v1/prices/refresh", "admin").json["items"][0]["changed"] == 2
    (item,) = get(market, "/v1/prices", provider="aws", region="us-east-1", market="on_demand")["items"]
    assert (item["price_per_hour_usd"], item["source"]) == (55.0, "catalog")


def test_sources_say_how_the_last_meeting_went(market: Server) -> None:
    market.call("POST", "/v1/prices/refresh", "admin")
    said = get(market, "/v1/prices/sources")
    assert (said["refresh_every_s"], said["stale_after_s"]) == (900, 3600)
    contract, unplugged = said["items"]
    assert (contract["name"], contract["error"], contract["is_stale"]) == ("contract", None, False)
    assert (unplugged["refreshed_at"], unplugged["is_stale"]) == (None, True)
    assert "Connection refused" in unplugged["error"]


def test_history_holds_changes_only(market: Server, contract: Contract) -> None:
    for dollars in (3, 3, 4, 4, 2):
        contract.told = [a_price("lambda", "h100x1", dollars, region="us-west-1")]
        market.call("POST", "/v1/prices/refresh", "admin")
    query = {"provider": "lambda", "instance_type": "h100x1", "region": "us-west-1"}
    items = get(market, "/v1/prices/history", **query)["items"]
    assert [item["price_per_hour_usd"] for item in items] == [3, 4, 2]
    assert len(get(market, "/v1/prices/history", **query, limit=1)["items"]) == 1
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert get(market, "/v1/prices/history", **query, since=later)["items"] == []
    reply = market.call("GET", "/v1/prices/history?since=2026-01-01T00:00:00")
    assert (reply.status, reply.json["error"]) == (400, "invalid_request")
    contract.told = []
    market.call("POST", "/v1/prices/refresh", "admin")


def test_offers_are_filtered_and_the_cheapest_gpu_comes_first(market: Server) -> None:
    found = get(market, "/v1/offers", gpu="H100-SXM:8")
    assert [item["instance_type"] for item in found["items"]] == ["p5", "p5", "h100x8", "p5", "p5", "nd96"]
    assert (found["matched"], found["total"] > 6, found["items"][0]["is_enabled"]) == (6, True, False)
    best = found["items"][0]
    assert (best["price_per_gpu_hour_usd"], best["availability"], best["interruptions_per_hour"]) == (2.5, 0.8, 0.05)
    assert [i["market"] for i in get(market, "/v1/offers", gpu="H100", spot="true")["items"]] == ["spot", "spot"]
    assert all(i["market"] == "on_demand" for i in get(market, "/v1/offers", gpu="H100", spot="false")["items"])
    assert len(get(market, "/v1/offers", gpu="H100-SXM", max_price=24)["items"]) == 3
    assert get(market, "/v1/offers", gpu="Z9000")["matched"] == 0


def test_offers_in_groups(market: Server) -> None:
    found = get(market, "/v1/offers", gpu="H100", group_by="provider", sort="price")
    assert found["items"] == []
    own, *sold = found["groups"]
    assert own["name"] == "fake"
    assert [(one["name"], one["offers"], one["priced"]) for one in sold] == [
        ("lambda", 2, 2),
        ("aws", 4, 4),
        ("azure", 1, 0),
    ]
    assert sold[0]["best"]["price_per_hour_usd"] == 3.5


def test_own_machines_are_offers_too(market: Server) -> None:
    found = get(market, "/v1/offers", provider="fake", limit=1)
    assert found["items"][0]["is_enabled"] is True
    assert found["items"][0]["is_stale"] is False


def test_providers_side_by_side(market: Server) -> None:
    said = get(market, "/v1/compare", gpu="H100-SXM", gpus=8, hours=1.5)
    by_name = {item["provider"]: item for item in said["items"]}
    assert by_name["aws"]["spot"]["total_usd"] == 30.0
    assert by_name["aws"]["on_demand"]["total_usd"] == 82.5
    assert by_name["lambda"]["billing_unit_s"] == 60 and by_name["lambda"]["start_s"] == 120
    assert by_name["lambda"]["spot"] is None
    assert (by_name["azure"]["on_demand"], by_name["azure"]["priced"]) == (None, 0)
    assert get(market, "/v1/compare", gpu="H100-SXM")["hours"] is None


@pytest.mark.parametrize(
    "path",
    [
        "/v1/prices?limit=0",
        "/v1/prices?market=stolen",
        "/v1/prices?gpu=H100:0",
        "/v1/prices?provider=%00",
        "/v1/prices/history?since=yesterday",
        "/v1/offers?sort=luck",
        "/v1/offers?group_by=mood",
        "/v1/offers?max_price=nan",
        "/v1/offers?max_price=-1",
        "/v1/compare",
        "/v1/compare?gpu=H100&gpus=0",
        "/v1/compare?gpu=H100&hours=inf",
        "/v1/compare?gpu=H100&hours=nan",
    ],
)
def test_a_question_that_makes_no_sense_is_refused(market: Server, path: str) -> None:
    reply = market.call("GET", path)
    assert (reply.status, reply.json["error"]) == (422, "invalid_request"), reply.text


def test_only_an_admin_sets_the_sources_going(market: Server) -> None:
    assert market.call("POST", "/v1/prices/refresh", "alice").status == 403


def test_without_a_catalog_nothing_is_known_and_that_is_said(server: Server) -> None:
    page = get(server, "/v1/prices")
    assert page == {
        "items": [],
        "next_cursor": None,
        "summary": {"count": 0, "priced": 0, "stale": 0, "newest": None, "oldest": None},
    }
    assert get(server, "/v1/prices/sources")["items"] == []
    assert server.call("POST", "/v1/prices/refresh", "admin").json == {"items": []}
