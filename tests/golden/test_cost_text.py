"""What was spent and saved as text, at the widths people have. CRUCIBLE_REWRITE_GOLDEN=1 writes the files anew."""

import os
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views import cost_reports as views

HERE = Path(__file__).parent / "costs"


def sums(cost: int, useful: int, saved: int = 0, unpriced: int = 0, gpu_hours: float = 0.0, jobs: int = 0) -> Any:
    figures = {"cost": cost, "useful": useful, "idle": cost - useful, "saved": saved, "unpriced": unpriced}
    money = {f"{name}_microusd": value for name, value in figures.items()}
    money |= {f"{name}_usd": value / 1e6 for name, value in figures.items()}
    return {**money, "gpu_hours": gpu_hours, "jobs": jobs}


def row(name: str | None = None, *, of: Any, **key: str) -> Any:
    return {"key": key, "job_name": name, **of}


TOTAL = sums(1_843_271_904, 1_614_400_123, 2_212_000_000, 81_000_000, 1204.51, 219)
REPORT: Any = {
    "at": "2026-11-18T09:30:00Z",
    "from_at": "2026-11-01T00:00:00Z",
    "to_at": "2026-12-01T00:00:00Z",
    "by": ["team", "project"],
    "rows": [
        row(
            of=sums(1_204_000_000, 1_100_000_000, 2_000_000_000, 0, 900.25, 140),
            team="vision",
            project="segmentation-of-everything-there-is",
        ),
        row(of=sums(639_261_904, 514_400_123, 212_000_000, 81_000_000, 304.26, 78), team="speech", project="-"),
        row(of=sums(10_000, 0, 0, 0, 0.0, 1), team="-", project="-"),
    ],
    "left_out": 0,
    "total": TOTAL,
    "per_hour_microusd": 4_180_000,
    "per_hour_usd": 4.18,
    "forecast": {
        "total_microusd": 3_100_000_000,
        "total_usd": 3100.0,
        "per_day_microusd": 98_000_000,
        "per_day_usd": 98.0,
        "from_days": 7.0,
    },
}
JOBS: Any = {
    **REPORT,
    "by": ["job"],
    "left_out": 214,
    "forecast": None,
    "rows": [
        row(
            "pretrain the large one, third attempt at a learning rate",
            of=sums(800_000_000, 790_000_000, 1_500_000_000, 0, 512.0, 1),
            job="3f2b8c1e-0000-7000-8000-000000000001",
        ),
        row("eval", of=sums(91_234, 50_000, -1_000, 0, 0.4, 1), job="9a1b8c1e-0000-7000-8000-000000000002"),
    ],
}
IDEA: Any = {
    "job_id": "3f2b8c1e",
    "job_name": "pretrain the large one",
    "move": "spot",
    "provider": "aws",
    "region": "us-east-2",
    "instance_type": "p5.48xlarge",
    "count": 2,
    "is_spot": True,
    "is_enabled": True,
    "now_usd": 812.4,
    "then_usd": 301.07,
    "saves_usd": 511.33,
    "hours": 10.0,
    "reliability": 0.97,
}
SAVINGS: Any = {
    **REPORT,
    "by": ["market"],
    "rows": [
        row(of=sums(1_000_000_000, 1, 2_212_000_000, 81_000_000), market="spot"),
        row(of=sums(843_271_904, 1), market="on_demand"),
    ],
    "available": {
        "ideas": [
            IDEA,
            {
                **IDEA,
                "move": "provider",
                "provider": "lambda",
                "region": "us-west-1",
                "instance_type": "gpu_8x_h100_sxm5",
                "is_spot": False,
                "is_enabled": False,
                "then_usd": 612.0,
                "saves_usd": 200.4,
            },
        ],
        "jobs": 25,
        "unknown": 3,
        "is_partial": True,
    },
}
PAGES = {
    "report": lambda width: [*views.report_table(REPORT, width), "", *views.report_notes(REPORT)],
    "days": lambda width: [
        *views.report_table(
            {**REPORT, "by": ["day"], "left_out": 29, "rows": [row(of=TOTAL, day="2026-11-01")]}, width
        ),
        "",
        *views.report_notes({**REPORT, "left_out": 29, "to_at": "2026-11-08T00:00:00Z", "forecast": None}),
    ],
    "dearest": lambda width: views.dearest_table(JOBS, width),
    "jobs": lambda width: views.report_table(JOBS, width),
    "savings": lambda width: [
        *views.savings_table(SAVINGS, width),
        *views.idea_table(SAVINGS, width),
        "",
        *views.savings_notes(SAVINGS),
    ],
    "nothing": lambda width: [
        *views.report_table({**REPORT, "rows": []}, width),
        *views.report_notes({**REPORT, "rows": [], "total": sums(0, 0), "to_at": "2026-11-02T00:00:00Z"}),
    ],
}


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", PAGES)
def test_costs_read_as_the_golden_files(name: str, width: int) -> None:
    golden = HERE / f"{name}_{width}.txt"
    found = "\n".join(PAGES[name](width)) + "\n"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found)
    assert found == golden.read_text()
    assert all(
        len(line) <= width
        for line in found.splitlines()
        if not line.startswith(("20", "November", "what", "3 jobs", "$"))
    )


@pytest.mark.parametrize(
    ("start", "end", "tz", "said"),
    [
        ("2026-10-31T23:00Z", "2026-11-30T23:00Z", "Europe/Berlin", "November 2026"),
        ("2026-11-18T00:00Z", "2026-11-19T00:00Z", "UTC", "2026-11-18"),
        ("2026-11-18T05:00Z", "2026-11-19T00:00Z", "UTC", "2026-11-18 05:00 to 2026-11-19 00:00"),
        ("2026-01-01T00:00Z", "2027-01-01T00:00Z", "UTC", "2026-01-01 to 2026-12-31"),
    ],
)
def test_a_period_is_named_as_short_as_it_can_be(start: str, end: str, tz: str, said: str) -> None:
    assert views.span_name(start, end, tz) == said
