"""Reading a job file: what every submit, plan and validate begins with."""

from collections.abc import Iterator

from benchmarks import timing
from benchmarks.figure import Figure
from crucible import spec

RUNS = 300


def measure() -> Iterator[Figure]:
    for name, text in (("minimal", spec.minimal_example()), ("full", spec.example())):
        spec.load(text)
        before = timing.own()
        for _ in range(RUNS):
            spec.load(text)
        spent = timing.own() - before
        yield Figure(
            name=f"spec.load, {name} example",
            value=spent.cpu_s / RUNS * 1000,
            unit="ms CPU",
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={"runs": RUNS, "bytes": len(text)},
        )
