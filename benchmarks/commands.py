"""What a command costs before and besides its work: the start of the interpreter is in every figure."""

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import server, timing
from benchmarks.figure import Figure

RUNS = 15
JOBS = 50
CRUCIBLE = str(Path(sys.executable).parent / "crucible")


def measure() -> Iterator[Figure]:
    with server.running("--local-gpus", "1") as running:
        running.hold_the_slot()
        for _ in range(JOBS - 1):
            running.submit(server.WAITING)
        yield _command(running, 0.05, "--version")
        yield _command(running, 0.12, "submit", "--help")
        yield _command(running, 0.25, "ps")


def _command(running: server.Server, bound: float, *arguments: str) -> Figure:
    env = server.environment(running.home)
    timing.run_child([CRUCIBLE, *arguments], env)  # leaves the compiled files behind
    runs = [timing.run_child([CRUCIBLE, *arguments], env) for _ in range(RUNS)]
    return Figure(
        name=f"crucible {' '.join(arguments)}",
        value=statistics.median(run.cpu_s for run in runs),
        unit="s CPU",
        bound=bound,
        cpu_s=sum(run.cpu_s for run in runs),
        wall_s=sum(run.wall_s for run in runs),
        context={"runs": RUNS, "worst": max(run.cpu_s for run in runs)},
    )
