"""The fence: on a computer that must stay on, ranks end by themselves when nobody has been heard for too long, whether
their agent lives or not."""

import json
import os
import signal
import time
from pathlib import Path

from agent_process import AgentProcess, rank_work
from carried import until
from doubles.agent_server import ServerDouble

TRAINING = "import os, time; print('pid', os.getpid(), flush=True); time.sleep(1000)"


def begin(agent: AgentProcess, server: ServerDouble, fence_s: float) -> Path:
    agent.boot(servers=[server.url], server_file=None, fence_s=fence_s)
    server.give(rank_work("python", "-c", TRAINING, stop_grace_s=1.0))
    agent.start()
    server.wait_for(lambda: server.has_line("pid"))
    return agent.rank_folder()


def ended(folder: Path) -> bool:
    return (folder / "result.json").exists()


def reason(folder: Path) -> str:
    return str(json.loads((folder / "result.json").read_text())["reason"])


def test_a_node_that_hears_nobody_ends_its_ranks_and_then_itself(agent: AgentProcess, server: ServerDouble) -> None:
    folder = begin(agent, server, fence_s=1.5)
    server.stop()
    assert agent.wait() == 0
    assert "no server was heard for 1.5 s" in reason(folder)
    assert (agent.folder / "agent.exit").read_text() == "orphaned\n"


def test_a_rank_whose_agent_is_dead_ends_behind_the_fence(agent: AgentProcess, server: ServerDouble) -> None:
    folder = begin(agent, server, fence_s=2.0)
    until(lambda: (agent.folder / "heard.json").exists())
    began = time.monotonic()
    agent.kill()
    assert not ended(folder), "a dead agent alone ends nothing"
    until(lambda: ended(folder))
    assert "no server was heard for 2 s" in reason(folder)
    assert 1.0 < time.monotonic() - began < 15.0


def test_a_rank_whose_agent_stands_still_ends_behind_the_fence(agent: AgentProcess, server: ServerDouble) -> None:
    folder = begin(agent, server, fence_s=1.5)
    assert agent.process is not None
    os.kill(agent.process.pid, signal.SIGSTOP)
    try:
        until(lambda: ended(folder))
    finally:
        os.kill(agent.process.pid, signal.SIGCONT)
    assert "no server was heard" in reason(folder)


def test_while_somebody_is_heard_nothing_ends(agent: AgentProcess, server: ServerDouble) -> None:
    folder = begin(agent, server, fence_s=1.0)
    beats = len(server.reports)
    server.wait_for(lambda: len(server.reports) >= beats + 8)  # half a second each: four fences long
    assert not ended(folder)
