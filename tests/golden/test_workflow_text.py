"""Workflows as they are drawn, at the widths people have. To write the files anew after a change, run with
CRUCIBLE_REWRITE_GOLDEN=1 and review the diff."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views.plans import plan_lines
from crucible.cli.views.workflows import planned_page, step_table, workflow_page
from crucible.spec import load

HERE = Path(__file__).parent / "workflows"
NOW = datetime(2026, 1, 17, 12, 5, tzinfo=UTC)
START = "2026-01-17T12:00:00Z"


def a_step(name: str, needs: str = "", phase: str = "waiting", **changes: Any) -> Any:
    began = phase not in ("waiting", "cancelled") and changes.get("verdict") is None
    return {
        "index": 0,
        "name": name,
        "needs": needs.split(),
        "when": "succeeded",
        "phase": phase,
        "verdict": None,
        "reason": None,
        "job_id": "019a8c3f-2b41-7000-8000-000000000001" if began else None,
        "provider": "aws" if began else None,
        "region": "us-east-1" if began else None,
        "started_at": START if began else None,
        "finished_at": "2026-01-17T12:03:12Z" if phase in ("succeeded", "failed") else None,
        "cost_usd": 0.0421 if began else 0.0,
        **changes,
    }


def a_workflow(*steps: Any, **changes: Any) -> Any:
    return {
        "id": "019a8c3f-2b41-7000-8000-00000000000f",
        "name": "nightly",
        "status": "running",
        "reason": None,
        "started_at": START,
        "finished_at": None,
        "cost_usd": 0.0842,
        "steps": list(steps),
        **changes,
    }


RUNNING = a_workflow(
    a_step("preprocess", phase="succeeded", verdict="reused", reason="as in job 019a8c3f"),
    a_step("train-small", "preprocess", "succeeded", provider="local", region="local"),
    a_step("train-large", "preprocess", "running"),
    a_step("compare", "train-small train-large"),
    a_step("report", "compare preprocess"),
    a_step("alarm", "compare", when="failed"),
)
FAILED = a_workflow(
    a_step("fetch", phase="succeeded"),
    a_step("train", "fetch", "failed", reason="train: rank 0 exited with code 1"),
    a_step("evaluate", "train", "cancelled", verdict="skipped", reason="train failed"),
    a_step("tell", "evaluate", "succeeded", when="failed"),
    status="failed",
    reason="train: rank 0 exited with code 1",
    finished_at="2026-01-17T12:04:00Z",
)
MANY = a_workflow(
    a_step("list", phase="succeeded"),
    *(a_step(f"shard-{number:02}", "list", "running") for number in range(12)),
    a_step("merge", " ".join(f"shard-{number:02}" for number in range(12))),
)
FILE = load(
    """\
job:
  code: .
  steps:
    - {name: preprocess, command: make data, constraints: {providers: [local]}}
    - name: train
      needs: preprocess
      command: make
      resources: {gpus: 8, gpu_type: H100}
    - {name: score, needs: [train, preprocess], command: make score, for_each: preprocess/files.json}
    - {name: clean-up, needs: [score], when: ended, command: make clean}
"""
).spec
CHOSEN = {
    "provider": "aws",
    "zone": "us-east-1a",
    "region": "us-east-1",
    "instance_type": "g4dn.xlarge",
    "count": 1,
    "gpus": 1,
    "gpu": "T4",
    "estimated_hours": 2.05,
    "estimated_cost_usd": 1.08,
    "is_enabled": True,
    "why": "cheapest",
}
OTHER = {**CHOSEN, "is_enabled": False, "estimated_cost_usd": 40.0, "instance_type": "p4d.24xlarge", "gpus": 8}
PLAN: Any = {
    "chosen": None,
    "alternatives": [],
    "rejections": [],
    "steps": [
        {"name": "preprocess", "chosen": CHOSEN, "runnable": CHOSEN},
        {"name": "train", "chosen": OTHER, "runnable": None},
    ],
    "warnings": ["the deadline is near"],
}
HOPELESS: Any = {**PLAN, "steps": [PLAN["steps"][0], {"name": "train", "chosen": None, "reason": "no offer fits"}]}

TEXTS = {
    "running-80": lambda: workflow_page(RUNNING, NOW, width=80, is_fine=True),
    "running-140": lambda: workflow_page(RUNNING, NOW, width=140, is_fine=True),
    "running-60": lambda: workflow_page(RUNNING, NOW, width=60, is_fine=True),
    "running-ascii": lambda: workflow_page(RUNNING, NOW, width=80, is_fine=False),
    "failed-80": lambda: workflow_page(FAILED, NOW, width=80, is_fine=True),
    "many-80": lambda: workflow_page(MANY, NOW, width=80, is_fine=True),
    "many-piped": lambda: workflow_page(MANY, NOW, width=None, is_fine=True),
    "file-80": lambda: planned_page(FILE, width=80, is_fine=True),
    "file-20": lambda: planned_page(FILE, width=20, is_fine=True),
    "steps-80": lambda: step_table(FAILED["steps"], NOW, width=80),
    "plan-80": lambda: plan_lines(PLAN, width=80),
    "plan-hopeless": lambda: plan_lines(HOPELESS, width=80, is_for_submit=True),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_workflow_is_drawn_as_it_was_agreed(name: str) -> None:
    text = "\n".join(TEXTS[name]()) + "\n"
    path = HERE / f"{name}.txt"
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    width = int(name.rpartition("-")[2]) if name[-1].isdigit() else None
    assert width is None or width == 20 or all(len(line) <= width for line in text.splitlines())


def test_every_file_belongs_to_a_text() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(TEXTS)
