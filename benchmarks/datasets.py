"""Hashing a dataset of 20,000 files beside `sha256sum` over the same files by two processes, in turns. The files are in
the page cache for both."""

import os
import random
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks import timing
from benchmarks.figure import Figure
from crucible.client.tree import read_tree

FILES = 20_000
SIZES = (1_000, 4_000, 16_000, 40_000)
ROUNDS = 5
# Of the rate of sha256sum.
LEAST_RATE = 0.8


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        size = _make_files(Path(folder))
        began = timing.own()
        rounds = [
            (_wall_s(lambda: _sha256sum(folder)), _wall_s(lambda: read_tree(Path(folder)))) for _ in range(ROUNDS)
        ]
        spent = timing.own() - began
    theirs, ours = (statistics.median(one[which] for one in rounds) for which in (0, 1))
    yield Figure(
        name="datasets.hash_time_over_sha256sum",
        value=statistics.median(mine / other for other, mine in rounds),
        unit="x",
        bound=1 / LEAST_RATE,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={
            "files": FILES,
            "mb": size / 1e6,
            "processes": os.cpu_count(),
            "mb_per_s": size / 1e6 / ours,
            "sha256sum_mb_per_s": size / 1e6 / theirs,
        },
    )


def _make_files(folder: Path) -> int:
    dice, total = random.Random(1), 0
    for number in range(FILES):
        path = folder / f"d{number % 200:03}" / f"f{number:05}.bin"
        path.parent.mkdir(exist_ok=True)
        total += path.write_bytes(dice.randbytes(dice.choice(SIZES)))
    return total


def _sha256sum(folder: str) -> None:
    """As a person would: find | xargs -P2 sha256sum."""
    find = subprocess.Popen(["find", folder, "-type", "f", "-print0"], stdout=subprocess.PIPE)
    argv = ["xargs", "-0", "-P2", "-n", "512", "sha256sum"]
    subprocess.run(argv, stdin=find.stdout, stdout=subprocess.DEVNULL, check=True)
    find.wait()


def _wall_s(work: Callable[[], object]) -> float:
    before = timing.own()
    work()
    return (timing.own() - before).wall_s
