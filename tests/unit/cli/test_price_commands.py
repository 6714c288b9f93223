"""crucible prices, offers and compare against a server whose answers we wrote."""

import json
import os
import sys
from typing import Any

import pytest
import yaml

from doubles.http_server import Request
from doubles.terminal import Terminal

PRICE: dict[str, Any] = {
    "provider": "aws",
    "region": "us-east-1",
    "zone": "use1-az4",
    "instance_type": "p5.48xlarge",
    "gpu": "H100-SXM",
    "gpus": 8,
    "market": "spot",
    "price_per_hour_usd": 20.28,
    "as_of": "2026-11-09T12:00:00Z",
    "age_s": 7 * 86400.0,
    "is_stale": True,
    "source": "public price page",
}
SUMMARY = {"count": 1, "priced": 1, "stale": 1, "newest": "2026-11-09T12:00:00Z", "oldest": "2026-11-09T12:00:00Z"}
OFFER = PRICE | {
    "id": "aws/us-east-1/use1-az4/p5.48xlarge/spot",
    "backend": "vm",
    "is_enabled": False,
    "gpu_memory_gb": 80.0,
    "cpus": 192.0,
    "memory_gb": 2048.0,
    "price_per_gpu_hour_usd": 2.535,
    "availability": 0.96,
    "interruptions_per_hour": 0.02,
    "free_gpus": None,
}
FOUND = {"items": [OFFER], "groups": [], "matched": 1, "total": 17966}
NOTHING = {"items": [], "groups": [], "matched": 0, "total": 17966}
SIDE = {
    "provider": "aws",
    "is_enabled": False,
    "on_demand": None,
    "spot": PRICE
    | {"count": 1, "billed_s": 21600, "total_usd": 121.68, "availability": 0.9, "interruptions_per_hour": 0.1},
    "start_s": 180.0,
    "billing_unit_s": 1,
    "billing_minimum_s": 60,
    "regions": 1,
    "offers": 1,
    "priced": 1,
}
CHANGE = {name: value for name, value in PRICE.items() if name not in ("gpu", "gpus", "age_s", "is_stale")}
SOURCE = {
    "name": "file:/etc/prices.csv",
    "refreshed_at": None,
    "age_s": None,
    "is_stale": True,
    "rows": 0,
    "changed": 0,
    "error": "line 3: market 'x'",
    "failed_at": "2026-11-09T12:00:00Z",
}


def test_offers_asks_for_what_the_options_say(crucible: Any, serve: Any) -> None:
    server = serve({"GET /v1/offers": FOUND})
    ran = crucible("offers", "--gpu", "H100:8", "--spot", "--max-price", "25", "--region", "us-east-1", "--limit", "7")
    assert ran.code == 0, ran.err
    assert server.requests[0].query == {
        "gpu": "H100:8",
        "spot": "true",
        "max_price": "25.0",
        "region": "us-east-1",
        "sort": "gpu_price",
        "limit": "7",
    }
    assert "p5.48xlarge" in ran.out and "7d!" in ran.out
    assert "1 of 1 offers that match, 17,966 in all; ! older than an hour" in ran.err
    crucible("offers", "--on-demand", "--group-by", "gpu")
    assert server.requests[1].query["spot"] == "false"
    assert server.requests[1].query["group_by"] == "gpu"


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_offer_is_exit_code_3(crucible: Any, serve: Any, form: str) -> None:
    serve({"GET /v1/offers": NOTHING, "GET /v1/compare": {"gpu": "Z9", "gpus": 1, "hours": None, "items": []}})
    assert crucible("offers", "--gpu", "Z9", "-o", form).code == 3
    assert crucible("compare", "--gpu", "Z9", "-o", form).code == 3


def test_programs_get_what_the_server_said(crucible: Any, serve: Any) -> None:
    comparison = {"gpu": "H100", "gpus": 8, "hours": 6.0, "items": [SIDE]}
    serve(
        {
            "GET /v1/offers": FOUND,
            "GET /v1/compare": comparison,
            "GET /v1/prices": {"items": [PRICE], "next_cursor": None, "summary": SUMMARY},
            "GET /v1/prices/history": {"items": [CHANGE]},
            "GET /v1/prices/sources": {"items": [SOURCE]},
        }
    )
    for argv, said in (
        (["offers"], FOUND),
        (["compare", "--gpu", "H100:8", "--hours", "6"], comparison),
        (["prices", "show"], {"items": [PRICE], "summary": SUMMARY}),
        (["prices", "history", "p5.48xlarge"], {"items": [CHANGE]}),
        (["prices", "sources"], {"items": [SOURCE]}),
    ):
        ran = crucible(*argv, "-o", "json")
        assert (ran.code, json.loads(ran.out), ran.err) == (0, said, "")
        assert yaml.safe_load(crucible(*argv, "-o", "yaml").out) == said


def test_compare_asks_for_gpus_in_all(crucible: Any, serve: Any) -> None:
    server = serve({"GET /v1/compare": {"gpu": "H100", "gpus": 8, "hours": 6.0, "items": [SIDE]}})
    ran = crucible("compare", "--gpu", "H100:8", "--hours", "6")
    assert server.requests[0].query == {"gpu": "H100", "gpus": "8", "hours": "6.0"}
    assert "121.68" in ran.out
    assert "the cheapest 8 × H100 of each" in ran.err


@pytest.mark.parametrize("gpu", ["H100:", "H100:0", "H100:x", ":8", "H100:²", "H100:100001"])
def test_compare_refuses_what_is_no_number_of_gpus(crucible: Any, gpu: str) -> None:
    ran = crucible("compare", "--gpu", gpu)
    assert (ran.code, "A100:8" in ran.err) == (2, True)


