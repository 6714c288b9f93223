"""Secrets on a node: a real agent hands them to real programs, and nothing of them is left or printed."""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_process import AgentProcess, rank_work
from crucible.agent import private
from crucible.wire.agent import SecretUse
from doubles.agent_server import ServerDouble

TOKEN = b"hf_canary-9f3c7e21"
KEY = b"-----BEGIN KEY-----\nMIIEvQIBADANcanaryBgkqhkiG9w0BAQEF\n-----END KEY-----\n"
BINARY = bytes(range(256))

USES = [
    SecretUse(name="HF_TOKEN", env="HF_TOKEN"),
    SecretUse(name="GCP", file="gcp/key.json", env="GCP_FILE"),
    SecretUse(name="BINARY", file="raw"),
]


@pytest.fixture
def node(new_agent: Callable[..., AgentProcess], server: ServerDouble) -> AgentProcess:
    server.secrets = {"HF_TOKEN": TOKEN, "GCP": KEY, "BINARY": BINARY}
    return new_agent().start()


def top(node: AgentProcess) -> Path:
    return Path(private._top(str(node.folder)))


def hits(folder: Path, canary: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and canary in path.read_bytes()]


def test_a_program_finds_its_secrets_in_variables_and_private_files(node: AgentProcess, server: ServerDouble) -> None:
    code = (
        "import os, hashlib; f = os.environ['GCP_FILE'];"
        "print(hashlib.sha256(os.environ['HF_TOKEN'].encode()).hexdigest());"
        "print(hashlib.sha256(open(f, 'rb').read()).hexdigest(), oct(os.stat(f).st_mode & 0o777));"
        "print(open(os.environ['CRUCIBLE_SECRETS'] + '/raw', 'rb').read() == bytes(range(256)));"
        "print(oct(os.stat(os.environ['CRUCIBLE_SECRETS']).st_mode & 0o777))"
    )
    server.give(rank_work("python", "-c", code, secrets=USES))
    assert server.exit_of().exit_code == 0, server.lines(None)
    assert server.lines() == [
        hashlib.sha256(TOKEN).hexdigest(),
        f"{hashlib.sha256(KEY).hexdigest()} 0o600",
        "True",
        "0o700",
    ]


def test_nothing_of_them_is_printed_or_left(node: AgentProcess, server: ServerDouble) -> None:
    script = 'env; cat "$GCP_FILE"; printf hf_can; sleep 0.1; printf "ary-9f3c7e21\\n"; echo "$HF_TOKEN" >&2; exit 3'
    server.give(rank_work("/bin/sh", "-c", script, secrets=USES))
    report = server.exit_of()
    assert report.exit_code == 3
    said = "\n".join(server.lines(None)) + "\n".join(report.last_lines)
    assert "canary" not in said and "HF_TOKEN=***" in said and said.count("***") >= 4
    assert hits(node.folder, b"canary") == []
    server.wait_for(lambda: not top(node).exists(), what="the private folder to go")


def test_setup_lines_see_them_too_and_print_none(node: AgentProcess, server: ServerDouble) -> None:
    lines = ['echo "using $HF_TOKEN"', 'test -n "$HF_TOKEN"']
    server.give(rank_work("/bin/sh", "-c", 'echo "${#HF_TOKEN}"', setup=lines, secrets=USES[:1]))
    assert server.exit_of().exit_code == 0
    assert server.lines() == [str(len(TOKEN))] and server.has_line("using ***", "sys")
    assert hits(node.folder, b"canary") == []


def test_while_it_runs_the_values_are_in_no_file_but_the_private_one_and_in_no_command_line(
    node: AgentProcess, server: ServerDouble
) -> None:
    server.give(rank_work("/bin/sh", "-c", "echo up; sleep 60", secrets=USES))
    server.wait_for(lambda: server.has_line("up"))
    assert hits(node.folder, b"canary") == []
    assert hits(top(node), b"canary") == [top(node) / "att-1-0" / "gcp" / "key.json"]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert b"canary" not in process.read_bytes()
        except OSError:
            continue
    server.give(rank_work("/bin/sh", stop=True, secrets=USES))
    server.exit_of()
    server.wait_for(lambda: not top(node).exists(), what="the private folder to go")


def test_a_supervisor_that_is_killed_leaves_no_file_either(node: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("/bin/sh", "-c", "echo up; sleep 60", secrets=USES))
    server.wait_for(lambda: server.has_line("up"))
    os.kill(_supervisor(node), signal.SIGKILL)
    server.exit_of()
    server.wait_for(lambda: not top(node).exists(), what="the private folder to go")


def _supervisor(node: AgentProcess) -> int:
    return int(json.loads((node.folder / "attempts/att-1/rank-0/supervisor.json").read_text())["pid"])


def test_a_new_agent_removes_what_a_machine_that_is_gone_left(
    new_agent: Callable[..., AgentProcess], server: ServerDouble, tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    rank = gone / "attempts" / "att-9" / "rank-0"
    rank.mkdir(parents=True)
    folder = Path(private.make(str(rank), {"key": TOKEN}))
    kept = tmp_path / "kept" / "attempts" / "att-9" / "rank-0"
    kept.mkdir(parents=True)
    other = Path(private.make(str(kept), {"key": TOKEN}))
    shutil.rmtree(gone)
    new_agent().start()
    server.wait_for(lambda: not folder.exists(), what="the sweep")
    assert other.exists()
    private.remove(str(kept))


def test_without_a_server_that_knows_them_the_rank_fails_and_says_why(node: AgentProcess, server: ServerDouble) -> None:
    server.refusals["/agent/v1/secrets"] = 422
    server.give(rank_work("/bin/sh", "-c", "true", secrets=USES))
    report = server.exit_of()
    assert report.reason is not None and "the secrets of the job cannot be had" in report.reason


def test_a_variable_that_crucible_sets_cannot_be_a_secret(node: AgentProcess, server: ServerDouble) -> None:
    uses = [SecretUse(name="HF_TOKEN", env="RANK")]
    server.give(rank_work("/bin/sh", "-c", "true", env={"RANK": "0"}, secrets=uses))
    assert "cannot be the variable RANK" in str(server.exit_of().reason)
