"""What is run for a person beside a rank, and inside what."""

from typing import Any

import pytest

from crucible.agent.visit import command_of

LAUNCH: dict[str, Any] = {"attempt_id": "attempt-1", "rank": 3, "container": None}
TTY = {"rows": 24, "columns": 80, "term": "xterm"}


def test_a_command_is_run_as_it_was_given() -> None:
    assert command_of(LAUNCH, "c1", {"argv": ["ls", "-l; rm"], "tty": None}) == ["ls", "-l; rm"]


def test_without_a_command_it_is_a_shell() -> None:
    assert command_of(LAUNCH, "c1", {"argv": [], "tty": TTY})[:2] == ["/bin/sh", "-c"]


@pytest.mark.parametrize("runtime", ["podman", "docker"])
def test_a_rank_in_a_container_is_visited_there(runtime: str) -> None:
    launch = {**LAUNCH, "container": {"image": "torch", "runtime": runtime}}
    plain = command_of(launch, "c1", {"argv": ["ls"], "tty": None})
    marked = ["--interactive", "--env", "CRUCIBLE_CHANNEL_ID=c1"]
    assert plain == [runtime, "exec", *marked, "crucible-attempt-1-3", "ls"]
    with_terminal = command_of(launch, "c1", {"argv": ["ls"], "tty": TTY})
    assert with_terminal == [runtime, "exec", *marked, "--tty", "--env", "TERM=xterm", "crucible-attempt-1-3", "ls"]


def test_a_runtime_that_nobody_named_is_the_one_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    launch = {**LAUNCH, "container": {"image": "torch", "runtime": "auto"}}
    assert command_of(launch, "c1", {"argv": ["ls"]})[0] == "docker"
    (tmp_path / "podman").write_text("#!/bin/sh\n")
    (tmp_path / "podman").chmod(0o755)
    assert command_of(launch, "c1", {"argv": ["ls"]})[0] == "podman"
