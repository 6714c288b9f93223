"""How a rank ends that does not end by itself: nothing of its tree outlives the report of its exit, and nothing else is
touched."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_process import AgentProcess, carriers, is_alive, rank_work
from crucible.wire.agent import RankWork
from doubles.agent_server import ServerDouble

# A child in its own session, orphaned by a double fork, deaf to SIGTERM; and one with an empty environment. The program
# itself goes on when both are there.
STUBBORN_TREE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ready, tell = os.pipe()
def introduce(): os.write(1, b'pid %d\\n' % os.getpid())
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        introduce()
        os.write(tell, b'x')
        time.sleep(1000)
    os._exit(0)
script = "trap '' TERM; echo pid $$; printf x >&%d; while :; do sleep 1; done" % tell
subprocess.Popen(['/bin/sh', '-c', script], env={}, start_new_session=True, pass_fds=[tell])
introduce()
seen = b''
while len(seen) < 2: seen += os.read(ready, 2)
"""
WAIT = "time.sleep(1000)"


def tree_pids(server: ServerDouble, count: int) -> list[int]:
    def pids() -> list[int] | None:
        found = [int(line.split()[1]) for line in server.lines() if line.startswith("pid")]
        return found if len(found) == count else None

    return server.wait_for(pids, what="pids of the tree")  # type: ignore[no-any-return]


