"""Work that has cost something: a training on spot machines of a Lab that lost one of them and went on elsewhere, and a
job that waits for machines that nobody has."""

import json
import sys
from pathlib import Path

from crash.server_process import until
from crucible.client.api import TERMINAL
from lab_site import LabSite

WITHIN_S = 180.0
STEPS = 600
# A step takes its time until the file is there.
SCRIPT = """
import os, pathlib, time
from crucible import train
found = train.latest_checkpoint()
step = found.step if found else 0
while step < {steps}:
    step += 1
    train.log(step, loss=1 / step, lr=0.0003 * step)
    train.progress(step, {steps})
    time.sleep(0.002 if os.path.exists({hurry!r}) else 0.1)
    if train.should_stop() or step % 40 == 0:
        pathlib.Path("state.bin").write_bytes(bytes(12345))
        train.save_checkpoint("state.bin", step, {{"loss": 1 / step}})
    if train.should_stop():
        raise SystemExit(143)
"""
SPEC = """\
job:
  name: {name}
  team: vision
  command: [{python}, -c, {script}]
  resources: {{gpus: {gpus}, gpu_type: V100, estimated_hours: 0.02}}
  constraints: {{providers: [aws], strategy: cheapest, allow_spot: {spot}, budget: 50}}
"""


def trained(site: LabSite, folder: Path) -> str:
    """The job, when it is over and all that it cost is in the books."""
    hurry = folder / "hurry"
    script = SCRIPT.format(steps=STEPS, hurry=str(hurry))
    site.client.create_team("vision")
    job = submitted(site, "spirals", script, gpus=8, spot="true")
    until("it has saved something", lambda: len(site.client.checkpoints(job)) > 0, WITHIN_S, 0.1)
    site.lab.control.preempt(count=1, notice_s=5)
    until("it goes on elsewhere", lambda: has_resumed(site, job), WITHIN_S, 0.1)
    hurry.touch()
    until(f"it is over: {site.client.why(job)}", lambda: site.client.job(job)["status"] in TERMINAL, WITHIN_S, 0.1)
    assert site.client.job(job)["status"] == "completed"
    site.settle()
    return job


def has_resumed(site: LabSite, job: str) -> bool:
    attempts = site.client.attempts(job)
    return len(attempts) > 1 and attempts[-1]["started_at"] is not None and attempts[-1]["resume_step"] is not None


def waiting(site: LabSite) -> str:
    """Nobody sells what it wants now; there would be cheaper ways."""
    site.lab.control.fail("no-capacity", operation="RunInstances")
    return submitted(site, "patience", "pass", gpus=16, spot="false")


def submitted(site: LabSite, name: str, script: str, *, gpus: int, spot: str) -> str:
    text = SPEC.format(name=name, python=sys.executable, script=json.dumps(script), gpus=gpus, spot=spot)
    return str(site.client.submit(name, text)["id"])
