"""At a terminal: colour, short ids, questions, live views, Ctrl-C. Each command is a process of its own."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from doubles.api_server import brief, job
from doubles.terminal import Terminal

ID = "019a8c3f-2b41-7000-8000-000000000001"
CTRL_C = "\x03"


def environment() -> dict[str, str]:
    return {name: os.environ[name] for name in ("PATH", "HOME", "CRUCIBLE_HOME", "CRUCIBLE_SERVER", "CRUCIBLE_TOKEN")}


def test_a_terminal_gets_short_ids_and_colour(serve: Any) -> None:
    serve({"GET /v1/jobs": {"items": [brief()], "next_cursor": None}})
    terminal = Terminal(["ps"], environment())
    assert terminal.end() == 0
    assert f"{ID[:13]}  resnet50  \x1b[34mrunning\x1b[0m" in terminal.shown
    assert ID not in terminal.shown


@pytest.mark.parametrize("plain", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(serve: Any, plain: dict[str, str]) -> None:
    serve({"GET /v1/jobs": {"items": [brief()], "next_cursor": None}})
    terminal = Terminal(["ps"], environment() | plain)
    assert terminal.end() == 0
    assert "\x1b[" not in terminal.shown


@pytest.mark.parametrize("columns", [80, 140])
def test_a_table_keeps_to_the_width_of_the_terminal(serve: Any, columns: int) -> None:
    serve({"GET /v1/jobs": {"items": [brief(name="n" * 300, reason="r" * 300)], "next_cursor": None}})
    terminal = Terminal(["ps"], environment() | {"NO_COLOR": "1"}, columns=columns)
    assert terminal.end() == 0
    assert [len(line) for line in terminal.shown.splitlines()][1] == columns


@pytest.mark.parametrize(
    ("answer", "code", "submitted"), [("y\r", 0, 1), ("\r", 0, 1), ("n\r", 1, 0), (CTRL_C, 130, 0)]
)
def test_submit_asks_a_person_and_takes_no_for_an_answer(
    serve: Any, tmp_path: Path, answer: str, code: int, submitted: int
) -> None:
    chosen = {"provider": "local", "region": "here", "instance_type": "m", "gpus": 0, "count": 1, "why": "free"}
    server = serve(
        {
            "POST /v1/plan": {"chosen": chosen, "alternatives": [], "rejections": [], "warnings": []},
            "POST /v1/jobs": (201, {"id": ID, "status": "pending"}),
        }
    )
    (tmp_path / "job.yaml").write_text("job:\n  command: ['true']\n")
    terminal = Terminal(["submit", "-d", str(tmp_path / "job.yaml")], environment())
    terminal.until("Submit? [Y/n]")
    assert "local/here" in terminal.shown
    terminal.until_idle()
    terminal.type(answer)
    assert terminal.end() == code, terminal.shown
    assert [request.path for request in server.requests].count("/v1/jobs") == submitted
    assert "Traceback" not in terminal.shown


def test_watching_the_list_shows_what_changes_until_ctrl_c(serve: Any) -> None:
    states = iter(["pending"])
    serve({"GET /v1/jobs": lambda _: {"items": [brief(status=next(states, "running"))], "next_cursor": None}})
    terminal = Terminal(["ps", "-w"], environment() | {"NO_COLOR": "1"})
    terminal.until("resnet50  pending")
    terminal.until("resnet50  running")
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.shown


def test_ctrl_c_while_waiting_says_how_to_come_back(serve: Any) -> None:
    asked = threading.Event()

    def running(request: Any) -> dict[str, Any]:
        asked.set()
        return job()

    serve({f"GET /v1/jobs/{ID}": running})
    terminal = Terminal(["wait", ID], environment())
    assert asked.wait(30)
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    assert f"crucible logs -f {ID}" in terminal.shown


def test_metrics_are_drawn_until_the_job_ends(serve: Any) -> None:
    states = iter(["running", "running"])
    point = {"attempt": 0, "rank": 0, "n": 0, "t": 0, "step": 5, "values": {"loss": 0.25}}

    def metrics(request: Any) -> dict[str, Any]:
        return {"items": [point] if request.query["offset"] == "0" else [], "next_offset": 1}

    serve(
        {f"GET /v1/jobs/{ID}": lambda _: job(status=next(states, "completed")), f"GET /v1/jobs/{ID}/metrics": metrics}
    )
    terminal = Terminal(["metrics", "-w", ID], environment() | {"NO_COLOR": "1"})
    assert terminal.end() == 0
    assert "loss" in terminal.shown and "0.25" in terminal.shown


def test_a_token_is_asked_for_without_showing_it(serve: Any) -> None:
    me = {"user_id": "ada", "name": "ada", "role": "member", "token_id": "t"}
    server = serve({"GET /v1/me": me})
    terminal = Terminal(["login", server.url], environment())
    terminal.until("Token:")
    terminal.type("cru_typed\r")
    assert terminal.end() == 0
    assert "cru_typed" not in terminal.shown
    saved = Path(os.environ["HOME"]) / ".config" / "crucible" / "config.json"
    assert json.loads(saved.read_text()) == {"url": server.url, "token": "cru_typed"}
    assert server.requests[0].headers["authorization"] == "Bearer cru_typed"
