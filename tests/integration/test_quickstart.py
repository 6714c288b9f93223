"""The quickstart training as plain processes: killed and resumed it ends with the loss of an undisturbed run (F3)."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crucible.spec import load
from crucible.train.checkpoint_store import CheckpointStore

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
QUICKSTART = EXAMPLES / "quickstart" / "train.py"
STEPS = 120
HALF_WAY = re.compile(r"step 60 loss")
# A lost peer must be noticed at once, not after a timeout.
AT_ONCE_S = 10

Process = subprocess.Popen[str]


class Gang:
    """Two ranks of one attempt, as Crucible starts them."""

    def __init__(self, folder: Path, attempt: int = 1, world_size: int = 2) -> None:
        self.folder = folder
        port = free_port()
        self.ranks = [self._start(rank, world_size, attempt, port) for rank in range(world_size)]

    def _start(self, rank: int, world_size: int, attempt: int, port: int) -> Process:
        run_dir = self.folder / f"attempt-{attempt}" / str(rank)
        run_dir.mkdir(parents=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CRUCIBLE_")}
        ours = {
            "RANK": rank,
            "WORLD_SIZE": world_size,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "STEPS": STEPS,
            "STEP_SECONDS": 0.004,
            "SAVE_EVERY": 20,
            "CRUCIBLE_RUN_DIR": run_dir,
            "CRUCIBLE_ATTEMPT": attempt,
            "CRUCIBLE_CHECKPOINTS": (self.folder / "checkpoints").as_uri(),
            "CRUCIBLE_CHECKPOINT_KEEP": 3,
        }
        return subprocess.Popen(
            [sys.executable, str(QUICKSTART)],
            env={**inherited, **{name: str(value) for name, value in ours.items()}},
            cwd=run_dir,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self) -> tuple[str, list[int]]:
        """What rank 0 printed, and how each rank ended."""
        outputs = [rank.communicate(timeout=60) for rank in self.ranks]
        return outputs[0][0], [rank.returncode for rank in self.ranks]

    def wait_until_half_way(self) -> str:
        """What rank 0 printed so far."""
        stdout, seen = self.ranks[0].stdout, ""
        assert stdout is not None
        while not HALF_WAY.search(seen):
            line = stdout.readline()
            assert line, self.ranks[0].communicate()[1]
            seen += line
        return seen


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"step \d+ loss ([\d.]+)", output)]


def final_loss(output: str) -> str:
    last = output.strip().splitlines()[-1]
    assert re.fullmatch(r"final loss \d\.\d{10}", last), output
    return last


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    output, codes = Gang(tmp_path_factory.mktemp("undisturbed")).finish()
    assert codes == [0, 0] and "resumed" not in output
    assert losses(output)[-1] < losses(output)[0] / 5, "it learns"
    return final_loss(output)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_rank_ends_the_others_and_the_resumed_run_ends_with_the_same_loss(
    tmp_path: Path, undisturbed: str, victim: int
) -> None:
    gang = Gang(tmp_path)
    gang.wait_until_half_way()
    gang.ranks[victim].send_signal(signal.SIGKILL)
    killed_at = time.monotonic()
    _, codes = gang.finish()
    assert codes[victim] == -signal.SIGKILL and codes[1 - victim] == 1
    assert time.monotonic() - killed_at < AT_ONCE_S
    output, codes = Gang(tmp_path, attempt=2).finish()
    assert codes == [0, 0] and re.search(r"resumed from step (40|60|80|100)\n", output), output
    assert final_loss(output) == undisturbed


def test_a_run_asked_to_stop_saves_and_goes_on_from_that_very_step(tmp_path: Path, undisturbed: str) -> None:
    gang = Gang(tmp_path)
    gang.wait_until_half_way()
    gang.ranks[1].send_signal(signal.SIGTERM)
    output, codes = gang.finish()
    assert codes == [143, 143]
    stopped = re.search(r"stopped at step (\d+)\n", output)
    assert stopped and CheckpointStore(str(tmp_path / "checkpoints")).steps()[0] == int(stopped[1])
    output, codes = Gang(tmp_path, attempt=2).finish()
    assert codes == [0, 0] and f"resumed from step {stopped[1]}\n" in output
    assert final_loss(output) == undisturbed


def test_a_corrupt_newest_checkpoint_costs_steps_and_not_the_result(tmp_path: Path, undisturbed: str) -> None:
    gang = Gang(tmp_path)
    gang.wait_until_half_way()
    for rank in gang.ranks:
        rank.send_signal(signal.SIGKILL)
    gang.finish()
    store = CheckpointStore(str(tmp_path / "checkpoints"))
    newest, older = store.committed()[:2]
    newest.path.write_bytes(newest.path.read_bytes()[:-1])
    output, codes = Gang(tmp_path, attempt=2).finish()
    assert codes == [0, 0] and f"resumed from step {older.step}\n" in output
    assert final_loss(output) == undisturbed


def test_it_runs_alone_without_crucible(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CRUCIBLE_", "MASTER_", "RANK"))}
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(QUICKSTART)],
            cwd=tmp_path,
            env={**env, "STEPS": "60", "STEP_SECONDS": "0"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        runs.append(done.stdout)
    assert "resumed from step 60" in runs[1] and final_loss(runs[0]) == final_loss(runs[1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints"]


@pytest.mark.parametrize("name", ["quickstart", "hello"])
def test_the_specs_of_the_examples_are_valid(name: str) -> None:
    loaded = load((EXAMPLES / name / "job.yaml").read_text())
    assert loaded.spec.name == name