def wait_until(claim: Callable[[], bool], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not claim():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    yield process
    process.kill()
    process.wait()


def test_a_stop_asks_first_and_tells_the_reason_and_the_deadline(agent: AgentProcess, server: ServerDouble) -> None:
    code = (
        "import os, signal, sys, time\n"
        "def handler(*_):\n"
        "    print(open(os.environ['CRUCIBLE_RUN_DIR'] + '/stop').read()); sys.exit(7)\n"
        "signal.signal(signal.SIGTERM, handler); print('ready'); time.sleep(1000)"
    )
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    asked_ms = time.time() * 1000
    server.give(rank_work("python", "-c", code, stop=True, stop_reason="budget is used up"))
    report = server.exit_of()
    note = json.loads(server.lines()[1])
    assert report.exit_code == 7
    assert note["reason"] == "budget is used up" == report.reason
    assert asked_ms <= note["deadline_ms"] <= asked_ms + 15_000
    assert server.has_line("stopping: budget is used up", "sys")


def test_a_deaf_tree_is_dead_before_its_exit_is_reported(
    agent: AgentProcess, server: ServerDouble, stranger: subprocess.Popen[bytes]
) -> None:
    code = STUBBORN_TREE + WAIT
    server.give(rank_work("python", "-c", code, stop_grace_s=0.5))
    agent.start()
    pids = tree_pids(server, 3)
    assert all(map(is_alive, pids))
    began = time.monotonic()
    server.give(rank_work("python", "-c", code, stop_grace_s=0.5, stop=True, stop_reason="enough"))
    report = server.exit_of()
    assert not any(map(is_alive, pids))
    assert report.signal == signal.SIGKILL
    assert 0.5 <= time.monotonic() - began < 8
    assert carriers("CRUCIBLE_RUN_DIR", str(agent.rank_folder())) == []
    assert stranger.poll() is None


def test_what_a_program_leaves_behind_is_dead_before_its_exit_is_reported(
    agent: AgentProcess, server: ServerDouble
) -> None:
    server.give(rank_work("python", "-c", STUBBORN_TREE))
    agent.start()
    pids = tree_pids(server, 3)
    report = server.exit_of()
    assert report.exit_code == 0
    assert not any(map(is_alive, pids))
    assert server.has_line("killing what has not ended: ", "sys")


def test_the_grace_is_granted(agent: AgentProcess, server: ServerDouble) -> None:
    code = (
        "import signal, sys, time\n"
        "def handler(*_): time.sleep(1.0); print('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, handler); print('ready'); time.sleep(1000)"
    )
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    server.give(rank_work("python", "-c", code, stop=True))
    assert server.exit_of().exit_code == 0
    assert server.has_line("saved")


def test_a_timeout_stops_the_rank_and_says_so(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("sleep", "1000", timeout_s=0.5, stop_grace_s=1.0))
    agent.start()
    report = server.exit_of()
    assert report.timed_out
    assert report.reason == "timed out after 0.5 s"
    assert report.signal == signal.SIGTERM


def test_a_timeout_counts_during_setup_too(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("true", setup=["sleep 1000"], timeout_s=0.5, stop_grace_s=0.5))
    agent.start()
    report = server.exit_of()
    assert report.timed_out
    assert report.reason is not None and report.reason.startswith("stopped during setup")


def test_a_rank_waiting_for_the_setup_of_another_can_be_stopped(agent: AgentProcess, server: ServerDouble) -> None:
    def ranks(**options: bool) -> list[RankWork]:
        return [rank_work("true", rank=i, setup=["echo $$ began", "sleep 1000"], **options) for i in range(2)]

    server.give(*ranks())
    agent.start()
    server.wait_for(lambda: any(server.has_line("began", "sys", rank=i) for i in range(2)))
    server.give(*ranks(stop=True))
    # The one that waits may have its turn in the moment between the two stops.
    reasons = {server.exit_of(rank=i).reason for i in range(2)}
    assert "stopped during setup: told to stop" in reasons
    assert reasons <= {"stopped during setup: told to stop", "stopped before it started: told to stop"}


def test_a_rank_that_vanishes_from_the_work_is_killed_at_once(agent: AgentProcess, server: ServerDouble) -> None:
    code = STUBBORN_TREE + WAIT
    kept = rank_work("sleep", "1000", attempt_id="att-2")
    server.give(rank_work("python", "-c", code, stop_grace_s=1000), kept)
    agent.start()
    pids = tree_pids(server, 3)
    server.give(kept)
    wait_until(lambda: not any(map(is_alive, pids)), 5)
    server.wait_for(lambda: [rank.attempt_id for rank in server.reports[-1].ranks] == ["att-2"])
    assert server.ranks["att-2", 0].state == "started"
    assert not agent.rank_folder().exists()


def test_an_old_picture_of_the_work_does_not_run_a_rank_twice(agent: AgentProcess, server: ServerDouble) -> None:
    work = rank_work("echo", "ran")
    server.give(work)
    agent.start()
    server.exit_of()
    server.give()
    server.wait_for(lambda: server.reports[-1].ranks == [])
    server.give(work)
    server.wait_for(lambda: server.ranks["att-1", 0].reason == "it ran on this node before and was ended")
    assert server.lines() == ["ran"]


def test_retiring_delivers_everything_then_ends(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("seq", "20000"))
    agent.start()
    server.wait_for(lambda: server.ranks)
    server.give(rank_work("seq", "20000"), retire=True)
    assert agent.wait() == 0
    assert server.ranks["att-1", 0].state == "exited"
    assert server.lines() == [str(i) for i in range(1, 20001)]
    assert (agent.folder / "agent.exit").read_text() == "retired\n"
    assert agent.processes() == []


def test_power_off_is_the_command_given_at_boot(agent: AgentProcess, server: ServerDouble, tmp_path: Path) -> None:
    agent.boot(servers=[server.url], power_off=["touch", str(tmp_path / "off")])
    agent.start()
    server.wait_for(lambda: server.reports)
    assert not (tmp_path / "off").exists()
    server.give(retire=True)
    assert agent.wait() == 0
    assert (tmp_path / "off").exists()


def test_gone_ends_the_ranks_and_the_agent(agent: AgentProcess, server: ServerDouble) -> None:
    server.give(rank_work("python", "-c", STUBBORN_TREE + WAIT))
    agent.start()
    pids = tree_pids(server, 3)
    server.refusals |= {"/agent/v1/report": 410, "/agent/v1/work": 410}
    assert agent.wait() == 0
    assert not any(map(is_alive, pids))


@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_a_proxy_that_misbehaves_ends_no_rank(agent: AgentProcess, server: ServerDouble, status: int) -> None:
    code = "import sys, time\nfor i in range(30): print(i); time.sleep(0.05)"
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.wait_for(lambda: server.has_line("0"))
    server.refusals |= {"/agent/v1/report": status, "/agent/v1/work": status}
    seen = len(server.requests)
    server.wait_for(lambda: len(server.requests) > seen + 4)
    server.refusals.clear()
    assert server.exit_of().exit_code == 0
    assert server.lines() == [str(i) for i in range(30)]


def test_sigterm_stops_the_ranks_with_their_grace_and_delivers(agent: AgentProcess, server: ServerDouble) -> None:
    code = (
        "import signal, sys, time\n"
        "def handler(*_): print('last words'); sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, handler); print('ready'); time.sleep(1000)"
    )
    server.give(rank_work("python", "-c", code))
    agent.start()
    server.wait_for(lambda: server.has_line("ready"))
    assert agent.process is not None
    agent.process.send_signal(signal.SIGTERM)
    assert agent.wait() == 0
    assert (server.ranks["att-1", 0].exit_code, server.ranks["att-1", 0].evicted) == (3, True)
    assert server.lines()[-1] == "last words"
    assert agent.processes() == []


def test_an_orphaned_agent_without_work_ends(agent: AgentProcess, server: ServerDouble) -> None:
    server.orphan_after_s = 1.0
    agent.start()
    server.wait_for(lambda: server.reports)
    server.stop()
    assert agent.wait() == 0
    assert (agent.folder / "agent.exit").read_text() == "orphaned\n"


def test_an_agent_with_work_is_no_orphan(agent: AgentProcess, server: ServerDouble) -> None:
    server.orphan_after_s = 0.5
    server.give(rank_work("sleep", "2"))
    agent.start()
    server.wait_for(lambda: server.states.get(("att-1", 0), [])[-1:] == ["started"])
    server.stop()
    assert agent.wait() == 0
    result = json.loads((agent.rank_folder() / "result.json").read_text())
    assert result["exit_code"] == 0


@pytest.fixture
def cgroup(tmp_path: Path) -> Iterator[Path | None]:
    """A cgroup of ours where this machine allows one, else None: the agent must do without as well."""
    for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified")):
        folder = root / f"crucible-test-{os.getpid()}-{time.monotonic_ns()}"
        if (root / "cgroup.procs").exists() and os.access(root, os.W_OK):
            folder.mkdir()
            yield folder
            folder.rmdir()
            return
    yield None


def test_a_rank_lives_in_its_cgroup_where_that_is_allowed(
    cgroup: Path | None, agent: AgentProcess, server: ServerDouble
) -> None:
    agent.boot(servers=[server.url], cgroup=str(cgroup) if cgroup else "/nowhere")
    code = "print(open('/proc/self/cgroup').read().replace('\\n', ' '), flush=True)\n" + STUBBORN_TREE + WAIT
    server.give(rank_work("python", "-c", code))
    agent.start()
    pids = tree_pids(server, 3)
    if cgroup is not None:
        assert f"/{cgroup.name}/crucible-att-1-0" in server.lines()[0]
        members = (cgroup / "crucible-att-1-0" / "cgroup.procs").read_text().split()
        assert set(map(str, pids)) <= set(members)
    server.give()
    wait_until(lambda: not any(map(is_alive, pids)))
    if cgroup is not None:
        wait_until(lambda: not list(cgroup.glob("crucible-*")))
