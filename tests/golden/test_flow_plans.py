"""Every workflow in tests/golden/flows has its plan beside it, as `crucible plan` prints it, with the offers of the
shipped catalog at one moment. CRUCIBLE_REWRITE_GOLDEN=1 writes the plans anew: read the diff as a user would."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.views.plans import plan_lines
from crucible.core import plan
from crucible.core.check_flow import check_flow
from crucible.core.flow.plan import propose, study
from crucible.core.flow.proposal import FlowPlan
from crucible.core.flow.steps import flow_of
from crucible.core.plan import Question
from crucible.engine.answers import essence
from crucible.engine.flow_view import workflow_view
from crucible.engine.plan_view import plan_view
from crucible.model.spec import JobSpec
from crucible.spec import load
from golden.test_plans import NOW, WIDTH, book, shipped

HERE = Path(__file__).parent / "flows"
ENABLED = frozenset({"aws", "gcp", "azure"})


def planned(spec: JobSpec) -> FlowPlan:
    table = shipped().table
    flow = flow_of(spec, [essence(step.job) for step in spec.steps], {}, now=NOW, enabled=ENABLED)
    made = propose(study(flow, table, book()))
    check_flow(made, flow, table)
    return made


def view_of(spec: JobSpec) -> Any:
    made = planned(spec)
    questions = [Question(spec=step.job, now=NOW, enabled=ENABLED) for step in spec.steps]
    views = [plan_view(plan.propose(question, shipped().table, book()), NOW, 0.0) for question in questions]
    # Through JSON, as a client sees it.
    return json.loads(json.dumps(workflow_view(spec.steps, views, made, made, NOW), default=str))


def report(text: str) -> str:
    view = view_of(load(text).spec)
    lines = [line.rstrip() for line in plan_lines(view, width=WIDTH)]
    times = [f"{one['name']}: {one.get('begins_hours')} h to {one.get('ends_hours')} h" for one in view["steps"]]
    together = json.dumps(view["total"], indent=1)
    return "\n".join([text.rstrip(), "", "--- plan", *lines, "", "--- times", *times, "", "--- total", together]) + "\n"


@pytest.mark.parametrize("path", sorted(HERE.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_plan_of_a_workflow_is_the_one_that_was_read_and_found_good(path: Path) -> None:
    text = report(path.read_text(encoding="utf-8"))
    golden = path.with_suffix(".txt")
    if os.environ.get("CRUCIBLE_REWRITE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_every_plan_belongs_to_a_workflow() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == {path.stem for path in HERE.glob("*.yaml")}
