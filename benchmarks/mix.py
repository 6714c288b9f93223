"""What people and programs ask on an ordinary day: nine looks for one change. Whatever a change leaves to the engine is
in the figure, which is why every round ends only when that is done."""

import json
import random
import statistics
import time
from collections.abc import Iterator

from benchmarks import load, requests, server, timing
from benchmarks.figure import Figure

ROUNDS = 9  # whatever else this computer does comes and goes: the median
REQUESTS = 1000  # of a round
WARM_UP = 600
# Of a hundred requests: what a page, a follower and a script ask.
LOOKS = {
    "/v1/jobs/{job}": 45,
    "/v1/jobs?limit=50": 15,
    "/v1/jobs/{job}/events": 10,
    "/v1/jobs/{job}/tasks": 8,
    "/v1/jobs/{job}/costs": 6,
    "/v1/jobs?status=running,pending&limit=20": 6,
}
CHANGES = 10


def measure() -> Iterator[Figure]:
    with server.running("--local-gpus", "1") as running:
        held = running.hold_the_slot()
        load.spread(running, asked(running, held, WARM_UP, seed=0))
        time.sleep(requests.SETTLE_S)
        before, took, rounds = running.spent(), [], []
        for seed in range(1, ROUNDS + 1):
            began = running.spent()
            took += load.spread(running, asked(running, held, REQUESTS, seed))
            time.sleep(requests.SETTLE_S)
            rounds.append((running.spent() - began).cpu_s / REQUESTS * 1000)
        spent = running.spent() - before
        yield Figure(
            name="nine looks for one change",
            value=statistics.median(rounds),
            unit="ms of server CPU",
            bound=1.0,
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={
                "requests": ROUNDS * REQUESTS,
                "clients": load.CLIENTS,
                "least_ms": min(rounds),
                "most_ms": max(rounds),
                "p50_ms": statistics.median(took) * 1000,
                "p99_ms": timing.percentile(took, 0.99) * 1000,
                "rss_mb": timing.memory_mb(running.pid),
            },
        )


def asked(running: server.Server, job: str, count: int, seed: int) -> list[bytes]:
    """In any order; no two jobs alike."""
    looks = [load.request(running, "GET", path.format(job=job)) for path, share in LOOKS.items() for _ in range(share)]
    some = []
    for number in range(count):
        if number % 100 < CHANGES:
            body = json.dumps({"spec_yaml": requests.SPEC % (seed * 1_000_000 + number)}).encode()
            some.append(load.request(running, "POST", "/v1/jobs", body))
        else:
            some.append(looks[number % len(looks)])
    random.Random(seed).shuffle(some)
    return some
