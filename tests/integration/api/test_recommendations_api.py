"""POST /v1/recommendations over the wire (C9): shapes, limits, and that nothing of the code is ever run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crucible.api.app import ApiSettings
from crucible.catalog import catalog
from crucible.catalog.benchmarks import architectures, benchmarks
from crucible.core.perf import make_book
from crucible.engine.planner import Knowledge
from crucible.wire import recommendations as wire

from .conftest import Reply, Server

PATH = "/v1/recommendations"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    shipped = catalog.load()
    book = make_book(benchmarks(), shipped.gpus.values(), architectures().values())
    started = Server(
        folder=tmp_path_factory.mktemp("server"),
        settings=ApiSettings(version="0"),
        knowledge=Knowledge(shipped.table, book),
    )
    started.start()
    yield started
    started.stop()


def ask(server: Server, body: Any, status: int = 200) -> Any:
    reply: Reply = server.call(
        "POST", PATH, body=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    assert reply.status == status, reply.text
    return reply.json


def test_the_answer_is_what_the_description_says(server: Server) -> None:
    code = "import timm\nmodel = timm.create_model('resnet50').cuda()\nloss.backward()\n"
    said = ask(server, {"code": code, "preferences": {"duration_hours": 1.5, "optimize_for": "cost"}})
    wire.Recommendations.model_validate(said)
    assert said["characteristics"]["parameters"] == pytest.approx(25.6e6)
    best = said["recommendations"][0]
    assert set(best) >= {"backend", "score", "costEstimate", "availability", "pros", "cons"}
    assert set(best["costEstimate"]) == {"hourly", "total", "confidence"}
    assert best["availability"]["status"] in ("available", "queued", "limited")
    scores = [one["score"] for one in said["recommendations"]]
    assert scores == sorted(scores, reverse=True)


def test_files_are_read_from_the_one_that_is_named(server: Server) -> None:
    files = [
        {"name": "a.py", "text": "import b\nbatch_size = b.SIZE\n"},
        {"name": "b.py", "text": "import torch\nSIZE = 32\n"},
        {"name": "train.py", "text": "batch_size = 1\n"},
    ]
    said = ask(server, {"files": files, "entrypoint": "a.py"})
    assert said["files"] == ["a.py", "b.py"]
    batch = next(one for one in said["findings"] if one["what"] == "batch_size" and one["counts"])
    assert (batch["value"], batch["file"], batch["line"]) == (32, "b.py", 2)
    assert 'entrypoint: "a.py"' in said["spec_yaml"]


def test_code_is_read_and_never_run(server: Server, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    code = f"import pathlib\npathlib.Path({str(trap)!r}).write_text('x')\nimport sys; sys.exit(3)\n"
    ask(server, {"code": code})
    assert not trap.exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"code": "x", "files": []},
        {"code": 7},
        {"files": [{"name": "a\nb.py", "text": ""}]},
        {"files": [{"name": "", "text": ""}]},
        {"code": "x", "preferences": {"duration_hours": 0}},
        {"code": "x", "preferences": {"optimize_for": "fun"}},
        {"code": "x", "preferences": {"gpus": -1}},
        {"code": "x", "preferences": {"allowed_backends": ["no such name!"]}},
        {"code": "x", "wish": 1},
    ],
)
def test_a_wrong_question_is_refused(server: Server, body: Any) -> None:
    said = ask(server, body, 422)
    assert said["message"]


def test_too_many_files_or_too_much_text_is_refused_with_the_limit(server: Server) -> None:
    many = [{"name": f"f{i}.py", "text": ""} for i in range(501)]
    assert "500" in ask(server, {"files": many}, 422)["message"]
    two = [{"name": f"{name}.py", "text": "#" * 3_000_000} for name in "ab"]
    said = ask(server, {"files": two}, 413)
    assert "5,000,000" in said["message"] and said["error"] == "too_large"
    assert ask(server, {"code": "x" * (13 << 20)}, 413)["error"] == "too_large"


def test_five_megabytes_are_read_while_others_are_served(server: Server) -> None:
    said = ask(server, {"code": "import torch\nbatch_size = 4\nDATA = [\n" + "    [0.5, 0.25],\n" * 290_000 + "]\n"})
    assert said["characteristics"]["batch_size"] == 4
    assert "passed over as data" in said["notes"][0]
    assert server.call("GET", "/v1/me").status == 200


def test_nothing_to_read_is_an_answer(server: Server) -> None:
    said = ask(server, {"files": [{"name": "notes.md", "text": "# hello"}]})
    assert said["entrypoint"] is None
    assert said["notes"] == ["there is no Python file or notebook to read"]
