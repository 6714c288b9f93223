"""kill -9 of a saver at random moments: what it had committed stays, nothing half-committed is ever taken (F35)."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from crucible.train.checkpoint_request import CorruptCheckpoint
from crucible.train.checkpoint_store import CheckpointStore

KILLS = 60

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


def start(script: str, store: Path, *args: str, keep: str = "3") -> "subprocess.Popen[bytes]":
    env = {**os.environ, "CRUCIBLE_CHECKPOINTS": str(store), "CRUCIBLE_CHECKPOINT_KEEP": keep}
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


def test_two_savers_of_the_same_steps_agree_on_every_checkpoint(tmp_path: Path) -> None:
    savers = [start(SAME_STEPS, tmp_path / "store", str(tmp_path / name), keep="100") for name in ("a", "b")]
    outputs = [saver.communicate(b"go\n", timeout=60)[0] for saver in savers]
    assert outputs[0] == outputs[1] and len(outputs[0].splitlines()) == 30
    store = CheckpointStore(str(tmp_path / "store"))
    for step in range(30):
        content = (store.verify(step).path / "who").read_bytes()
        assert content in [str(tmp_path / name).encode() * 5000 for name in ("a", "b")]
        assert len(os.listdir(store.folder(step))) == 2
