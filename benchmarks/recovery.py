"""A spot machine is taken away while a job trains on it: how long until it trains again on another. Boots take no time
in this Lab, so that all of it is ours: noticing, saving, planning, buying, fetching agent, code and checkpoint."""

import statistics
import time
from collections.abc import Iterator

from benchmarks import lab, server, timing
from benchmarks.figure import Figure
from crucible.client.api import Client
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from crucible.lab.running import Control

TIMES = 5
NOTICE_S = 15
PATIENCE_S = 120.0
BOUND_S = 5.0

# Its lines tell when it trained again, by the clock on the wall.
SPEC = """\
job:
  name: trains
  command:
    - python
    - -c
    - |
      import time
      from crucible import train
      found = train.latest_checkpoint()
      step = found.step if found else 0
      print(f"trains {time.time()} {step}", flush=True)
      while True:
          time.sleep(0.1)
          step += 1
          must_stop = train.should_stop()
          if step % 5 == 0 or must_stop:
              open("model", "w").write("x" * 1_000_000)
              train.save_checkpoint("model", step)
          if must_stop:
              raise SystemExit(143)
  resources: {gpus: 1, gpu_type: [T4, L4, A10G]}
  constraints: {providers: [aws], allow_spot: true, strategy: cheapest}
"""


def measure() -> Iterator[Figure]:
    with lab.running() as cloud, server.running(more=cloud.environment()) as one:
        control = Control(cloud)
        host, port = one.address
        client = Client(Transport(Endpoint(f"http://{host}:{port}", one.token)))
        job = one.submit(SPEC)
        for name, notice_s in (("after a notice", NOTICE_S), ("after a sudden death", 0)):
            before = one.spent()
            took = [_recovery(client, control, job, notice_s) for _ in range(TIMES)]
            spent = one.spent() - before
            yield Figure(
                name=f"recovery {name}, preemption to training",
                value=statistics.median(took),
                unit="s wall",
                bound=BOUND_S,
                cpu_s=spent.cpu_s,
                wall_s=spent.wall_s,
                context={"times": TIMES, "worst": max(took)},
            )


def _recovery(client: Client, control: Control, job: str, notice_s: float) -> float:
    timing.until(lambda: _has_saved(client, job), "a checkpoint of this attempt", PATIENCE_S)
    starts = len(_starts(client, job))
    victim = next(machine["id"] for machine in control.status()["machines"] if machine["state"] == "running")
    taken_at = time.time()
    control.preempt(victim, notice_s=notice_s)
    timing.until(lambda: len(_starts(client, job)) > starts, "the next attempt", PATIENCE_S)
    again_at, step = _starts(client, job)[-1]
    if step == 0:
        raise RuntimeError("the next attempt began from nothing")
    return again_at - taken_at


def _has_saved(client: Client, job: str) -> bool:
    """The attempt that runs has a checkpoint of its own in storage."""
    began = _starts(client, job)
    saved = [checkpoint["step"] for checkpoint in client.checkpoints(job)]
    return bool(began) and max(saved, default=0) > began[-1][1]


def _starts(client: Client, job: str) -> list[tuple[float, int]]:
    lines = [record["x"].split() for record in client.logs(job) if record["x"].startswith("trains ")]
    return [(float(at), int(step)) for _, at, step in lines]
