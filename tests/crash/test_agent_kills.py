"""kill -9 of the agent at random moments, from its first step on, while its server comes and goes: the ranks run once,
every line arrives once, and the result is the program's own."""

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_process import AgentProcess, rank_work
from crucible.agent import bundle
from doubles.agent_server import ServerDouble, running_double

SEED = int(os.environ.get("CRUCIBLE_TEST_SEED", time.time_ns() % 1_000_000))
KILLS = 25
LINES = 1500
# Prints numbered lines and metrics for about six seconds, and leaves a mark for every time it was started.
PROGRAM = f"""
import json, os, sys, time
with open(os.environ['MARKS'], 'a') as marks: marks.write(os.environ['RANK'])
events = open(os.environ['CRUCIBLE_RUN_DIR'] + '/events.jsonl', 'a', buffering=1)
for i in range({LINES}):
    print('line', i, file=(sys.stdout, sys.stderr)[i % 2], flush=True)
    events.write(json.dumps({{'type': 'metrics', 't': i, 'step': i, 'values': {{'i': i}}}}) + '\\n')
    time.sleep(0.004)
sys.exit(40 + int(os.environ['RANK']))
"""


@pytest.fixture
def server() -> Iterator[ServerDouble]:
    with running_double(report_every_s=0.3) as double:
        yield double


def test_an_agent_killed_at_any_moment_loses_and_doubles_nothing(tmp_path: Path, server: ServerDouble) -> None:
    print(f"seed {SEED}: CRUCIBLE_TEST_SEED={SEED} replays the choice of moments")
    chance = random.Random(SEED)
    bundle.build(tmp_path / "agent.pyz")
    agent = AgentProcess(tmp_path / "agent.pyz", tmp_path / "node", server)
    marks = tmp_path / "marks"
    env = {"MARKS": str(marks)}
    server.give(*[rank_work("python", "-c", PROGRAM, rank=i, env={**env, "RANK": str(i)}) for i in range(2)])
    try:
        for _ in range(KILLS):
            agent.start()
            time.sleep(chance.uniform(0.0, 0.5))
            agent.kill()
            if chance.random() < 0.3:
                server.stop()
                server.start()
                agent.point_at(server)
        agent.start()
        reports = [server.exit_of(rank=i, timeout_s=60) for i in range(2)]
        assert sorted(marks.read_text()) == ["0", "1"]
        assert [report.exit_code for report in reports] == [40, 41]
        for rank in range(2):
            records = server.logs["att-1", rank]
            for stream, first in (("out", 0), ("err", 1)):
                lines = [record.x for record in records if record.s == stream]
                assert lines == [f"line {i}" for i in range(first, LINES, 2)]
            assert [record.step for record in server.metrics["att-1", rank]] == list(range(LINES))
        assert len({message.agent_id for message in server.enrolments}) == 1
        server.give(retire=True)
        assert agent.wait() == 0
        assert agent.processes() == []
        assert json.loads((agent.folder / "identity.json").read_text())["node_id"] == "node-1"
    finally:
        agent.destroy()
