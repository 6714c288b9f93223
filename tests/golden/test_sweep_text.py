"""Searches, evaluations and tasks as text, at the widths people have. CRUCIBLE_REWRITE_GOLDEN=1 writes the files
anew."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views import evaluations, plots, sweeps
from crucible.cli.views.tasks import task_table

HERE = Path(__file__).parent / "sweeps"
NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def trial(index: int, value: float | None = None, **changes: Any) -> Any:
    made = {
        "index": index,
        "id": f"019a8c3f-2b42-7000-8000-{index:012}",
        "phase": "succeeded",
        "verdict": None,
        "params": {"lr": 0.001 * 2**index, "optimizer": "adam" if index % 2 else "sgd", "deep": index % 3 == 0},
        "value": value,
        "value_so_far": None,
        "metrics": {} if value is None else {"loss": value, "accuracy": 1 - value},
        "step": 27,
        "fraction": 1.0,
        "attempts": 1,
        "failures": 0,
        "losses": 0,
        "reason": None,
        "where": {
            "provider": "aws",
            "region": "us-east-1",
            "backend": "vm",
            "instance_type": "g5.xlarge",
            "spot": True,
        },
        "started_at": "2026-11-17T11:00:00Z",
        "ended_at": f"2026-11-17T11:{index:02}:30Z",
    }
    return made | changes


TRIALS: Any = [
    trial(7, 0.0123456789),
    trial(5, 0.0831),
    trial(6, 0.25, reason=None),
    trial(4, 0.4),
    trial(3, 0.41, verdict="reused", where=None, started_at=None, ended_at=None, attempts=0),
    trial(
        1, 0.9, verdict="pruned", step=3, reason="stopped early: loss 0.9 at step 3 is not among the best 2 of 6 there"
    ),
    trial(0, phase="failed", reason="rank 0 exited with code 1; last lines: CUDA out of memory\x1b[31m", fraction=None),
    trial(2, reason="its loss was no finite number"),
    trial(8, phase="running", value_so_far=0.3, step=12, fraction=0.44, ended_at=None),
    trial(9, phase="waiting", where=None, started_at=None, ended_at=None, step=None, fraction=None, attempts=0),
    trial(10, phase="cancelled", verdict="skipped", where=None, started_at=None, ended_at=None, reason="max_time"),
]
COUNTS = {
    "total": 11, "waiting": 1, "running": 1, "completed": 6, "pruned": 1, "failed": 1, "skipped": 1, "cancelled": 0,
    "without_value": 1,
}  # fmt: skip
SWEEP: Any = {
    "job_id": "019a8c3f-2b42-7000-8000-000000000002",
    "name": "rings",
    "status": "running",
    "method": "random",
    "parameters": ["lr", "optimizer", "deep"],
    "objective": {"metric": "loss", "goal": "minimize", "reading": "last"},
    "trials": COUNTS,
    "best": {**TRIALS[0], "checkpoint": {"step": 27, "uri": "s3://bucket/checkpoints/7/step-27"}},
    "spent_usd": 11.5,
    "budget_usd": 12.0,
    "drained": "the budget of $12.00 is used up",
    "note": None,
}
NOTHING: Any = SWEEP | {
    "best": None,
    "drained": None,
    "budget_usd": None,
    "note": "no trial has ended with a finite lsos; they report loss",
}
VALUED: Any = [one for one in TRIALS if one["value"] is not None]
MANY: Any = sorted(
    (trial(n % 60, abs((n % 60) - 20) + n / 100, params={"lr": 1e-5 * 1.2**n, "width": n}) for n in range(60)),
    key=lambda one: one["value"],
)
WIDE: Any = SWEEP | {"parameters": ["lr", "width"]}


def figure(value: float, delta: float | None = None, is_better: bool | None = None) -> Any:
    return {"value": value, "delta": delta, "is_better": is_better}


def cell(dataset: str, phase: str = "succeeded", reason: str | None = None, **metrics: Any) -> Any:
    return {"dataset": dataset, "phase": phase, "metrics": metrics, "reason": reason}


EVALUATION: Any = {
    "job_id": "019a8c3f-2b42-7000-8000-000000000003",
    "name": "table",
    "status": "running",
    "datasets": ["squad", "mmlu"],
    "metrics": ["accuracy", "f1"],
    "baseline": "llama-base",
    "goal": "maximize",
    "rows": [
        {
            "model": "llama-base",
            "cells": [cell("squad", accuracy=figure(0.5), f1=figure(0.41)), cell("mmlu", accuracy=figure(0.25))],
            "means": {"accuracy": figure(0.375)},
        },
        {
            "model": "llama-tuned",
            "cells": [
                cell("squad", accuracy=figure(0.75, 0.25, True), f1=figure(0.4, -0.01, False)),
                cell("mmlu", accuracy=figure(0.25, 0.0, None)),
            ],
            "means": {"accuracy": figure(0.5, 0.125, True)},
        },
        {
            "model": "a-model-with-a-name-that-is-longer-than-anybody-would-want-to-read",
            "cells": [cell("squad", "failed", "rank 0 exited with code 1"), cell("mmlu", "running")],
            "means": {},
        },
    ],
    "next_cursor": None,
}

TEXTS: dict[str, Callable[[], list[str]]] = {
    "show-80": lambda: [*sweeps.standing(SWEEP), "", *sweeps.trial_table(SWEEP, TRIALS, NOW, 80)],
    "show-140": lambda: [*sweeps.standing(SWEEP), "", *sweeps.trial_table(SWEEP, TRIALS, NOW, 140)],
    "show-nothing": lambda: sweeps.standing(NOTHING),
    "csv": lambda: list(sweeps.as_csv(SWEEP, TRIALS)),
    "best": lambda: sweeps.best_page(SWEEP, SWEEP["best"]),
    "best-env": lambda: sweeps.as_variables({**SWEEP["best"], "params": {"a.b-c": "x y'z", "deep": True, "lr": 1e-05}}),
    "plot": lambda: plots.by_parameter(SWEEP, VALUED, plots.FINE),
    "plot-many-plain": lambda: plots.by_parameter(WIDE, MANY, plots.PLAIN),
    "plot-lr-80": lambda: plots.scatter(SWEEP, VALUED, "lr", 80, plots.FINE),
    "plot-lr-plain-60": lambda: plots.scatter(WIDE, MANY, "lr", 60, plots.PLAIN),
    "plot-words": lambda: plots.scatter(SWEEP, VALUED, "optimizer", 60, plots.FINE),
    "plot-one": lambda: plots.scatter(SWEEP, VALUED[:1], "lr", 60, plots.PLAIN),
    "eval-80": lambda: evaluations.evaluation_page(EVALUATION, 80),
    "eval-140": lambda: evaluations.evaluation_page(EVALUATION, 140),
    "eval-nothing": lambda: evaluations.evaluation_page({**EVALUATION, "metrics": []}, 80),
    "eval-csv": lambda: list(evaluations.as_csv(EVALUATION)),
    "tasks-80": lambda: task_table(TRIALS, NOW, 80),
    "tasks-140": lambda: task_table(TRIALS, NOW, 140),
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


@pytest.mark.parametrize("width", [80, 140])
def test_a_table_fits_the_terminal(width: int) -> None:
    tables = [sweeps.trial_table(SWEEP, TRIALS, NOW, width), task_table(TRIALS, NOW, width)]
    tables += [
        evaluations.metric_table(EVALUATION, name, width, lambda colour, text: text) for name in ("accuracy", "f1")
    ]
    tables.append(plots.scatter(SWEEP, VALUED, "lr", width, plots.FINE))
    assert all(len(line) <= width for table in tables for line in table)


@pytest.mark.parametrize("name", [name for name in TEXTS if "plain" in name or name == "plot-one"])
def test_plain_signs_are_ascii(name: str) -> None:
    assert "\n".join(TEXTS[name]()).isascii()
