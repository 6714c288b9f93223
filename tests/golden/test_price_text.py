"""Prices, offers and comparisons as text, at the widths people have. CRUCIBLE_REWRITE_GOLDEN=1 writes the files
anew."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views import prices as views

HERE = Path(__file__).parent / "prices"
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
DAY = 86400.0


def offer(provider: str, **changes: Any) -> Any:
    made = {
        "id": f"{provider}/us-east-1",
        "provider": provider,
        "region": "us-east-1",
        "zone": "",
        "instance_type": "p5.48xlarge",
        "gpu": "H100-SXM",
        "gpus": 8,
        "market": "on_demand",
        "price_per_hour_usd": 55.04,
        "price_per_gpu_hour_usd": 6.88,
        "as_of": "2026-11-09T12:00:00Z",
        "age_s": 7 * DAY,
        "is_stale": True,
        "source": "public price page",
        "backend": "vm",
        "is_enabled": False,
        "gpu_memory_gb": 80.0,
        "cpus": 192.0,
        "memory_gb": 2048.0,
        "availability": None,
        "interruptions_per_hour": 0.0,
        "free_gpus": None,
    }
    return made | changes


OFFERS = [
    offer(
        "local",
        region="here",
        instance_type="slots-8",
        gpu="slot",
        price_per_hour_usd=0.0,
        price_per_gpu_hour_usd=0.0,
        age_s=0.4,
        is_stale=False,
        is_enabled=True,
    ),
    offer(
        "aws",
        zone="us-east-1a",
        market="spot",
        price_per_hour_usd=20.28,
        price_per_gpu_hour_usd=2.535,
        availability=0.957,
        interruptions_per_hour=0.0219,
        age_s=2 * 3600 + 60,
    ),
    offer("aws", zone="use1-az4"),
    offer("azure", instance_type="Standard_ND96isr_H100_v5", price_per_hour_usd=None, price_per_gpu_hour_usd=None),
    offer(
        "vast",
        region="HK",
        instance_type="a-host-with-a-name-that-goes-on-and-on-\x1b[31m",
        gpu=None,
        gpus=0,
        price_per_hour_usd=0.0525,
        price_per_gpu_hour_usd=None,
    ),
]
GROUPS: Any = [
    {"name": "local", "offers": 8, "priced": 8, "best": OFFERS[0]},
    {"name": "aws", "offers": 1280, "priced": 1280, "best": OFFERS[1]},
    {"name": "azure", "offers": 12, "priced": 0, "best": OFFERS[3]},
]


def quote(**changes: Any) -> Any:
    made = {
        "instance_type": "p4d.24xlarge",
        "region": "us-east-2",
        "zone": "",
        "count": 1,
        "gpu": "A100-40GB",
        "gpus": 8,
        "price_per_hour_usd": 21.96,
        "billed_s": 21600,
        "total_usd": 131.76,
        "availability": None,
        "interruptions_per_hour": 0.0,
        "as_of": "2026-11-16T11:55:00Z",
        "age_s": 300.0,
        "is_stale": False,
        "source": "contract",
    }
    return made | changes


def side(provider: str, **changes: Any) -> Any:
    made = {
        "provider": provider,
        "is_enabled": False,
        "on_demand": quote(),
        "spot": None,
        "start_s": 180.0,
        "billing_unit_s": 1,
        "billing_minimum_s": 60,
        "regions": 9,
        "offers": 80,
        "priced": 80,
    }
    return made | changes


COMPARISON: Any = {
    "gpu": "A100",
    "gpus": 8,
    "hours": 6.0,
    "items": [
        side(
            "aws",
            spot=quote(
                price_per_hour_usd=7.51,
                total_usd=45.06,
                availability=0.96,
                interruptions_per_hour=0.022,
                age_s=86 * DAY,
                is_stale=True,
            ),
        ),
        side(
            "local",
            is_enabled=True,
            on_demand=quote(count=2, instance_type="slots-4", price_per_hour_usd=0, total_usd=0),
        ),
        side("lambda", billing_unit_s=60, billing_minimum_s=0, start_s=30.0),
        side("tencent", on_demand=None, priced=0),
    ],
}


def changes(*dollars: float | None, **fields: Any) -> list[Any]:
    made = {
        "provider": "aws",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "instance_type": "p5.48xlarge",
        "market": "spot",
        "source": "spot price history",
    } | fields
    return [
        made | {"price_per_hour_usd": price, "as_of": f"2026-11-{day:02}T00:00:00Z"}
        for day, price in enumerate(dollars, start=8)
    ]


HISTORY: Any = [
    *changes(20.0, 21.5, 27.0, 24.0, 19.0, 18.5, 22.0),
    *changes(55.04, zone="", market="on_demand"),
    *changes(20.0, None, 22.0, zone="us-east-1b"),
]
SOURCES: Any = [
    {
        "name": "file:/etc/crucible/contract.csv",
        "refreshed_at": "2026-11-16T11:59:00Z",
        "age_s": 60.0,
        "is_stale": False,
        "rows": 1200,
        "changed": 3,
        "error": None,
        "failed_at": None,
    },
    {
        "name": "aws",
        "refreshed_at": "2026-11-16T03:00:00Z",
        "age_s": 32400.0,
        "is_stale": True,
        "rows": 20480,
        "changed": 0,
        "error": "the key was refused: renew it with crucible provider login aws, then refresh again",
        "failed_at": "2026-11-16T11:59:00Z",
    },
    {
        "name": "gcp",
        "refreshed_at": None,
        "age_s": None,
        "is_stale": True,
        "rows": 0,
        "changed": 0,
        "error": None,
        "failed_at": None,
    },
]
REFRESHED: Any = [
    {"source": "contract", "rows": 1200, "changed": 3, "unknown_types": [], "error": None, "took_s": 0.1},
    {"source": "aws", "rows": 0, "changed": 0, "unknown_types": [], "error": "no answer within 20 s", "took_s": 20.0},
]
SUMMARY: Any = {
    "count": 17966,
    "priced": 17078,
    "stale": 17960,
    "newest": "2026-11-16T11:00:00Z",
    "oldest": "2025-09-01T00:00:00Z",
}
FOUND: Any = {"items": OFFERS, "groups": [], "matched": 325, "total": 17966}

TEXTS = {
    **{f"offers-{w or 'piped'}": lambda w=w: views.offer_table(OFFERS, w) for w in (80, 140, None)},
    **{f"prices-{w or 'piped'}": lambda w=w: views.price_table(OFFERS, w) for w in (80, 140, None)},
    **{f"groups-{w}": lambda w=w: views.group_table(GROUPS, "provider", w) for w in (80, 140)},
    **{f"compare-{w or 'piped'}": lambda w=w: views.comparison_table(COMPARISON, w) for w in (80, 140, None)},
    "compare-without-hours": lambda: views.comparison_table(COMPARISON | {"hours": None}, 80),
    "history-80": lambda: views.history_table(HISTORY, NOW, 80),
    "history-plain": lambda: views.history_table(HISTORY, NOW, 80, is_plain=True),
    "sources-80": lambda: views.source_table(SOURCES, NOW, 80),
    "refreshed-80": lambda: views.refreshed_table(REFRESHED, 80),
    "notes": lambda: [
        views.offer_note(FOUND),
        views.offer_note(FOUND | {"groups": GROUPS}),
        views.price_note(50, SUMMARY, NOW),
        views.price_note(0, {"count": 0, "priced": 0, "stale": 0, "newest": None, "oldest": None}, NOW),
        views.comparison_note(COMPARISON),
    ],
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_as_reviewed(name: str) -> None:
    text = "\n".join(TEXTS[name]()) + "\n"
    golden = HERE / f"{name}.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_file_belongs_to_a_text() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(TEXTS)


@pytest.mark.parametrize("name", [name for name in TEXTS if name.endswith(("-80", "-140"))])
def test_a_table_fits_the_terminal(name: str) -> None:
    width = int(name.rpartition("-")[2])
    assert all(len(line) <= width for line in TEXTS[name]())
