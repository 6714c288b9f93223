"""What a rank gets, how it ends, and what the server hears of it."""

import hashlib
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess, package_of, rank_work
from crucible.wire.agent import RankWork
from doubles.agent_server import ServerDouble


def python(code: str, **launch: Any) -> RankWork:
    return rank_work("python", "-c", code, **launch)


def test_a_rank_starts_prints_and_exits(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(python("import sys; print('to out'); print('to err', file=sys.stderr)"))
    agent.start()
    report = server.exit_of()
    assert (report.exit_code, report.signal, report.reason, report.timed_out) == (0, None, None, False)
    assert server.lines("out") == ["to out"]
    assert server.lines("err") == ["to err"]
    assert server.states["att-1", 0][-2:] == ["started", "exited"]
    assert report.started_at_ms is not None and report.ended_at_ms is not None
    assert report.started_at_ms <= report.ended_at_ms
    assert report.log_lines == 2
    assert report.generation == 1
    assert report.last_lines == []


@pytest.mark.parametrize("code", [1, 3, 255])
def test_an_exit_code_is_reported_with_the_end_of_the_log(agent: AgentProcess, server: ServerDouble, code: int) -> None:
    server.give(python(f"import sys\nfor i in range(50): print('line', i)\nsys.exit({code})"))
    agent.start()
    report = server.exit_of()
    assert (report.exit_code, report.signal) == (code, None)
    assert report.last_lines == [f"line {i}" for i in range(30, 50)]


def test_a_signal_is_reported_as_a_signal(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"))
    agent.start()
    report = server.exit_of()
    assert (report.exit_code, report.signal) == (None, signal.SIGSEGV)


def test_an_exit_is_reported_after_every_line_has_arrived(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(python("for i in range(50000): print('line', i)"))
    agent.start()
    report = server.exit_of()
    assert server.lines_at_exit["att-1", 0] == 50000 == report.log_lines
    assert server.lines() == [f"line {i}" for i in range(50000)]


@pytest.mark.parametrize(
    ("argv", "exit_code", "word"),
    [
        (("no-such-program-anywhere",), 127, "No such file"),
        (("/etc/passwd",), 126, "Permission denied"),
        (("./not-there",), 127, "No such file"),
    ],
)
def test_a_program_that_cannot_start_says_why(
    agent: AgentProcess, server: ServerDouble, argv: tuple[str, ...], exit_code: int, word: str
) -> None:
    server.give(rank_work(*argv))
    agent.start()
    report = server.exit_of()
    assert report.exit_code == exit_code
    assert report.reason is not None
    assert report.reason.startswith(f"could not start {argv[0]}") and word in report.reason
    assert report.started_at_ms is None


def test_several_ranks_run_side_by_side(agent: AgentProcess, server: ServerDouble) -> None:
    ranks = [python("import os; print(os.environ['RANK'])", rank=i, env={"RANK": str(i)}) for i in range(4)]
    server.give(*ranks)
    agent.start()
    for i in range(4):
        assert server.exit_of(rank=i).exit_code == 0
        assert server.lines(rank=i) == [str(i)]


def test_a_rank_sees_its_own_environment_and_no_secret(
    new_agent: Callable[[], AgentProcess], server: ServerDouble
) -> None:
    agent = new_agent()
    code = "import os, json; print(json.dumps(dict(os.environ))); print(open(os.environ['CRUCIBLE_TOKEN_FILE']).read())"
    server.give(
        python(
            code,
            env={"RANK": "0", "MINE": "yes", "CRUCIBLE_RANK_ID": "forged", "LC_ALL": "C.UTF-8"},
            devices=["2", "3"],
            checkpoints="file:///somewhere",
            checkpoint_keep=7,
        )
    )
    agent.start(AWS_SECRET_ACCESS_KEY="of the agent", LD_LIBRARY_PATH="/opt/lib")
    assert server.exit_of().exit_code == 0, server.lines(None)
    text, token = server.lines()
    env = json.loads(text)
    assert token == "token-of-the-attempt"
    assert "token-of-the-attempt" not in text and "AWS_SECRET_ACCESS_KEY" not in env
    assert env["PATH"].split(os.pathsep)[0] == os.path.dirname(sys.executable)
    assert env["LD_LIBRARY_PATH"] == "/opt/lib"
    assert (env["MINE"], env["CUDA_VISIBLE_DEVICES"], env["PYTHONUNBUFFERED"]) == ("yes", "2,3", "1")
    assert env["CRUCIBLE_RANK_ID"] == "att-1/0"
    assert env["CRUCIBLE_RUN_DIR"] == str(agent.rank_folder())
    assert (env["CRUCIBLE_CHECKPOINTS"], env["CRUCIBLE_CHECKPOINT_KEEP"]) == ("file:///somewhere", "7")
    assert (env["CRUCIBLE_JOB_ID"], env["CRUCIBLE_TASK_ID"], env["CRUCIBLE_ATTEMPT"]) == ("job-1", "task-1", "0")
    assert stat.S_IMODE((agent.rank_folder() / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE((agent.rank_folder() / "spec.json").stat().st_mode) == 0o600


def test_a_rank_without_devices_sees_no_gpu(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(python("import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))"))
    agent.start()
    server.exit_of()
    assert server.lines() == ["''"]


def test_python_means_the_interpreter_of_the_agent(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("python3", "-c", "import sys; print(sys.executable)"))
    agent.start()
    server.exit_of()
    assert server.lines() == [sys.executable]


def test_a_program_inherits_no_ignored_or_blocked_signal(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("grep", "-E", "SigIgn|SigBlk", "/proc/self/status"))
    agent.start()
    server.exit_of()
    masks = {line.split()[0]: int(line.split()[1], 16) for line in server.lines()}
    ours_to_set = sum(1 << (number - 1) for number in signal.valid_signals())  # not those the C library keeps
    assert {name: mask & ours_to_set for name, mask in masks.items()} == {"SigBlk:": 0, "SigIgn:": 0}


def test_code_is_unpacked_once_and_is_where_the_ranks_run(agent: AgentProcess, server: ServerDouble) -> None:
    body = package_of(
        {"train.py": "from pkg import words; print(words.TEXT)", "pkg/words.py": "TEXT = 'from the package'"}
    )
    digest = hashlib.sha256(body).hexdigest()
    server.packages[digest] = body
    server.give(*[rank_work("python", "train.py", rank=i, code=digest) for i in range(3)])
    agent.start()
    for i in range(3):
        assert server.exit_of(rank=i).exit_code == 0
        assert server.lines(rank=i) == ["from the package"]
    assert sum(path.endswith(digest) for path, _ in server.requests) == 1


def test_a_package_with_another_content_is_refused(agent: AgentProcess, server: ServerDouble) -> None:
    server.packages["a" * 64] = package_of({"train.py": "print('evil')"})
    server.give(rank_work("python", "train.py", code="a" * 64))
    agent.start()
    report = server.exit_of()
    assert report.reason is not None and "another content than its name says" in report.reason
    assert server.lines(None) == []


def test_a_package_that_the_server_does_not_have_fails_the_rank(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("python", "train.py", code="b" * 64))
    agent.start()
    report = server.exit_of()
    assert report.reason is not None and "could not fetch the code package" in report.reason


def test_setup_lines_run_once_before_the_ranks(agent: AgentProcess, server: ServerDouble, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    setup = ["echo preparing", f"echo once >> {marks}", "sleep 0.3", f"echo done >> {marks}"]
    server.give(*[rank_work("cat", str(marks), rank=i, setup=setup) for i in range(3)])
    agent.start()
    for i in range(3):
        assert server.exit_of(rank=i).exit_code == 0
        assert server.lines("out", rank=i) == ["once", "done"]
    words = [line for i in range(3) for line in server.lines("sys", rank=i)]
    assert words == ["preparing"]


def test_setup_that_fails_fails_every_rank_and_starts_none(agent: AgentProcess, server: ServerDouble) -> None:
    setup = ["echo about to fail", "false", "echo never"]
    server.give(*[rank_work("echo", "started", rank=i, setup=setup) for i in range(2)])
    agent.start()
    reports = [server.exit_of(rank=i) for i in range(2)]
    assert {report.reason for report in reports} == {"setup failed (exit 1)"}
    assert all(report.started_at_ms is None for report in reports)
    words = [line for i in range(2) for line in server.lines(None, rank=i)]
    assert words.count("about to fail") == 1
    assert "never" not in words and "started" not in words


def test_an_unset_variable_in_setup_fails_it(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("true", setup=['echo "$NO_SUCH_VARIABLE_HERE"']))
    agent.start()
    reason = server.exit_of().reason
    assert reason is not None and reason.startswith("setup failed (exit")


def test_metacharacters_reach_the_program_as_they_are(
    agent: AgentProcess, server: ServerDouble, tmp_path: Path
) -> None:
    canary = tmp_path / "canary"
    words = [f"$(touch {canary})", f"; touch {canary}", f"`touch {canary}`", "a b\tc", "*", "'\"\\"]
    server.give(rank_work("python", "-c", "import sys; print(sys.argv[1:])", *words, env={"X": words[0]}))
    agent.start()
    server.exit_of()
    assert server.lines() == [repr(words)]
    assert not canary.exists()


def test_the_folder_of_an_attempt_goes_when_the_server_has_everything(
    agent: AgentProcess, server: ServerDouble
) -> None:
    server.give(python("print('hello')"))
    agent.start()
    server.exit_of()
    folder = agent.rank_folder().parent
    assert folder.exists()
    server.give()
    server.wait_for(lambda: not folder.exists())
    server.wait_for(lambda: server.reports[-1].ranks == [])


def test_a_rank_that_is_to_stop_before_it_was_seen_never_starts(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(python("print('started')", stop=True, stop_reason="cancelled by ada"))
    agent.start()
    report = server.exit_of()
    assert report.reason == "stopped before it started: cancelled by ada"
    assert server.lines(None) == []


def test_the_rendezvous_port_is_held_until_the_ranks_start(agent: AgentProcess, server: ServerDouble) -> None:
    agent.start()
    port = server.wait_for(lambda: server.enrolments)[0].rendezvous_port
    bind = "import socket, sys; s = socket.socket(); s.bind(('', int(sys.argv[1]))); s.listen(); print('bound')"
    with socket.socket() as probe, pytest.raises(OSError, match="in use"):
        probe.bind(("", port))
    server.give(rank_work("python", "-c", bind, str(port)))
    assert server.exit_of().exit_code == 0
    assert server.lines() == ["bound"]


def test_a_program_that_works_on_items_is_told_where_the_server_is_now(
    agent: AgentProcess, server: ServerDouble
) -> None:
    code = """
import json, os, sys, time
path = os.path.join(os.environ["CRUCIBLE_RUN_DIR"], "servers.json")
print(*json.load(open(path))["servers"], flush=True)
deadline = time.monotonic() + 30
while "http://127.0.0.1:9" not in json.load(open(path))["servers"] and time.monotonic() < deadline:
    time.sleep(0.01)
print(*json.load(open(path))["servers"], oct(os.stat(path).st_mode & 0o777), flush=True)
"""
    server.give(python(code, env={"CRUCIBLE_SHARDS": "1"}))
    agent.start()
    server.wait_for(lambda: bool(server.lines("out")))
    server.servers = [server.url, "http://127.0.0.1:9"]
    assert server.exit_of().exit_code == 0
    first, second = server.lines("out")
    assert first == server.url and second == f"{server.url} http://127.0.0.1:9 0o644"
