"""Cancelling everything that waits, as somebody does who sees that the whole sweep was a mistake."""

from collections.abc import Iterator

from benchmarks import load, server, timing
from benchmarks.figure import Figure

JOBS = 1000


def measure() -> Iterator[Figure]:
    with server.running("--local-gpus", "1") as running:
        running.hold_the_slot()
        ids = [running.submit(server.WAITING) for _ in range(JOBS)]
        requests = [load.request(running, "POST", f"/v1/jobs/{job_id}/cancel") for job_id in ids]
        before = running.spent()
        load.spread(running, requests)
        answered = running.spent() - before
        timing.until(lambda: running.count("cancelled") == JOBS, "the last job to be cancelled")
        spent = running.spent() - before
    yield Figure(
        name="cancel 1,000 waiting jobs",
        value=spent.wall_s,
        unit="s wall",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"jobs": JOBS, "goal": 1.0, "answered_s": answered.wall_s, "cpu_ms_each": spent.cpu_s / JOBS * 1000},
    )
