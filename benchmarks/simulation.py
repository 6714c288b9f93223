"""Whole lifecycles per CPU second: the engine of production on a virtual loop, with the faults of the tests. It is what
bounds how much the tests can try, and how many jobs one server could carry."""

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import timing
from benchmarks.figure import Figure

SEED = 7
JOBS = 300


def measure() -> Iterator[Figure]:
    tests = Path(__file__).parent.parent / "tests"
    sys.path[:0] = [str(tests / "sim"), str(tests)]
    from simulation import Faults, World

    before = timing.own()
    outcome = World(SEED, JOBS, Faults()).run()
    spent = timing.own() - before
    if outcome.broken:
        raise RuntimeError(f"the simulation found {outcome.broken}")
    yield Figure(
        name="simulated lifecycles",
        value=JOBS / spent.cpu_s,
        unit="per CPU second",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"jobs": JOBS, "goal": 15, "virtual_hours": outcome.virtual_s / 3600},
    )
