"""What one request costs the server, with eight clients asking at once. Whatever the server does besides while they ask
is in the figure; so is what a submit leaves to be done, which is why its measurement ends only when that is done."""

import json
import statistics
import time
from collections.abc import Iterator, Sequence

from benchmarks import load, server, timing
from benchmarks.figure import Figure

READS = 4000
LISTS = 2000
SUBMITS = 2000
WARM_UP = 200
# What submits leave to the engine is done within a cycle or two.
SETTLE_S = 2.0
IDLE_S = 10.0
SPEC = """\
job:
  name: submitted
  command: [python, train.py, --epochs, '3']
  resources: {gpus: 1, cpu_memory: 1GB, estimated_hours: 2}
  env: {SEED: '%d', MODE: bench}
  retry: {limit: 2, delay: 10s}
"""


def measure() -> Iterator[Figure]:
    with server.running("--local-gpus", "1") as running:
        job_id = running.hold_the_slot()
        load.spread(running, _submits(running, 60))
        yield _figure(running, "authenticated read", 0.5, [load.request(running, "GET", f"/v1/jobs/{job_id}")] * READS)
        yield _figure(running, "list of 50", 1.0, [load.request(running, "GET", "/v1/jobs?limit=50")] * LISTS)
        yield _figure(running, "submit", 2.5, _submits(running, SUBMITS), settle_s=SETTLE_S)
        yield _idle(running)


def _submits(running: server.Server, count: int) -> list[bytes]:
    """No two alike."""
    bodies = [json.dumps({"spec_yaml": SPEC % seed}).encode() for seed in range(count)]
    return [load.request(running, "POST", "/v1/jobs", body) for body in bodies]


def _figure(
    running: server.Server, name: str, bound: float, requests: Sequence[bytes], settle_s: float = 0.0
) -> Figure:
    load.spread(running, requests[:WARM_UP])
    time.sleep(settle_s)
    before = running.spent()
    took = load.spread(running, requests)
    answered = running.spent()
    time.sleep(settle_s)
    spent = running.spent() - before
    return Figure(
        name=name,
        value=spent.cpu_s / len(requests) * 1000,
        unit="ms of server CPU",
        bound=bound,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={
            "requests": len(requests),
            "clients": load.CLIENTS,
            "per_second": len(requests) / (answered.wall_s - before.wall_s),
            "p50_ms": statistics.median(took) * 1000,
            "p99_ms": timing.percentile(took, 0.99) * 1000,
        },
    )


def _idle(running: server.Server) -> Figure:
    waiting = running.count("pending")
    before = running.spent()
    time.sleep(IDLE_S)
    spent = running.spent() - before
    return Figure(
        name="idle with waiting jobs",
        value=spent.cpu_s / spent.wall_s * 100,
        unit="% of a core",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"waiting": waiting, "rss_mb": timing.memory_mb(running.pid)},
    )
