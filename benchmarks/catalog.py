"""Reading the shipped catalog in a fresh process: what every server begins with."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks import timing
from benchmarks.figure import Figure

RUNS = 7
BOUND_MS = 50.0
# Without numpy, which the server imports anyway; with the catalog's own modules already there.
SCRIPT = """
import time
import numpy
from crucible import catalog
before = time.process_time()
shipped = catalog.load()
rows = len(shipped.table)
print((time.process_time() - before) * 1000, rows)
"""


def measure() -> Iterator[Figure]:
    before = timing.own()
    runs = [_run() for _ in range(RUNS)]
    spent = timing.own() - before
    yield Figure(
        name="catalog.load_ms",
        value=timing.percentile([ms for ms, _ in runs], 0.5),
        unit="ms CPU",
        bound=BOUND_MS,
        cpu_s=sum(ms for ms, _ in runs) / 1000,
        wall_s=spent.wall_s,
        context={"runs": RUNS, "rows": runs[0][1]},
    )


def _run() -> tuple[float, int]:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    ms, rows = done.stdout.split()
    return float(ms), int(rows)
