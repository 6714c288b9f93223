"""What a program that does not use crucible.train leaves in $CRUCIBLE_KEEP is there again on the next machine; and what
several processes of one rank save together gets to storage whole."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_process import AgentProcess, rank_work
from carried import stored, touch, training
from crucible.wire.agent import RankWork
from doubles.agent_server import ServerDouble
from doubles.storage import StorageDouble

NewAgent = Callable[..., AgentProcess]
KEEPS = """
import os, pathlib, sys, time
keep = pathlib.Path(os.environ['CRUCIBLE_KEEP'])
run = pathlib.Path(os.environ['CRUCIBLE_RUN_DIR'])
print('found', sorted((str(p.relative_to(keep)), p.read_text()) for p in keep.rglob('*') if p.is_file()), flush=True)
def put(name, text):
    path = keep / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name('.part').write_text(text)
    path.with_name('.part').rename(path)
for statement in sys.argv[1:]:
    exec(statement)
"""
# Two processes below one rank, as a launcher starts them.
TWO = """
import os, subprocess, sys
env = dict(os.environ, WORLD_SIZE='2')
argv = [sys.executable, '-c', sys.argv[1]]
both = [subprocess.Popen(argv, env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank))) for rank in (0, 1)]
sys.exit(max(each.wait() for each in both))
"""
SHARD = """
import os, pathlib
from crucible import train
name = 'shard-' + os.environ['RANK']
for step in (10, 20):
    pathlib.Path(name).write_text(name + ' of step %d' % step)
    train.save_checkpoint(name, step, sharded=True)
"""


def keeping(*statements: str, **options: Any) -> RankWork:
    return rank_work("python", "-c", KEEPS, *statements, **{"carries_checkpoints": True, **options})


def run(server: ServerDouble, agent: AgentProcess, work: RankWork) -> list[str]:
    server.give(work)
    agent.start()
    assert server.exit_of(work.launch.attempt_id).exit_code == 0
    agent.kill()
    return server.lines("out", work.launch.attempt_id)


def test_what_a_program_keeps_is_there_on_the_next_machine(
    new_agent: NewAgent, server: ServerDouble, storage: StorageDouble
) -> None:
    first = keeping("put('model.pt', 'step 7')", "put('deep/er/notes', 'all of it')", attempt_id="att-0")
    assert run(server, new_agent(), first) == ["found []"]
    second = keeping("put('model.pt', 'step 8')", attempt_id="att-1", number=1)
    assert run(server, new_agent(), second) == ["found [('deep/er/notes', 'all of it'), ('model.pt', 'step 7')]"]
    third = keeping(attempt_id="att-2", number=2)
    assert run(server, new_agent(), third) == ["found [('deep/er/notes', 'all of it'), ('model.pt', 'step 8')]"]
    assert [one.step for one in server.checkpoints] == [1, 2]


def test_it_is_carried_while_the_program_runs(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    wait = "while not (run / 'go').exists(): time.sleep(0.01)"
    env = {"CRUCIBLE_CHECKPOINT_INTERVAL_S": "0.5"}
    server.give(keeping("put('model.pt', 'half way')", wait, env=env))
    agent.start()
    server.wait_for(lambda: server.checkpoints)
    assert stored(storage) == {1: {"model.pt": b"half way"}}
    touch(agent.rank_folder(), "go")
    assert server.exit_of().exit_code == 0
    assert [one.step for one in server.checkpoints] == [1]


def test_only_the_first_rank_keeps(agent: AgentProcess, server: ServerDouble, storage: StorageDouble) -> None:
    server.give(keeping("put('model.pt', 'of rank 1')", rank=1))
    agent.start()
    assert server.exit_of(rank=1).exit_code == 0
    assert stored(storage) == {}


def test_a_program_that_saves_with_the_library_is_not_disturbed(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    keeps = "open(os.environ['CRUCIBLE_KEEP'] + '/more', 'w').write('x')"
    server.give(training("save(1, {'weights': b'1'})", keeps, "save(2, {'weights': b'2'})"))
    agent.start()
    assert server.exit_of().exit_code == 0
    assert stored(storage)[2] == {"weights": b"2"}
    assert all("more" not in files for files in stored(storage).values())
    assert "saves with crucible.train" in agent.said()


def test_several_processes_of_one_rank_save_their_shards(
    agent: AgentProcess, server: ServerDouble, storage: StorageDouble
) -> None:
    server.give(rank_work("python", "-c", TWO, SHARD, carries_checkpoints=True))
    agent.start()
    assert server.exit_of().exit_code == 0
    assert stored(storage)[20] == {"shard-0": b"shard-0 of step 20", "shard-1": b"shard-1 of step 20"}
    assert {(one.step, one.shard, one.shards) for one in server.checkpoints} >= {(20, 0, 2), (20, 1, 2)}


def test_another_python_finds_what_scripts_import(agent: AgentProcess, server: ServerDouble, tmp_path: Path) -> None:
    """One without anything of Crucible, the oldest that is promised where there is one."""
    olds = sorted(Path.home().glob(".pyenv/versions/3.8.*/bin/python"))
    subprocess.run([olds[0] if olds else sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    code = "import sys; from crucible import train; train.log(1, loss=0.5); print(sys.prefix, train.init().is_crucible)"
    server.give(rank_work("python", "-c", code, python=python))
    agent.start()
    assert server.exit_of().exit_code == 0, server.lines("err")
    assert server.lines("out") == [f"{tmp_path / 'venv'} True"]