def test_prices_are_read_page_after_page(crucible: Any, serve: Any) -> None:
    def pages(request: Request) -> dict[str, Any]:
        number = int(request.query.get("cursor", 0))
        count = int(request.query["limit"])
        items = [PRICE | {"zone": f"z{number}-{i}"} for i in range(count)]
        return {"items": items, "next_cursor": str(number + 1) if number < 2 else None, "summary": SUMMARY}

    server = serve({"GET /v1/prices": pages})
    ran = crucible("prices", "show", "--gpu", "H100", "--market", "spot", "--limit", "700")
    assert len(ran.out.splitlines()) == 701
    assert [request.query["limit"] for request in server.requests] == ["500", "200"]
    assert server.requests[0].query["market"] == "spot"


def test_the_age_is_always_shown_and_the_old_is_marked(crucible: Any, serve: Any) -> None:
    fresh = PRICE | {"age_s": 61.0, "is_stale": False, "price_per_hour_usd": None}
    serve({"GET /v1/prices": {"items": [PRICE, fresh], "next_cursor": None, "summary": SUMMARY | {"count": 2}}})
    ran = crucible("prices", "show")
    assert [line.split()[5] for line in ran.out.splitlines()[1:]] == ["7d!", "1m"]
    assert "1 unknown (?)" in ran.err


def test_a_refresh_tells_what_each_source_did(crucible: Any, serve: Any) -> None:
    good = {"source": "contract", "rows": 12, "changed": 3, "unknown_types": ["onprem/dgx"], "error": None, "took_s": 1}
    bad = {
        "source": "aws",
        "rows": 0,
        "changed": 0,
        "unknown_types": [],
        "error": "no answer within 20 s",
        "took_s": 20,
    }
    serve({"POST /v1/prices/refresh": {"items": [good]}})
    ran = crucible("prices", "refresh")
    assert ran.code == 0
    assert "the catalog does not know onprem/dgx" in ran.err
    serve({"POST /v1/prices/refresh": {"items": [good, bad]}})
    ran = crucible("prices", "refresh")
    assert ran.code == 7
    assert "no answer within 20 s" in ran.out


def test_without_sources_it_says_where_prices_are_from(crucible: Any, serve: Any) -> None:
    serve({"POST /v1/prices/refresh": {"items": []}, "GET /v1/prices/sources": {"items": []}})
    for command in ("refresh", "sources"):
        ran = crucible("prices", command)
        assert (ran.code, ran.out) == (0, "")
        assert "those of the shipped catalog" in ran.err


def test_history_is_asked_for_one_type_and_drawn(crucible: Any, serve: Any) -> None:
    changes = [CHANGE, CHANGE | {"price_per_hour_usd": 25.0, "as_of": "2026-11-12T12:00:00Z"}]
    server = serve({"GET /v1/prices/history": {"items": changes}})
    ran = crucible("prices", "history", "p5.48xlarge", "--market", "spot", "--since", "7d")
    assert server.requests[0].query["instance_type"] == "p5.48xlarge"
    assert server.requests[0].query["since"].startswith("20")
    assert "▁" in ran.out and "█" in ran.out and "25.00" in ran.out
    serve({"GET /v1/prices/history": {"items": []}})
    ran = crucible("prices", "history", "p5.48xlarge")
    assert (ran.code, ran.out) == (0, "")
    assert "no change of a price of p5.48xlarge" in ran.err


def test_build_is_listed_without_being_loaded_and_explains_itself(crucible: Any) -> None:
    loaded = set(sys.modules)
    listed = crucible("prices", "--help")
    assert "build" in listed.out
    assert not {name for name in set(sys.modules) - loaded if name.startswith("crucible.catalog")}
    ran = crucible("prices", "build", "--help")
    assert ran.code == 0
    assert "--check" in ran.out


def test_doctor_names_the_sources_that_fail(crucible: Any, serve: Any) -> None:
    me = {"user_id": "ada", "name": "ada", "role": "member", "token_id": "t"}
    routes = {"GET /readyz": {}, "GET /v1/me": me, "GET /v1/version": {"version": "0"}}
    good = SOURCE | {"name": "aws", "error": None, "rows": 20480}
    serve(routes | {"GET /v1/prices/sources": {"items": [SOURCE, good]}})
    said = crucible("doctor").out
    assert "file:/etc/prices.csv: line 3: market 'x'" in said and "crucible prices refresh" in said
    assert "aws: 20480 prices" in said
    serve(routes | {"GET /v1/prices/sources": {"items": []}})
    assert "those of the shipped catalog" in crucible("doctor").out


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "CRUCIBLE_HOME", "CRUCIBLE_SERVER", "CRUCIBLE_TOKEN")}


@pytest.mark.parametrize("columns", [80, 140])
def test_tables_keep_to_the_terminal_and_old_prices_are_yellow(serve: Any, columns: int) -> None:
    long = OFFER | {"instance_type": "n" * 200}
    serve({"GET /v1/offers": {"items": [long], "groups": [], "matched": 1, "total": 1}})
    terminal = Terminal(["offers"], environment(), columns=columns)
    assert terminal.end() == 0
    assert "\x1b[33m7d!\x1b[0m" in terminal.shown
    plain = Terminal(["offers"], environment() | {"NO_COLOR": "1"}, columns=columns)
    assert plain.end() == 0
    header, row = plain.shown.splitlines()[:2]
    assert "\x1b" not in plain.shown
    assert len(row) == columns and row.endswith("7d!")
    assert ("LOST/H" in header) is (columns == 140)
