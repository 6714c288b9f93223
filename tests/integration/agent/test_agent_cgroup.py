"""Where control groups are to be had, a rank has one of its own, and its end takes everything in it along."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_process import AgentProcess, is_alive, rank_work
from doubles.agent_server import ServerDouble


@pytest.fixture
def cgroup(tmp_path: Path) -> Iterator[Path]:
    """A real cgroup v2 hierarchy, mounted for the test; groups can be made in it."""
    root = tmp_path / "cgroup"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "cgroup2", "none", str(root)], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"needs root and cgroup v2: {mounted.stderr.strip()}")
    parent = root / f"crucible-test-{os.getpid()}"
    parent.mkdir()
    yield parent
    parent.rmdir()
    subprocess.run(["umount", str(root)], check=True)


def test_a_rank_runs_in_its_own_group_and_its_end_empties_it(
    agent: AgentProcess, server: ServerDouble, cgroup: Path
) -> None:
    agent.boot(servers=[server.url], cgroup=str(cgroup))
    code = (
        "import os, subprocess, time\n"
        "deaf = ['/bin/sh', '-c', 'trap : TERM; while :; do sleep 1; done']\n"
        "child = subprocess.Popen(deaf, env={}, start_new_session=True)\n"
        "print('pids', os.getpid(), child.pid, flush=True); time.sleep(1000)"
    )
    server.give(rank_work("python", "-c", code, stop_grace_s=0.5))
    agent.start()
    (line,) = server.wait_for(lambda: [found for found in server.lines() if found.startswith("pids")])
    pids = [int(word) for word in line.split()[1:]]
    (group,) = [path for path in cgroup.iterdir() if path.is_dir()]
    assert set(map(str, pids)) <= set((group / "cgroup.procs").read_text().split())
    server.give(rank_work("python", "-c", code, stop_grace_s=0.5, stop=True, stop_reason="enough"))
    server.exit_of()
    assert not any(map(is_alive, pids))
    assert [path for path in cgroup.iterdir() if path.is_dir()] == []
