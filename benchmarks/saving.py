"""How much a training slows down when it saves in the background: rounds with a save and rounds without take turns, and
each pair is compared. What counts is the time of the thread that trains: its CPU seconds, in which busy memory and
caches show, and all that it waits in the call. Other work on the machine does not."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.figure import Figure
from crucible import train

CHECKPOINT_MB = 64
ROUND_S = 2.0
PAIRS = 10
SIDE = 384  # of a matrix that stays in the caches, as far as others let it


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",  # where a GPU does the work, cores are left for the saver
            "CRUCIBLE_CHECKPOINTS": str(Path(folder) / "store"),
            "CRUCIBLE_CHECKPOINT_KEEP": "2",
        }
        argv = [sys.executable, "-m", "benchmarks.saving", folder]
        began = time.perf_counter()
        ran = subprocess.run(argv, env=env, stdout=subprocess.PIPE, check=True, timeout=600)
        found, wall_s = json.loads(ran.stdout), time.perf_counter() - began
    yield Figure(
        name="saving.training_slowed_pct",
        value=100 * (statistics.median(found["ratios"]) - 1),
        unit="%",
        bound=2.0,
        cpu_s=found["cpu_s"],
        wall_s=wall_s,
        context={
            "checkpoint_mb": CHECKPOINT_MB,
            "round_s": statistics.median(found["rounds_s"]),
            "call_ms": 1000 * statistics.median(found["calls_s"]),
            "whole_save_ms": 1000 * found["whole_save_s"],
            "pairs": PAIRS,
        },
    )


class Training:
    """Steps of one product of matrices each, and a model that lies on disk as a script has written it."""

    def __init__(self, folder: Path) -> None:
        self._model = folder / "model"
        self._model.write_bytes(os.urandom(CHECKPOINT_MB * 1_000_000))
        self._weights = np.random.default_rng(1).random((SIDE, SIDE), dtype=np.float32)
        self._out = np.empty_like(self._weights)
        self._steps = 1
        self._steps = max(1, int(ROUND_S / min(self.round() for _ in range(50))))
        self.calls_s: list[float] = []

    def round(self, step: int | None = None) -> float:
        """Seconds; with a save at its beginning if a step is given, which is over before the next round."""
        call_s, saving = 0.0, None
        if step is not None:
            began = time.perf_counter()
            saving = train.save_checkpoint(self._model, step, background=True)
            call_s = time.perf_counter() - began
            self.calls_s.append(call_s)
        before = time.thread_time()
        for _ in range(self._steps):
            np.matmul(self._weights, self._weights, out=self._out)
        steps_s = time.thread_time() - before
        if saving is not None:
            saving.wait()
        return call_s + steps_s

    def whole_save_s(self, step: int) -> float:
        """Of a save that the training waits for."""
        began = time.perf_counter()
        train.save_checkpoint(self._model, step)
        return time.perf_counter() - began


def _train(folder: Path) -> dict[str, object]:
    training = Training(folder)
    ratios, rounds_s = [], []
    for pair in range(PAIRS):
        # What comes second finds the caches warmer, or the machine busier: so they change places.
        order = (pair, None) if pair % 2 else (None, pair)
        took = {step: training.round(step) for step in order}
        ratios.append(took[pair] / took[None])
        rounds_s.append(took[None])
    return {
        "ratios": ratios,
        "rounds_s": rounds_s,
        "calls_s": training.calls_s,
        "whole_save_s": training.whole_save_s(PAIRS),
        "cpu_s": time.process_time(),
    }


if __name__ == "__main__":
    print(json.dumps(_train(Path(sys.argv[1]))))
