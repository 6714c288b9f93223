"""Setup lines in environments that machines keep: real Pythons, real packages, no network."""

import hashlib
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess, package_of, rank_work
from crucible.wire.agent import RankWork
from doubles.agent_server import ServerDouble


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def node(new_agent: Callable[..., AgentProcess], server: ServerDouble, cache: Path) -> AgentProcess:
    agent = new_agent()
    agent.boot(servers=[server.url], cache=str(cache))
    return agent.start()


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A package with a module and a command."""
    path = tmp_path / "wheels" / "crucible_test_words-1.0-py3-none-any.whl"
    path.parent.mkdir()
    info = "crucible_test_words-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("crucible_test_words.py", "TEXT = 'installed'\ndef main(): print(TEXT)\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: crucible-test-words\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\nsay-words = crucible_test_words:main\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def install(wheel: Path) -> str:
    return f"pip install --quiet --disable-pip-version-check --no-index --no-deps {wheel}"


def environments(cache: Path) -> list[Path]:
    return sorted(path for path in (cache / "environments").iterdir() if len(path.name) == 64)


def run(server: ServerDouble, attempt: str, *argv: str, **launch: Any) -> list[str]:
    """The lines that it printed; it must succeed."""
    server.give(rank_work(*argv, attempt_id=attempt, **launch))
    report = server.exit_of(attempt)
    assert (report.exit_code, report.reason) == (0, None), server.lines(None, attempt)
    return server.lines("out", attempt)


def test_what_setup_installs_is_there_for_ranks_and_not_in_the_agents_python(
    node: AgentProcess, server: ServerDouble, cache: Path, wheel: Path
) -> None:
    code = "import crucible_test_words, sys; print(crucible_test_words.TEXT, sys.prefix)"
    [folder] = run(server, "att-1", "python", "-c", code, setup=[install(wheel)])[0].split()[1:]
    assert Path(folder) == environments(cache)[0]
    with pytest.raises(ImportError):
        __import__("crucible_test_words")
    # Commands too, and what the agent's own Python has.
    assert run(server, "att-2", "say-words", setup=[install(wheel)]) == ["installed"]
    assert run(server, "att-3", "python", "-c", "import click; print('mine')", setup=[install(wheel)]) == ["mine"]


def test_the_next_attempt_finds_the_environment_and_runs_no_lines(
    node: AgentProcess, server: ServerDouble, cache: Path, tmp_path: Path
) -> None:
    setup = [f"echo ran >> {tmp_path}/marks"]
    run(server, "att-1", "true", setup=setup)
    run(server, "att-2", "true", setup=setup)
    assert (tmp_path / "marks").read_text() == "ran\n"
    assert len(environments(cache)) == 1
    [said] = server.lines("sys", "att-2")
    assert said.startswith("setup: the environment of an earlier run is used")


def test_machines_that_share_a_cache_make_one_environment(
    new_agent: Callable[..., AgentProcess], server: ServerDouble, cache: Path, tmp_path: Path
) -> None:
    """As two agents: the second waits for the first."""
    for _ in range(2):
        agent = new_agent()
        agent.boot(servers=[server.url], cache=str(cache))
        agent.start()
    setup = [f"echo ran >> {tmp_path}/marks", "sleep 0.5"]
    server.give(rank_work("true", setup=setup), rank_work("true", rank=1, attempt_id="att-2", setup=setup))
    assert server.exit_of().exit_code == server.exit_of("att-2", 1).exit_code == 0
    assert (tmp_path / "marks").read_text() == "ran\n"


def test_another_content_of_a_named_file_is_another_environment(
    node: AgentProcess, server: ServerDouble, cache: Path
) -> None:
    for number in (1, 2):
        body = package_of({"requirements.txt": f"# {number}\n", "train.py": "print('ok')"})
        digest = hashlib.sha256(body).hexdigest()
        server.packages[digest] = body
        run(server, f"att-{number}", "python", "train.py", code=digest, setup=["cat requirements.txt"])
    assert [line for line in server.lines("sys", "att-2") if not line.startswith("setup:")] == ["# 2"]
    assert len(environments(cache)) == 2


def test_lines_that_change_the_code_run_every_time(node: AgentProcess, server: ServerDouble) -> None:
    for attempt in ("att-1", "att-2", "att-3"):
        assert run(server, attempt, "cat", "built", setup=["echo by setup > built"]) == ["by setup"]
    assert server.lines("sys", "att-1") == [
        "setup: the environment is not kept for other runs: its lines changed files of the code"
    ]
    assert server.lines("sys", "att-3") == []


def test_lines_that_fail_leave_nothing_that_a_later_run_would_use(
    node: AgentProcess, server: ServerDouble, cache: Path, tmp_path: Path
) -> None:
    setup = [f"test -e {tmp_path}/mended"]
    server.give(rank_work("true", setup=setup))
    assert server.exit_of().reason == "setup failed (exit 1)"
    (tmp_path / "mended").touch()
    run(server, "att-2", "true", setup=setup)
    assert len(environments(cache)) == 1


def test_a_python_that_cannot_make_environments_runs_the_lines_as_they_are(
    node: AgentProcess, server: ServerDouble, tmp_path: Path
) -> None:
    poor = tmp_path / "python"
    poor.write_text(
        f'#!/bin/sh\ncase "$*" in *EnvBuilder*) echo no venv here; exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    poor.chmod(0o755)
    setup = [f"echo ran >> {tmp_path}/marks"]
    for attempt in ("att-1", "att-2"):
        run(server, attempt, "true", setup=setup, python=str(poor))
        words = server.lines("sys", attempt)
        assert words == [f"setup: {poor} cannot make environments, so its own is changed: no venv here"]
    assert (tmp_path / "marks").read_text() == "ran\nran\n"


def test_a_maker_that_is_killed_leaves_no_half_environment(
    node: AgentProcess, server: ServerDouble, cache: Path, tmp_path: Path
) -> None:
    setup = [f"touch {tmp_path}/begun", f"test -e {tmp_path}/quick || sleep 600"]
    work: RankWork = rank_work("true", setup=setup)
    server.give(work)
    server.wait_for((tmp_path / "begun").exists)
    server.give()
    server.exit_of()
    (tmp_path / "quick").touch()
    run(server, "att-2", "true", setup=setup)
    assert server.lines("sys", "att-2") == []
    assert len(environments(cache)) == 1
