"""Starting up: what is imported when, and what happens to output nobody can take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crucible import __version__
from crucible.cli.root import ALIASES, COMMANDS, root
from crucible.cli.run import run, wants_json

# What a person waits for without needing it.
HEAVY = ("yaml", "http.client", "ssl", "importlib.metadata", "crucible.spec", "crucible.client.transport")


def started(*argv: str, code: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A fresh process that runs the entry point and then tells which modules it has loaded."""
    program = (
        f"import sys; sys.argv = ['crucible', *{list(argv)!r}]\n"
        "from crucible.cli.entry import main\n"
        "end = main()\n"
        f"{code or 'print(*sorted(sys.modules), file=sys.stderr)'}\n"
        "sys.exit(end)"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=60
    )


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_answered_before_click_is_loaded(flag: str) -> None:
    ran = started(flag)
    assert ran.stdout == f"crucible {__version__}\n"
    assert not {"click", "json", "typing", "dataclasses"} & set(ran.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_teaches_and_loads_nothing_heavy(name: str) -> None:
    ran = started(name, "--help")
    assert ran.returncode == 0, ran.stderr
    assert "Usage: crucible" in ran.stdout
    assert "Examples:\n" in ran.stdout
    assert f"crucible {name}" in ran.stdout.split("Examples:")[1]
    assert not set(HEAVY) & set(ran.stderr.split())


def test_the_list_of_commands_imports_none_of_them() -> None:
    ran = started("--help")
    assert all(name in ran.stdout for name in COMMANDS)
    loaded = ran.stderr.split()
    assert [name for name in loaded if name.startswith("crucible.cli.commands")] == []


def test_the_summary_in_the_list_is_the_first_line_of_the_help() -> None:
    with root.make_context("crucible", [], resilient_parsing=True) as context:
        for name, entry in COMMANDS.items():
            command = root.get_command(context, name)
            assert command is not None
            assert command.help is not None
            first = command.help.split("\n")[0].removesuffix(".")
            assert first.startswith(entry.summary) or entry.summary.startswith(first), name


def test_every_alias_names_a_command() -> None:
    assert set(ALIASES.values()) <= set(COMMANDS)
    assert not set(ALIASES) & set(COMMANDS)


def test_a_misspelt_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["submti"]) == 2
    assert (
        capsys.readouterr().err == "error: there is no command 'submti'; did you mean submit?\n  see crucible --help\n"
    )


def test_a_usage_error_as_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ps", "--nonsense", "-o", "json"]) == 2
    assert '"error": "usage"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("ps -o json", True),
        ("ps -ojson", True),
        ("ps --output=json", True),
        ("ps -o yaml", False),
        ("x -- -o json", False),
    ],
)
def test_programs_are_told_apart_by_the_raw_arguments(words: str, wanted: bool) -> None:
    assert wants_json(words.split()) is wanted


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    ran = subprocess.run(
        f"set -o pipefail; {sys.executable} -m crucible.cli.entry spec fields | head -n 1",
        shell=True,
        executable="/bin/bash",
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("###")


def test_a_closed_stdout_is_no_error(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "crucible.cli.entry", "spec", "schema"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_terminal_that_knows_only_ascii_is_served(tmp_path: Path) -> None:
    (tmp_path / "größe.yaml").write_text("job:\n  entrypoint: train.py\n")
    ran = subprocess.run(
        [sys.executable, "-m", "crucible.cli.entry", "validate", str(tmp_path / "größe.yaml")],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )
    assert ran.returncode == 0, ran.stderr
    assert b"ok" in ran.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    assert "_CRUCIBLE_COMPLETE" in capsys.readouterr().out


def test_the_shell_gets_commands_and_options() -> None:
    env = {"_CRUCIBLE_COMPLETE": "bash_complete", "COMP_WORDS": "crucible val", "COMP_CWORD": "1"}
    assert started("", code="0", env=env).stdout.splitlines() == ["plain,validate"]
    env = {"_CRUCIBLE_COMPLETE": "bash_complete", "COMP_WORDS": "crucible logs --tai", "COMP_CWORD": "2"}
    assert started("", code="0", env=env).stdout.splitlines() == ["plain,--tail"]


def test_completion_of_jobs_starts_no_server_and_never_fails(tmp_path: Path) -> None:
    env = {
        "_CRUCIBLE_COMPLETE": "bash_complete",
        "COMP_WORDS": "crucible logs x",
        "COMP_CWORD": "2",
        "HOME": str(tmp_path),
        "CRUCIBLE_HOME": str(tmp_path / "data"),
    }
    ran = started("", code="0", env=env)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "", "")
    assert not (tmp_path / "data").exists()
