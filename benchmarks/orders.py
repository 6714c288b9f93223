"""A real server that buys in the Lab: every job gets a machine of its own, which boots, fetches the agent, runs the job
and ends. CPU seconds are those of the server's process; the Lab's are told beside them."""

import time
from collections.abc import Iterator

from benchmarks import lab, server, timing
from benchmarks.figure import Figure
from crucible.lab.running import Control, Running

JOBS = 40
HELD = 20
IDLE_S = 15.0
PATIENCE_S = 240.0

SPEC = """\
job:
  name: {name}
  command: [{command}]
  resources: {{gpus: 1, gpu_type: A10G}}
  constraints: {{providers: [aws]}}
"""


def measure() -> Iterator[Figure]:
    with lab.running() as cloud, server.running(more=cloud.environment()) as one:
        control = Control(cloud)
        one.submit(SPEC.format(name="warms up", command="'true'"))
        timing.until(lambda: one.count("completed") == 1, "the first job", PATIENCE_S)
        _until_empty(control)
        yield from _orders(one, cloud, control)
        yield _held(one, cloud, control)


def _orders(one: server.Server, cloud: Running, control: Control) -> Iterator[Figure]:
    after = control.events()[-1]["number"]
    before, lab_before = one.spent(), timing.of_process(cloud.pid)
    for number in range(JOBS):
        one.submit(SPEC.format(name=f"order {number}", command="'true'"))
    timing.until(lambda: one.count("completed") == JOBS + 1, "the jobs", PATIENCE_S)
    _until_empty(control)
    spent, lab_spent = one.spent() - before, timing.of_process(cloud.pid) - lab_before
    launched = [event["at"] for event in control.events(after) if event["what"] == "launched"]
    if len(launched) != JOBS:
        raise RuntimeError(f"{len(launched)} machines were bought for {JOBS} jobs")
    yield Figure(
        name="orders of a server",
        value=(JOBS - 1) / (launched[-1] - launched[0]),
        unit="per s",
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"jobs": JOBS, "until_all_ended_s": spent.wall_s},
    )
    yield Figure(
        name="server CPU per job on a machine of its own",
        value=spent.cpu_s / JOBS * 1000,
        unit="ms CPU",
        bound=150,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"jobs": JOBS, "lab_cpu_ms_per_job": lab_spent.cpu_s / JOBS * 1000},
    )


def _held(one: server.Server, cloud: Running, control: Control) -> Figure:
    """Machines that work and say nothing: listings, heartbeats, books."""
    for number in range(HELD):
        one.submit(SPEC.format(name=f"held {number}", command="sleep, '3600'"))
    timing.until(lambda: one.count("running") == HELD, "machines at work", PATIENCE_S)
    before, lab_before = one.spent(), timing.of_process(cloud.pid)
    time.sleep(IDLE_S)
    spent, lab_spent = one.spent() - before, timing.of_process(cloud.pid) - lab_before
    return Figure(
        name=f"server with {HELD} machines at work",
        value=spent.cpu_s / spent.wall_s / HELD * 100,
        unit="% of a core per machine",
        bound=0.5,
        cpu_s=spent.cpu_s,
        wall_s=spent.wall_s,
        context={"machines": HELD, "lab_percent_per_machine": lab_spent.cpu_s / lab_spent.wall_s / HELD * 100},
    )


def _until_empty(control: Control) -> None:
    """Nothing is paid for any more."""
    timing.until(lambda: not control.status()["machines"], "the end of the machines", PATIENCE_S)
