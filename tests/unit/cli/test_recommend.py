"""`crucible recommend` (C9): what is sent, what is printed, and the job file it writes."""

import json
from pathlib import Path
from typing import Any

import pytest

from doubles.http_server import Request

FINDING = {
    "what": "batch_size",
    "value": 64,
    "file": "train.py",
    "line": 2,
    "evidence": "batch_size = 64",
    "confidence": "medium",
    "why": "the variable batch_size",
    "counts": True,
}
BACKEND = {
    "backend": "ec2_spot",
    "score": 0.91,
    "costEstimate": {"hourly": 0.55, "total": 1.65, "confidence": "low"},
    "availability": {"status": "limited", "waitTime": 180.0, "basis": "spot capacity comes and goes"},
    "pros": ["the cheapest of all"],
    "cons": ["may be taken away at any time"],
    "enabled": False,
    "hours": 3.0,
    "merits": {},
    "offer": {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "g6.xlarge",
        "gpu": "L4",
        "gpus": 1,
        "count": 1,
        "market": "spot",
        "price_as_of": "2026-11-01T00:00:00Z",
        "price_source": "test",
    },
}
ANSWER = {
    "entrypoint": "train.py",
    "files": ["train.py"],
    "findings": [FINDING, FINDING | {"value": 1000, "line": 3, "confidence": "low", "counts": False}],
    "notes": ["train.py:9: not Python 3: invalid syntax"],
    "characteristics": {"duration_hours": 3.0},
    "assumptions": ["1 GPU: the code does not say how many"],
    "memory": [],
    "hours_basis": "",
    "recommendations": [BACKEND],
    "excluded": [{"backend": "modal", "reason": "T4:1 would cost more than the budget"}],
    "spec_yaml": 'job:\n  name: "train"\n  entrypoint: "train.py"  # train.py:1\n',
}


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text("import torch\nbatch_size = 64\n")
    return path


def test_findings_and_backends_are_printed_with_their_reasons(crucible: Any, serve: Any, script: Path) -> None:
    serve({"POST /v1/recommendations": ANSWER})
    ran = crucible("recommend", "train.py")
    assert ran.code == 0
    assert "batch size  64     medium  train.py:2  batch_size = 64" in ran.out
    assert "1000" not in ran.out
    assert "note: train.py:9: not Python 3" in ran.out
    assert "assumed: 1 GPU" in ran.out
    assert "1  ec2_spot   0.91  $0.55      3  $1.65  low   limited  1 × g6.xlarge in us-east-1, 1 L4" in ran.out
    assert "  + the cheapest of all\n  - may be taken away at any time" in ran.out
    assert "not modal: T4:1 would cost more than the budget" in ran.out
    assert "crucible plan job.yaml" in ran.out


def test_wide_shows_what_does_not_count_too(crucible: Any, serve: Any, script: Path) -> None:
    serve({"POST /v1/recommendations": ANSWER})
    assert "1000" in crucible("recommend", "train.py", "-o", "wide").out


def test_only_what_was_said_is_sent(crucible: Any, serve: Any, script: Path) -> None:
    server = serve({"POST /v1/recommendations": ANSWER})
    crucible("recommend", "train.py")
    crucible(
        *("recommend", "train.py", "--hours", "3", "--optimize-for", "cost", "--max-cost", "10", "--private"),
        *("--interruptible", "--gpus", "2", "--gpu-memory", "24", "--backend", "modal", "--backend", "ec2_spot"),
    )
    first, second = (sent(request) for request in server.requests)
    assert first["preferences"] == {}
    assert first["entrypoint"] == "train.py"
    assert first["files"] == [{"name": "train.py", "text": "import torch\nbatch_size = 64\n"}]
    assert second["preferences"] == {
        "duration_hours": 3.0,
        "optimize_for": "cost",
        "max_cost_usd": 10.0,
        "data_privacy": True,
        "interruptible": True,
        "gpus": 2,
        "gpu_memory_gb": 24.0,
        "allowed_backends": ["modal", "ec2_spot"],
    }


def sent(request: Request) -> Any:
    return json.loads(request.body)


def test_a_job_file_is_written_once_and_can_be_validated(crucible: Any, serve: Any, script: Path) -> None:
    serve({"POST /v1/recommendations": ANSWER})
    assert crucible("recommend", "train.py", "--write", "job.yaml").code == 0
    assert Path("job.yaml").read_text() == ANSWER["spec_yaml"]
    assert crucible("validate", "job.yaml").code == 0
    again = crucible("recommend", "train.py", "--write", "job.yaml")
    assert again.code == 2 and "--force" in again.err
    assert crucible("recommend", "train.py", "--write", "job.yaml", "--force").code == 0


def test_the_answer_for_programs_is_what_the_server_said(crucible: Any, serve: Any, script: Path) -> None:
    serve({"POST /v1/recommendations": ANSWER})
    assert json.loads(crucible("recommend", "train.py", "-o", "json").out) == ANSWER


def test_nothing_that_suits_is_exit_code_3(crucible: Any, serve: Any, script: Path) -> None:
    serve({"POST /v1/recommendations": ANSWER | {"recommendations": [], "findings": []}})
    ran = crucible("recommend", "train.py")
    assert ran.code == 3
    assert "no backend suits it" in ran.out and "nothing was found" in ran.out


def test_a_script_that_is_not_there_is_said_before_anything_is_asked(crucible: Any, serve: Any, script: Path) -> None:
    server = serve({"POST /v1/recommendations": ANSWER})
    ran = crucible("recommend", "no.py")
    assert ran.code == 2 and "no.py cannot be read" in ran.err
    assert server.requests == []
