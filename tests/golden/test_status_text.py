"""How jobs and the system are, as it is drawn. To write the files anew after a change of words, run with
CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import math
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.table import pairs
from crucible.cli.views.jobs import job_page, job_table
from crucible.cli.views.status import (
    chart_note,
    chart_table,
    finding_lines,
    health_lines,
    status_rows,
    top_page,
)
from doubles.api_server import brief, job

HERE = Path(__file__).parent / "status"
NOW = datetime(2026, 1, 17, 12, 5, tzinfo=UTC)


def figure(mean: float, low: float, high: float, worst: int | None = 0) -> dict[str, Any]:
    return {"mean": mean, "low": low, "high": high, "worst_rank": worst}


FINDINGS: Any = [
    {
        "code": "gpus_idle",
        "severity": "warning",
        "words": "1 of 8 GPUs of rank 3 do nothing, though they are held",
        "advice": "does it wait for data, or run on the CPU? crucible logs, crucible metrics --usage",
        "since": "2026-01-17T11:40:00Z",
        "until": None,
        "job_id": "019a8c3f-2b41-7000-8000-000000000001",
        "details": {},
    },
    {
        "code": "gpu_memory_full",
        "severity": "info",
        "words": "the memory of GPUs of rank 0 is nearly full",
        "advice": "some frameworks take all of it at once; else a larger batch will not fit",
        "since": "2026-01-17T12:04:00Z",
        "until": None,
        "job_id": "019a8c3f-2b41-7000-8000-000000000001",
        "details": {},
    },
]
STATUS: Any = {
    "job_id": "019a8c3f-2b41-7000-8000-000000000001",
    "name": "resnet50",
    "job_type": "training",
    "execution_mode": "single_cluster",
    "phase": "running",
    "desired": "run",
    "reason": None,
    "at": "2026-01-17T12:05:00Z",
    "place": None,
    "progress": {"step": 2500, "total_steps": 10_000, "fraction": 0.25, "steps_per_s": 0.34, "at": None},
    "eta": {
        "basis": "progress",
        "at": "2026-01-17T18:15:00Z",
        "latest_at": "2026-01-17T20:05:00Z",
        "seconds": 22_200.0,
        "seconds_high": 28_800.0,
    },
    "cost": {
        "so_far_usd": 12.35,
        "per_hour_usd": 8.19,
        "remaining_usd": 50.5,
        "remaining_high_usd": 65.53,
        "at_risk_usd": 3.1,
    },
    "health": {"status": "warning", "findings": FINDINGS},
    "utilisation": {
        "machines": 2,
        "heard": 2,
        "gpus": 8,
        "cpu": figure(0.31, 0.3, 0.32),
        "memory": figure(0.42, 0.4, 0.44),
        "gpu": figure(0.83, 0.0, 0.97, 3),
        "gpu_memory": figure(0.9, 0.88, 0.98, 0),
        "disk": figure(0.4, 0.4, 0.41),
        "network_received_bytes_per_s": None,
        "network_sent_bytes_per_s": None,
    },
    "unknown": {},
}
NOTHING: Any = dict.fromkeys(STATUS["utilisation"])
QUIET: Any = {
    **STATUS,
    "name": "a-sweep-over-learning-rates-that-somebody-gave-a-very-long-name",
    "phase": "provisioning",
    "progress": {"step": None, "total_steps": None, "fraction": None, "steps_per_s": None, "at": None},
    "eta": None,
    "cost": {
        "so_far_usd": 0.0,
        "per_hour_usd": 0.0,
        "remaining_usd": None,
        "remaining_high_usd": None,
        "at_risk_usd": None,
    },
    "health": {"status": "unknown", "findings": []},
    "utilisation": {**NOTHING, "machines": 0, "heard": 0, "gpus": 0},
    "unknown": {"health": "nothing of it runs", "eta": "there is neither an estimate nor progress yet"},
}


def check(name: str, status: str, words: str, subject: str = "", advice: str = "") -> dict[str, Any]:
    return {"name": name, "subject": subject, "status": status, "words": words, "advice": advice, "details": {}}


SYSTEM: Any = {
    "status": "healthy",
    "system": {
        "status": "critical",
        "checks": [
            check(
                "provider",
                "critical",
                "has not answered since 2026-01-17 11:50:00 UTC: AuthFailure",
                "aws/us-east-1",
                "crucible doctor aws",
            ),
            check("provider", "ok", "answers in 12 ms, 4 machines", "local/local"),
            check("provider", "unknown", "not looked at yet", "slurm/site"),
            check("loops", "ok", "15 turn; started again 2 times"),
            check("ledger", "warning", "comes to nothing; 2 stretches run", advice="the next listing closes them"),
        ],
    },
}


def points(values: list[float | None]) -> list[dict[str, Any]]:
    return [
        {
            "t": n * 60_000,
            "count": 1 if value is not None and math.isfinite(value) else 0,
            "invalid": 1 if value is not None and not math.isfinite(value) else 0,
            "min": value if value is not None and math.isfinite(value) else None,
            "max": value if value is not None and math.isfinite(value) else None,
            "mean": value if value is not None and math.isfinite(value) else None,
            "last": value if value is not None and math.isfinite(value) else None,
            "last_t": n * 60_000,
            "step": n,
        }
        for n, value in enumerate(values)
        if value is not None
    ]


CHART: Any = {
    "resolution_s": 60.0,
    "left_out": 3,
    "series": [
        {"name": "loss", "points": points([5.0 / (n + 1) for n in range(30)] + [None] * 10 + [0.2] * 10)},
        {"name": "accuracy", "points": points([n / 50 for n in range(45)] + [math.nan] * 5)},
        {"name": "learning_rate_of_the_second_parameter_group", "points": points([0.001] * 50)},
    ],
}
JOBS: Any = [
    brief(health="critical"),
    brief(name="fine", health="ok"),
    brief(name="new", status="pending", health=None),
]
TEXTS = {
    "describe": lambda: job_page(job(), [], NOW, status=status_rows(STATUS, NOW)),  # type: ignore[arg-type]
    "describe-findings": lambda: finding_lines(FINDINGS, NOW),
    "status-quiet": lambda: pairs(status_rows(QUIET, NOW)),
    "ps-80": lambda: job_table(JOBS, NOW, width=80),
    "ps-wide": lambda: job_table(JOBS, NOW, width=None, is_wide=True),
    "top-80": lambda: top_page([STATUS, QUIET], 7, SYSTEM, NOW, 80),
    "top-140": lambda: top_page([STATUS, QUIET], 7, SYSTEM, NOW, 140),
    "top-nothing": lambda: top_page([], 0, None, NOW, 80),
    "health": lambda: health_lines(SYSTEM),
    "chart-100": lambda: [*chart_table(CHART, 100), chart_note(CHART)],
    "chart-plain": lambda: chart_table(CHART, None, is_plain=True),
    "chart-nothing": lambda: [chart_note({"series": [], "resolution_s": 0, "left_out": 0})],
}


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_as_reviewed(name: str) -> None:
    text = "\n".join(TEXTS[name]()) + "\n"
    golden = HERE / f"{name}.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_file_belongs_to_a_text() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(TEXTS)


@pytest.mark.parametrize("width", [80, 140])
def test_a_table_fits_the_terminal(width: int) -> None:
    assert all(len(line) <= width for line in top_page([STATUS, QUIET], 7, SYSTEM, NOW, width))
