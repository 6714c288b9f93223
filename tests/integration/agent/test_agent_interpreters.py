"""The archive runs on every interpreter from 3.8 on that this machine has, without anything installed."""

import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import crucible
from agent_process import AgentProcess, is_alive, rank_work
from carried import training
from doubles.agent_server import ServerDouble
from doubles.storage import StorageDouble

ASK = "import sys; print(sys.version_info[0], sys.version_info[1], sys.executable)"


def interpreters() -> dict[str, str]:
    """Version to path: the running one, what PATH offers, and pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")))
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *sorted(root.glob("versions/*/bin"))]
    candidates = [path for folder in folders for path in sorted(folder.glob("python3.*")) if "-" not in path.name]
    found = {f"3.{sys.version_info[1]}": sys.executable}
    for path in candidates:
        version, executable = ask(path)
        if version is not None and version >= (3, 8):
            found.setdefault(f"3.{version[1]}", executable)
    return found


def ask(path: Path) -> tuple[tuple[int, int] | None, str]:
    try:
        answer = subprocess.run([str(path), "-I", "-c", ASK], capture_output=True, text=True, timeout=20)
        major, minor, executable = answer.stdout.split()
        return (int(major), int(minor)), executable
    except (OSError, ValueError, subprocess.SubprocessError):
        return None, ""


def number(version: str) -> int:
    return int(version.split(".")[1])


FOUND = interpreters()

# Metrics, a checkpoint of nothing, output, an orphan that ignores SIGTERM; then it waits to be stopped.
TRAIN = """
import json, os, signal, sys, time
with open(os.environ['CRUCIBLE_RUN_DIR'] + '/events.jsonl', 'a') as file:
    for step in range(10):
        file.write(json.dumps({'type': 'metrics', 't': step, 'step': step, 'values': {'loss': step}}) + '\\n')
print('version', sys.version_info[0], sys.version_info[1])
for i in range(1000): print('line', i)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(1, b'pid %d\\n' % os.getpid())
    time.sleep(1000)
for i in range(1000, 1100): os.write(1, b'line %d\\n' % i); time.sleep(0.01)
time.sleep(1000)
"""


@pytest.mark.parametrize("version", sorted(FOUND))
def test_a_whole_life_on_each_interpreter(
    new_agent: Callable[..., AgentProcess], server: ServerDouble, version: str
) -> None:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(TRAIN)
        archive.addfile(member, io.BytesIO(TRAIN.encode()))
    digest = hashlib.sha256(body.getvalue()).hexdigest()
    server.packages[digest] = body.getvalue()
    options = {"code": digest, "setup": ["echo set up"], "stop_grace_s": 1.0, "progress_pattern": r"line (\d+)"}
    agent = new_agent(python=FOUND[version])
    server.give(rank_work("python", "train.py", **options))
    agent.start()
    server.wait_for(lambda: server.has_line("line 1010"))
    agent.kill()
    agent.start()
    server.wait_for(lambda: server.has_line("line 1099"))
    server.give(rank_work("python", "train.py", stop=True, stop_reason="enough", **options))
    report = server.exit_of()
    lines = server.lines()
    orphan = next(int(line.split()[1]) for line in lines if line.startswith("pid"))
    assert lines[0] == f"version {version.replace('.', ' ')}"
    assert [line for line in lines[1:] if line.startswith("line")] == [f"line {i}" for i in range(1100)]
    assert server.lines("sys")[0] == "set up"
    assert len(server.metrics["att-1", 0]) == 10
    assert (report.signal, report.reason) == (signal.SIGTERM, "enough")
    assert not is_alive(orphan)
    server.give(retire=True)
    assert agent.wait() == 0
    assert server.enrolments[0].facts["python"].startswith(version + ".")
    assert agent.processes() == []


@pytest.mark.parametrize("version", sorted({min(FOUND, key=number), max(FOUND, key=number)}))
def test_checkpoints_are_carried_and_brought_back_on_the_oldest_and_the_newest(
    new_agent: Callable[..., AgentProcess], server: ServerDouble, storage: StorageDouble, version: str
) -> None:
    env = {"PYTHONPATH": str(Path(crucible.__file__).parents[1])}
    statements = ("print('from', (resumed() or [0])[0])", "save(7, {'big': 2 << 20, 'small': b's'})")
    for attempt, agent in enumerate([new_agent(python=FOUND[version]), new_agent(python=FOUND[version])]):
        server.give(training(*statements, attempt_id=f"att-{attempt}", number=attempt, env=env))
        agent.start()
        assert server.exit_of(f"att-{attempt}").exit_code == 0
        agent.kill()
    assert server.lines(attempt_id="att-1")[0] == "from 7"
    assert [one.step for one in server.checkpoints] == [7]


@pytest.mark.parametrize("version", sorted(FOUND))
def test_the_archive_says_its_version_on_each_interpreter(pyz: Path, version: str) -> None:
    answer = subprocess.run(
        [FOUND[version], "-W", "error", str(pyz), "--version"], capture_output=True, text=True, timeout=20
    )
    assert (answer.returncode, answer.stdout.count(".")) == (0, 2), answer.stderr
