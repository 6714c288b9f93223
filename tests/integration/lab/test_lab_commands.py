"""`crucible lab` against a Lab that runs, as a person types it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crucible.cli.run import run
from doubles.terminal import Terminal
from lab_process import RunningLab

from .conftest import amazon, eventually

HELLO = "#!/bin/sh\necho hello\nexit 4\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with RunningLab(tmp_path_factory.mktemp("lab"), seed=3) as running:
        yield running


@pytest.fixture(autouse=True)
def at_home(lab: RunningLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUCIBLE_LAB_HOME", str(lab.home))


@pytest.fixture(scope="module")
def machine(lab: RunningLab) -> str:
    """A spot machine that has said hello."""
    with amazon(lab) as ec2:
        image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
        said = ec2.run_instances(
            ImageId=image,
            InstanceType="g4dn.xlarge",
            MinCount=1,
            MaxCount=1,
            UserData=HELLO,
            InstanceMarketOptions={"MarketType": "spot"},
        )
    found = str(said["Instances"][0]["InstanceId"])
    eventually(lambda: "hello" in lab.control.console(found), "its output")
    return found


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    """What the command says to programs."""
    assert run(["lab", *argv, "-o", "json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_up_again_says_that_it_runs(lab: RunningLab, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lab", "up"]) == 0
    assert f"already runs: {lab.url}" in capsys.readouterr().out
    assert printed(capsys, "up")["started"] is False


def test_env_is_read_by_a_shell_and_an_unmodified_client(lab: RunningLab, tmp_path: Path) -> None:
    tools = Path(sys.executable).parent
    script = (
        f'eval "$({tools}/crucible lab env aws)" && {tools}/aws sts get-caller-identity --query Account --output text'
    )
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    ran = subprocess.run(
        ["sh", "-c", script],
        env={**kept, "HOME": str(tmp_path), "CRUCIBLE_LAB_HOME": str(lab.home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.strip() == lab.running.account, ran.stderr


def test_status_console_events_and_bill_tell_of_the_machine(
    lab: RunningLab, machine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    eventually(lambda: lab.control.bill()["microusd"] > 0, "a second that costs something")
    status = printed(capsys, "status")
    assert (status["running"], [one["id"] for one in status["machines"]]) == (True, [machine])
    assert printed(capsys, "console", machine)["text"] == "hello\n"
    events = printed(capsys, "events", machine)["items"]
    assert events[-1]["note"] == "with exit code 4"
    assert printed(capsys, "events", "--after", str(events[-1]["number"]))["items"] == []
    assert printed(capsys, "bill")["microusd"] > 0
    for words in (["status"], ["events"], ["bill"]):
        assert run(["lab", *words]) == 0
        assert machine in capsys.readouterr().out


def test_rules_are_made_listed_and_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    rule = printed(capsys, "fail", "--kind", "throttle", "--operation", "Describe*", "--count", "2", "--for", "1h")
    assert printed(capsys, "fail", "--list")["items"][0]["id"] == rule["id"]
    assert printed(capsys, "fail", "--clear", rule["id"]) == {"cleared": 1}
    assert printed(capsys, "fail", "--clear") == {"cleared": 0}
    assert run(["lab", "fail", "--kind", "throtle"]) == 2
    assert "did you mean throttle?" in capsys.readouterr().err
    assert run(["lab", "fail", "--clear", "f-99"]) == 5


def test_a_machine_that_is_not_there_is_an_error_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["console", "i-none"], ["preempt", "i-none"]):
        assert run(["lab", *words]) == 5
        assert "crucible lab status" in capsys.readouterr().err


def test_on_a_terminal_of_eighty_columns_nothing_is_wrapped_and_ctrl_c_ends_following(
    lab: RunningLab, machine: str, tmp_path: Path
) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "CRUCIBLE_LAB_HOME": str(lab.home)}
    for words in (["status", "--all"], ["events"], ["bill"]):
        terminal = Terminal(["lab", *words], environ)
        assert terminal.end() == 0
        assert [line for line in terminal.shown.splitlines() if len(line) > 80] == []
        assert machine in terminal.shown
    following = Terminal(["lab", "events", "-f"], environ)
    following.until("with exit code 4")
    following.type("\x03")
    assert following.end() == 130


def test_a_machine_is_taken_and_its_end_is_told(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The last: it ends the machine that the others look at."""
    assert run(["lab", "preempt", machine, "--notice", "10m"]) == 0
    assert f"{machine} will be taken at" in capsys.readouterr().out
    assert run(["lab", "preempt", machine]) == 1, "twice is a conflict"
    assert run(["lab", "preempt", "--all", "--notice", "0s"]) == 0
    assert "no spot machine fits" in capsys.readouterr().err
