"""What a person waits for, by the clock on the wall: for their process to start, and for its words to arrive."""

import statistics
import time
from collections.abc import Iterator

from benchmarks import server, timing
from benchmarks.figure import Figure

STARTS = 20
LINES = 600

# Its first line is the time at which it started; `date` itself takes a millisecond.
STARTS_AT = "job: {name: first line, command: [date, '+%s.%N']}"
# Uneven pauses, so that lines meet every moment of the agent's and the server's rhythms.
TALKS = f"""\
job:
  name: talks
  command:
    - python3
    - -c
    - |
      import random, time
      random.seed(1)
      for _ in range({LINES}):
          time.sleep(random.uniform(0.001, 0.03))
          print(time.time(), flush=True)
"""


def measure() -> Iterator[Figure]:
    with server.running() as running:
        yield _first_line(running)
        yield _follower(running)


def _first_line(running: server.Server) -> Figure:
    _start_delay(running)
    before = running.spent()
    delays = [_start_delay(running) for _ in range(STARTS)]
    spent = running.spent() - before
    return Figure(
        name="submit to first line",
        value=statistics.median(delays),
        unit="s wall",
        bound=0.5,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"runs": STARTS, "worst": max(delays), "best": min(delays)},
    )


def _start_delay(running: server.Server) -> float:
    asked = time.time()
    job_id = running.submit(STARTS_AT)
    timing.until(lambda: running.status(job_id) == "completed", "the job")
    return float(_follow(running, job_id)[0][1]) - asked


def _follower(running: server.Server) -> Figure:
    before = running.spent()
    lines = _follow(running, running.submit(TALKS))
    spent = running.spent() - before
    delays = [heard - float(said) for heard, said in lines]
    if len(delays) != LINES:
        raise RuntimeError(f"{len(delays)} of {LINES} lines arrived")
    return Figure(
        name="log line to follower, p99",
        value=timing.percentile(delays, 0.99),
        unit="s wall",
        bound=0.3,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"lines": LINES, "p50": statistics.median(delays), "worst": max(delays)},
    )


def _follow(running: server.Server, job_id: str) -> list[tuple[float, str]]:
    """Every line with the time at which it arrived."""
    connection = running.connect()
    connection.request("GET", f"/v1/jobs/{job_id}/logs?follow=true", headers=running.headers)
    answer = connection.getresponse()
    lines = []
    while line := answer.readline():
        lines.append((time.time(), line.decode().strip()))
    connection.close()
    return lines
