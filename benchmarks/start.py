"""A server's way from the start of its process to its first answer, in a folder that it has never seen."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import server, timing
from benchmarks.figure import Figure

RUNS = 7


def measure() -> Iterator[Figure]:
    starts = [_start() for _ in range(RUNS + 1)][1:]  # the first may still compile
    cpu, wall = sum(spent.cpu_s for spent, _ in starts), sum(spent.wall_s for spent, _ in starts)
    yield Figure(
        name="server ready",
        value=statistics.median(spent.cpu_s for spent, _ in starts),
        unit="s CPU",
        bound=1.5,
        cpu_s=cpu,
        wall_s=wall,
        context={"runs": RUNS, "median_wall_s": statistics.median(spent.wall_s for spent, _ in starts)},
    )
    yield Figure(
        name="server ready, memory",
        value=statistics.median(memory for _, memory in starts),
        unit="MB RSS",
        bound=130,
        cpu_s=cpu,
        wall_s=wall,
        context={"runs": RUNS},
    )


def _start() -> tuple[timing.Spent, float]:
    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        began = timing.own()
        one = server.launch(Path(folder))
        try:
            timing.until(one.is_ready, "the server")
            spent = one.spent()
            return timing.Spent(spent.cpu_s, spent.wall_s - began.wall_s), timing.memory_mb(one.pid)
        finally:
            one.close()
