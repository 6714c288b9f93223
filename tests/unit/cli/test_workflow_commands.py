"""Commands about workflows against a server whose answers we wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.dag import FINE, PLAIN, Line, draw
from doubles.api_server import brief, job
from doubles.http_server import Request

ID = "019a8c3f-2b41-7000-8000-000000000001"
CHILD = "019a8c3f-2b42-7000-8000-000000000002"
LATER = "019a8c3f-2b42-7000-8000-000000000003"


def a_step(index: int, name: str, needs: list[str], **changes: Any) -> dict[str, Any]:
    return {
        "index": index, "name": name, "needs": needs, "when": "succeeded", "phase": "succeeded", "verdict": None,
        "reason": None, "job_id": CHILD, "provider": "local", "region": "local", "cost_usd": 0.5,
        "started_at": f"2026-01-17T10:0{index}:00Z", "finished_at": "2026-01-17T10:09:00Z", **changes,
    }  # fmt: skip


def workflow(**changes: Any) -> dict[str, Any]:
    steps = [
        a_step(0, "prepare", [], phase="succeeded", verdict="reused", started_at=None),
        a_step(2, "evaluate", ["train"], job_id=LATER),
        a_step(1, "train", ["prepare"]),
        a_step(3, "tell", ["evaluate"], job_id=None, started_at=None, phase="cancelled", verdict="skipped"),
    ]
    return {
        "id": ID, "name": "nightly", "status": "completed", "reason": None, "started_at": "2026-01-17T10:00:00Z",
        "finished_at": "2026-01-17T10:09:00Z", "cost_usd": 1.0, "steps": steps, **changes,
    }  # fmt: skip


def served(**changes: Any) -> dict[str, Any]:
    def lines(text: str) -> bytes:
        record = {"attempt": 0, "rank": 0, "n": 0, "t": 0, "s": "out", "x": text}
        return json.dumps(record).encode() + b"\n"

    return {
        f"GET /v1/jobs/{ID}": job(id=ID, steps=4, status="completed"),
        f"GET /v1/jobs/{CHILD}": job(id=CHILD, status="completed"),
        f"GET /v1/jobs/{ID}/workflow": workflow(**changes),
        f"GET /v1/jobs/{CHILD}/logs": lambda _: lines("trained"),
        f"GET /v1/jobs/{LATER}/logs": lambda _: lines("evaluated"),
        f"GET /v1/jobs/{ID}/attempts": {"items": []},
        f"GET /v1/jobs/{CHILD}/attempts": {"items": []},
        f"GET /v1/jobs/{LATER}/attempts": {"items": []},
        f"GET /v1/jobs/{ID}/events": {"items": []},
    }


def test_a_workflow_is_drawn_for_people_and_told_in_full_to_programs(crucible: Any, serve: Any) -> None:
    serve(served())
    shown = crucible("workflow", "show", ID)
    assert (shown.code, shown.err) == (0, "")
    assert "│ ✓ train" in shown.out and "│ ↺ prepare" in shown.out and "│ – tell" in shown.out and "▼" in shown.out
    assert json.loads(crucible("workflow", "show", ID, "-o", "json").out) == workflow()


def test_a_file_is_drawn_without_a_server(crucible: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.yaml").write_text("job:\n  steps: [{name: a, command: x}, {name: b, needs: a, command: x}]\n")
    drawn = crucible("workflow", "show", "w.yaml")
    assert drawn.code == 0 and "│ a    │" in drawn.out
    told = json.loads(crucible("workflow", "show", "w.yaml", "-o", "json").out)
    assert told["steps"][1] == {"name": "b", "needs": ["a"], "when": "succeeded"}
    Path("plain.yaml").write_text("job: {command: x}\n")
    refused = crucible("workflow", "show", "plain.yaml")
    assert refused.code == 2 and "has no steps" in refused.err


def test_a_circle_in_a_file_is_told_at_its_line(crucible: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "job:\n  steps:\n  - {name: a, command: x, needs: b}\n  - {name: b, needs: a, command: x}\n"
    Path("w.yaml").write_text(text)
    refused = crucible("workflow", "show", "w.yaml")
    assert refused.code == 2 and "w.yaml:3:34: job.steps[0].needs: these steps need each other" in refused.err


def test_logs_of_a_workflow_are_those_of_its_steps_in_the_order_they_began(crucible: Any, serve: Any) -> None:
    serve(served())
    ran = crucible("logs", ID)
    assert ran.code == 0 and ran.out == "trained\nevaluated\n"
    assert ran.err.splitlines() == [f"--- train ({CHILD}) ---", f"--- evaluate ({LATER}) ---"]
    assert crucible("logs", ID, "--step", "train").out == "trained\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--step", "nobody"], "there is no step 'nobody'; the steps are prepare, evaluate, train, tell"),
        (["--step", "tell"], "the step tell has not begun: it is skipped"),
        (["--tail", "3"], "say which step's log is meant"),
    ],
)
def test_a_log_that_nobody_wrote_is_told(crucible: Any, serve: Any, options: list[str], said: str) -> None:
    serve(served())
    ran = crucible("logs", ID, *options)
    assert ran.code in (2, 5) and said in ran.err and ran.out == ""


def test_describe_lists_the_steps(crucible: Any, serve: Any) -> None:
    serve(served())
    lines = crucible("describe", ID).out.splitlines()
    assert any(line.split()[:3] == ["train", "succeeded", "prepare"] for line in lines)
    assert json.loads(crucible("describe", ID, "-o", "json").out)["workflow"] == workflow()["steps"]


def test_a_retry_may_begin_with_a_step(crucible: Any, serve: Any) -> None:
    asked: list[Any] = []

    def answer(request: Request) -> tuple[int, dict[str, Any]]:
        asked.append(json.loads(request.body) if request.body else None)
        return 201, {"id": CHILD, "status": "pending"}

    serve({**served(), f"POST /v1/jobs/{ID}/retry": answer})
    assert crucible("retry", ID, "--from", "train", "-q").out == f"{CHILD}\n"
    assert crucible("retry", ID, "-q").code == 0
    assert asked == [{"from_step": "train"}, None]


def test_jobs_of_steps_are_listed_when_asked_for(crucible: Any, serve: Any) -> None:
    asked: list[Any] = []

    def answer(request: Request) -> dict[str, Any]:
        asked.append(request.query.get("steps"))
        return {"items": [brief()], "next_cursor": None}

    serve({"GET /v1/jobs": answer})
    crucible("ps")
    crucible("ps", "--all-jobs")
    assert [str(one).lower() for one in asked] == ["none", "true"]


def boxes(needs: dict[str, list[str]]) -> dict[str, list[Line]]:
    return {name: [Line(name)] for name in needs}


def test_a_line_that_only_crosses_another_is_not_taken_for_a_branch() -> None:
    needs = {"a": [], "b": ["a"], "c": ["a"], "d": ["a"], "e": ["b", "d"], "f": ["c"]}
    drawn = draw(boxes(needs), needs, 80, FINE)
    assert drawn is not None and not any("┼" in line for line in drawn)
    assert sum(line.count("▼") for line in drawn) == 5


@pytest.mark.parametrize("glyphs", [FINE, PLAIN], ids=["fine", "plain"])
def test_a_drawing_fits_or_is_not_made(glyphs: Any) -> None:
    needs: dict[str, list[str]] = {f"step-{i}": [] for i in range(8)}
    needs["last"] = list(needs)
    assert draw(boxes(needs), needs, 80, glyphs) is None
    wide = draw(boxes(needs), needs, None, glyphs)
    assert wide is not None and max(map(len, wide)) > 80
    assert all(any(name in line for line in wide) for name in needs)
