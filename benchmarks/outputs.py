"""What outputs cost: a folder that nobody used, beside a rank without one, on a real agent in turns; and reading a tree
of 10,000 small files as the agent does it."""

import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import timing
from benchmarks.figure import Figure

RUNS = 15
FILES = 10_000
LIMITS = {"max_bytes": 1 << 40, "max_files": 400_000, "within_s": 600.0}


def measure() -> Iterator[Figure]:
    began = timing.own()
    with _agent() as (server, agent):
        _exit_s(server, "warm", None)
        rounds = [_round(server, n) for n in range(RUNS)]
        spent = timing.of_process(agent.process.pid)
    plain, with_folder = (statistics.median(one[which] for one in rounds) for which in (False, True))
    yield Figure(
        name="outputs.empty_folder",
        value=1000 * (with_folder - plain),
        unit="ms",
        bound=50,
        cpu_s=spent.cpu_s,
        wall_s=(timing.own() - began).wall_s,
        context={"runs": RUNS, "without_ms": 1000 * plain, "with_ms": 1000 * with_folder},
    )
    yield _reading()


def _round(server: Any, number: int) -> dict[bool, float]:
    """With a folder and without, each time another one first."""
    order = (False, True) if number % 2 else (True, False)
    return {has: _exit_s(server, f"{number}-{has}", LIMITS if has else None) for has in order}


def _reading() -> Figure:
    from crucible.agent.output_tree import OutputTree

    with tempfile.TemporaryDirectory(prefix="crucible-bench-") as folder:
        for number in range(FILES):
            (Path(folder) / f"f{number:05}").write_bytes(b"%d" % number * 50)
        began = timing.own()
        tree = OutputTree(folder, FILES, 1 << 40, threading.Event())
        spent = timing.own() - began
    return Figure(
        name="outputs.read_10k_files",
        value=spent.cpu_s,
        unit="s CPU",
        bound=1.5,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"files": FILES, "objects": len(tree.objects)},
    )


def _exit_s(server: Any, attempt: str, limits: dict[str, float] | None) -> float:
    """From the work to its exit, as the server sees it."""
    from agent_process import rank_work

    began = time.perf_counter()
    server.give(rank_work("true", attempt_id=attempt, output=limits))
    server.exit_of(attempt, timeout_s=60)
    return time.perf_counter() - began


@contextmanager
def _agent() -> Iterator[tuple[Any, Any]]:
    tests = str(Path(__file__).parent.parent / "tests")
    if tests not in sys.path:
        sys.path.insert(0, tests)
    from agent_process import AgentProcess
    from crucible.agent import bundle
    from doubles.agent_server import running_double

    with tempfile.TemporaryDirectory(prefix="crucible-bench-", ignore_cleanup_errors=True) as folder:
        pyz = Path(folder) / "agent.pyz"
        bundle.build(pyz)
        with running_double() as server:
            agent = AgentProcess(pyz, Path(folder) / "node", server)
            try:
                yield server, agent.start()
            finally:
                agent.destroy()
