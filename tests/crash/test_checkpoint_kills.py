"""kill -9 of a saver at random moments: what it had committed stays, nothing half-committed is ever taken (F35)."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from crucible.train.checkpoint_request import CorruptCheckpoint
from crucible.train.checkpoint_store import Checkpoint, CheckpointStore

KILLS = 60
GANGS = 20
RANKS = 3

SAVER = """
import os, sys
from crucible import train

source, step = sys.argv[1], int(sys.argv[2])
os.makedirs(source, exist_ok=True)
while True:
    step += 1
    for part in range(4):
        with open(os.path.join(source, "part-%d" % part), "wb") as file:
            file.write(b"%d " % step * 20000)
    train.save_checkpoint(source, step)
    print(step, flush=True)
"""

SAME_STEPS = """
import os, sys
from crucible import train

source = sys.argv[1]
os.makedirs(source)
with open(os.path.join(source, "who"), "wb") as file:
    file.write(sys.argv[1].encode() * 5000)
sys.stdin.readline()
for step in range(30):
    print(step, train.save_checkpoint(source, step).manifest_sha256, flush=True)
"""

ONE_OF_A_GANG = """
import os, sys, time
from crucible import train

folder, step = sys.argv[1], int(sys.argv[2])
run = train.init()
source = os.path.join(folder, "source-%d" % run.rank)
os.makedirs(source, exist_ok=True)

def meet(step):
    # As ranks do at every step of a training.
    open(os.path.join(folder, "met-%d-%d" % (step, run.rank)), "w").close()
    while not all(os.path.exists(os.path.join(folder, "met-%d-%d" % (step, rank))) for rank in range(run.world_size)):
        time.sleep(0.0005)

def write(word):
    for part in range(3):
        with open(os.path.join(source, "part-%d" % part), "wb") as file:
            file.write(word * 20000)

before = None
while True:
    step += 1
    meet(step)
    write(b"%d %d %d|" % (step, run.rank, run.attempt))
    saving = train.save_checkpoint(source, step, sharded=True, background=True)
    write(b"torn")
    if before is not None:
        print(before.wait(0).step, flush=True)
    before = saving
"""


def start(script: str, store: Path, *args: str, keep: str = "3", **more: str) -> "subprocess.Popen[bytes]":
    env = {**os.environ, "CRUCIBLE_CHECKPOINTS": str(store), "CRUCIBLE_CHECKPOINT_KEEP": keep, **more}
    env.pop("CRUCIBLE_RUN_DIR", None)
    return subprocess.Popen(
        [sys.executable, "-c", script, *args], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_a_saver_killed_at_any_moment_leaves_whole_checkpoints_only(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    store = CheckpointStore(str(tmp_path / "store"))
    reached, torn = 0, 0
    for kill in range(KILLS):
        process = start(SAVER, tmp_path / "store", str(tmp_path / f"source-{kill}"), str(reached))
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(chance.uniform(0, 0.04))  # the moment of death, not a wait for something
        process.send_signal(signal.SIGKILL)
        saved = [int(line) for line in (first + process.communicate()[0]).split()]
        skipped: list[CorruptCheckpoint] = []
        found = store.latest(skipped.append)
        assert found is not None and found.step in (saved[-1], saved[-1] + 1), f"seed {seed}, kill {kill}"
        assert all(p.read_bytes() == b"%d " % found.step * 20000 for p in found.path.iterdir())
        assert all(store.find(step) is not None for step in saved[-2:]), f"seed {seed}, kill {kill}"
        reached, torn = found.step, torn + len(skipped)
    assert reached >= KILLS
    print(f"{KILLS} kills, {torn} torn saves passed over, seed {seed}")


def test_a_gang_killed_while_it_saves_in_the_background_leaves_shards_of_one_attempt_or_none(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    store = CheckpointStore(str(tmp_path / "store"))
    reached, torn = 0, 0
    for attempt in range(1, GANGS + 1):
        folder = tmp_path / f"attempt-{attempt}"
        folder.mkdir()
        gang = start_gang(tmp_path / "store", folder, attempt, reached)
        saved = min(kill_gang(gang, chance))
        skipped: list[CorruptCheckpoint] = []
        found = store.latest(skipped.append)
        assert found is not None and saved <= found.step <= saved + 2, f"seed {seed}, attempt {attempt}"
        assert_of_one_attempt(found)
        assert store.find(found.step - 1) is not None or found.step == 1, f"seed {seed}, attempt {attempt}"
        reached, torn = found.step, torn + len(skipped)
    assert reached >= GANGS
    print(f"{GANGS} gangs killed, {torn} torn checkpoints passed over, seed {seed}")


def start_gang(store: Path, folder: Path, attempt: int, step: int) -> "list[subprocess.Popen[bytes]]":
    env = {"WORLD_SIZE": str(RANKS), "CRUCIBLE_ATTEMPT": str(attempt), "CRUCIBLE_JOB_ID": "job-1"}
    return [
        start(ONE_OF_A_GANG, store, str(folder), str(step), **env, RANK=str(rank), LOCAL_RANK=str(rank))
        for rank in range(RANKS)
    ]


def kill_gang(gang: "list[subprocess.Popen[bytes]]", chance: random.Random) -> list[int]:
    """One after another, as machines vanish; returns the last step that each rank is known to have saved."""
    first = [process.stdout.readline() for process in gang if process.stdout is not None]
    for process in chance.sample(gang, len(gang)):
        time.sleep(chance.uniform(0, 0.03))  # the moment of death, not a wait for something
        process.send_signal(signal.SIGKILL)
    return [int((one + process.communicate()[0]).split()[-1]) for one, process in zip(first, gang, strict=True)]


def assert_of_one_attempt(found: Checkpoint) -> None:
    for rank, shard in enumerate(found.shards):
        expected = b"%d %d %d|" % (found.step, rank, found.origin.attempt) * 20000
        assert all((shard / f"part-{part}").read_bytes() == expected for part in range(3))


def test_two_savers_of_the_same_steps_agree_on_every_checkpoint(tmp_path: Path) -> None:
    savers = [start(SAME_STEPS, tmp_path / "store", str(tmp_path / name), keep="100") for name in ("a", "b")]
    outputs = [saver.communicate(b"go\n", timeout=60)[0] for saver in savers]
    assert outputs[0] == outputs[1] and len(outputs[0].splitlines()) == 30
    store = CheckpointStore(str(tmp_path / "store"))
    for step in range(30):
        content = (store.verify(step).path / "who").read_bytes()
        assert content in [str(tmp_path / name).encode() * 5000 for name in ("a", "b")]
        assert len(os.listdir(store.folder(step))) == 2
