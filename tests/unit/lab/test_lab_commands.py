"""`crucible lab` without a Lab: what it teaches, what it refuses, and with which exit code."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from crucible.cli.run import run
from crucible.lab import commands, options, views
from crucible.lab.commands import lab_command
from crucible.lab.running import Running

RUNNING = Running(
    url="http://127.0.0.1:40000",
    pid=4242,
    version="0.1.0",
    account="123456789012",
    regions=("us-east-1", "us-west-2"),
    access_key="AKIALABAAAAAAAAAAAAA",
    secret_key="the secret",
    token="the token",
)
MACHINE = {
    "id": "i-0123456789abcdef0",
    "type": "p6-b300.48xlarge",
    "market": "spot",
    "zone": "us-west-2-lax-1a",
    "state": "running",
    "launched_at": 1_800_000_000,
    "ended_at": None,
    "end": None,
    "taken_at": 1_800_000_900.0,
}
STATUS: dict[str, Any] = {
    "url": RUNNING.url,
    "pid": 4242,
    "data_dir": "/home/somebody/.crucible/lab",
    "now": 1_800_000_100.0,
    "started_at": 1_799_999_000.0,
    "speed": 60.0,
    "regions": ["us-east-1", "us-west-2"],
    "enclosure": "plain processes",
    "prices": "made up",
    "counts": {"pending": 0, "running": 1, "shutting-down": 2, "terminated": 7},
    "faults": 1,
    "microusd": 1_234_567,
    "machines": [MACHINE],
}


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRUCIBLE_LAB_HOME", str(tmp_path / "lab"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "lab"


@pytest.mark.parametrize("name", [*lab_command.commands, ""])
def test_every_command_teaches_in_eighty_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", *([name] if name else []), "--help"]) == 0
    said = capsys.readouterr().out
    assert f"crucible lab {name}".strip() in said.split("Examples:")[1]
    assert [line for line in said.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    "argv",
    [["env", "aws"], ["events"], ["bill"], ["console", "i-1"], ["preempt", "i-1"], ["fail", "--list"]],
)
def test_without_a_lab_a_command_says_how_to_get_one(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", *argv]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "no Lab is running" in said.err
    assert "crucible lab up" in said.err
    assert run(["lab", *argv, "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().err)["error"] == "lab_not_running"


def test_status_and_down_without_a_lab_are_answers_not_errors(
    nowhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lab", "status", "-o", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"running": False, "data_dir": str(nowhere)}
    assert run(["lab", "down"]) == 0
    assert capsys.readouterr() == ("", "no Lab is running\n")
    assert run(["lab", "down", "-o", "json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out) == {"stopped": None}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["up", "--speed", "0"], "--speed"),
        (["up", "--port", "70000"], "--port"),
        (["up", "--boot-scale", "-1"], "--boot-scale"),
        (["up", "--scenario", "/nowhere.yaml"], "/nowhere.yaml"),
        (["env", "gcp"], "aws"),
        (["preempt"], "name machines"),
        (["preempt", "i-1", "--all"], "name machines"),
        (["preempt", "i-1", "--notice", "soon"], "no duration"),
        (["preempt", "i-1", "--notice", "-5s"], "negative"),
        (["fail"], "--kind"),
        (["fail", "--count", "3"], "--kind"),
        (["fail", "--list", "--clear"], "alone"),
        (["nonsense"], "nonsense"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_control", lambda data_dir: None)
    assert run(["lab", *argv]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "--help" in said


def test_a_stale_file_of_a_dead_lab_is_not_believed(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The process named there lives and is no Lab: it must not be given the token, or be stopped."""
    nowhere.mkdir()
    said = {name: getattr(RUNNING, name) for name in RUNNING.__slots__}
    (nowhere / "lab.json").write_text(json.dumps({**said, "pid": 1}))
    assert run(["lab", "bill"]) == 1
    assert "no Lab is running" in capsys.readouterr().err
    assert run(["lab", "down"]) == 0


def test_the_environment_is_what_clients_read() -> None:
    assert RUNNING.environment() == {
        "AWS_ENDPOINT_URL": RUNNING.url,
        "AWS_ACCESS_KEY_ID": RUNNING.access_key,
        "AWS_SECRET_ACCESS_KEY": "the secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CRUCIBLE_PROVIDERS": "local,aws",
        "CRUCIBLE_AWS_REGIONS": "us-east-1,us-west-2",
        "CRUCIBLE_AWS_PURCHASES_PER_S": "50",
        "CRUCIBLE_LAB_HOME": RUNNING.home,
    }
    assert "the secret" not in repr(RUNNING)
    assert "the token" not in repr(RUNNING)


def test_nothing_that_is_shown_passes_eighty_columns_or_loses_an_id() -> None:
    event = {"number": 12_345, "at": 1_800_000_000.5, "what": "user-data-ended", "subject": MACHINE["id"]}
    line = {"resource": MACHINE["id"], "kind": "machine", "from_at": 1_800_000_000, "to_at": 1_800_090_000}
    bill = {"microusd": 9_876_543_210, "until": 1_800_090_000, "account": "1"}
    rule = {"id": "f-1", "kind": "late-visibility", "probability": 0.5, "count": 3, "seconds": [0.0, 60.0]}
    rule |= {"until": 1_800_000_000, "operation": "RunInstances", "asked": 9, "struck": 4}
    shown = [
        *views.up(RUNNING, True),
        *views.status(STATUS, 80),
        *views.events([{**event, "note": "with exit code 3 " * 9}], 80),
        *views.bill(
            {**bill, "lines": [{**line, "microusd": 9_876_543_210, "note": "taken within its first hour"}]}, 80
        ),
        *views.rules([rule], 80),
        *views.taken([MACHINE]),
    ]
    assert [text for text in shown if len(text) > 80] == []
    assert sum(str(MACHINE["id"]) in text for text in shown) == 4
    assert any("$9,876.543210" in text for text in shown)


def test_names_from_machines_do_not_command_the_terminal() -> None:
    event = {"number": 1, "at": 0.0, "what": "launched", "subject": "i-1", "note": "\x1b[2Jgone"}
    assert "\x1b" not in views.event_line(event)
    assert views.console("one\ttwo\n\x1b[2Jthree") == ["one     two", "\\x1b[2Jthree"]
    assert "\x1b" not in "".join(views.events([event], 80))


def test_options_reach_the_process_in_the_background(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Through the same reader of options: nothing that `up` takes may be unknown to `run`."""
    given = {"speed": 60.0, "seed": 7, "hazard": 0.0, "scenario": tmp_path / "a.yaml", "data": None, "port": 0}
    words = options.words(given)
    assert "--data" not in words
    (tmp_path / "a.yaml").write_text("")
    with commands.run_command.make_context("run", words) as context:
        assert {name: context.params[name] for name in given} == given
    known = {option.name for option in commands.run_command.params if isinstance(option, click.Option)}
    asked = {option.name for option in lab_command.commands["up"].params if isinstance(option, click.Option)}
    assert asked - known == {"output", "quiet"}
