"""How fast a talkative job's log gets from its pipe, through the agent's spool and the server's segments, to a reader
who can see the whole of it."""

import time
from collections.abc import Iterator

from benchmarks import server, timing
from benchmarks.figure import Figure

LINES = 400_000
LINE_BYTES = 100
SPEC = f"""\
job:
  name: talks a lot
  command: [python3, -c, "for n in range({LINES}): print('%0{LINE_BYTES - 1}d' % n)"]
"""


def measure() -> Iterator[Figure]:
    megabytes = LINES * LINE_BYTES / 1e6
    with server.running() as running:
        before = running.spent()
        job_id = running.submit(SPEC)
        agent_cpu_s = _agent_cpu_s(running, job_id)
        spent = running.spent() - before
        yield Figure(
            name="log, pipe to server",
            value=megabytes / spent.wall_s,
            unit="MB/s",
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={"lines": LINES, "lines_per_s": LINES / spent.wall_s, "agent_cpu_s": agent_cpu_s},
        )
        before = running.spent()
        lines = _read(running, job_id)
        spent = running.spent() - before
        if lines != [f"{n:0{LINE_BYTES - 1}d}" for n in range(LINES)]:
            raise RuntimeError("the log is not what the job wrote")
        yield Figure(
            name="log, server to reader",
            value=megabytes / spent.wall_s,
            unit="MB/s",
            cpu_s=spent.cpu_s,
            wall_s=spent.wall_s,
            context={"lines": LINES},
        )


def _agent_cpu_s(running: server.Server, job_id: str) -> float:
    """Wait for the job; what its agent had used when it was last seen."""
    used = 0.0
    deadline = time.perf_counter() + 300
    while running.status(job_id) != "completed" and time.perf_counter() < deadline:
        used = max([used, *(timing.of_process(pid).cpu_s for pid in running.agents())])
        time.sleep(0.05)
    return used


def _read(running: server.Server, job_id: str) -> list[str]:
    connection = running.connect()
    connection.request("GET", f"/v1/jobs/{job_id}/logs", headers=running.headers)
    text = connection.getresponse().read().decode()
    connection.close()
    return text.splitlines()
