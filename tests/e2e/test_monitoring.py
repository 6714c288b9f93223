"""What goes wrong in a real program is found: a loss that is no number, a hang, GPUs that do nothing. One server whose
looks are a hundred times as frequent, real agents, a driver that is a script."""

from collections.abc import Iterator
from typing import Any

import pytest

from person import Person
from status_shape import assert_status

PROGRAM = """
import sys, time
from crucible import train

for step in range(1, 10_000):
    train.log(step, loss=float("nan") if sys.argv[1] == "nan" and step > 3 else 1.0 / step)
    train.progress(step, 10_000)
    if sys.argv[1] == "hang" and step == 20:
        time.sleep(10_000)
    time.sleep(0.05)
"""
SPEC = """
job:
  name: {name}
  type: training
  code: .
  entrypoint: train.py
  args: [{name}]
  resources:
    gpus: {gpus}
"""
# The second of two GPUs is busy; what is asked for is in the first argument.
DRIVER = """#!/bin/sh
case "$1" in
  *utilization*) echo "0, 0, 100, 40000"; echo "1, 95, 39900, 40000" ;;
  *) echo "0, NVIDIA A100-SXM4-40GB, 40000"; echo "1, NVIDIA A100-SXM4-40GB, 40000" ;;
esac
"""


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    folder = tmp_path_factory.mktemp("monitoring")
    ann = Person(folder)
    (folder / "bin").mkdir()
    driver = folder / "bin" / "nvidia-smi"
    driver.write_text(DRIVER)
    driver.chmod(0o755)
    ann.env["PATH"] = f"{folder / 'bin'}:{ann.env['PATH']}"
    ann.write("train.py", PROGRAM)
    assert ann.run("server", "start", "--health-hurry", "100").returncode == 0
    try:
        yield ann
    finally:
        ann.leave()


def submitted(ann: Person, name: str, gpus: int = 0) -> None:
    ann.write(f"{name}.yaml", SPEC.format(name=name, gpus=gpus))
    ran = ann.run("submit", f"{name}.yaml", "--detach", "-y")
    assert ran.returncode == 0, ran.stderr


def status(ann: Person, name: str) -> Any:
    return assert_status(ann.json("describe", name)["now"])  # type: ignore[arg-type]


def codes(ann: Person, name: str) -> set[str]:
    return {one["code"] for one in status(ann, name)["health"]["findings"]}


def test_what_goes_wrong_is_found_told_and_closed_when_it_is_over(ann: Person) -> None:
    for name, gpus in (("nan", 0), ("hang", 0), ("idle", 1)):
        submitted(ann, name, gpus)
    ann.until("the loss is no number", lambda: "loss_not_a_number" in codes(ann, "nan"))
    ann.until("no progress", lambda: "no_progress" in codes(ann, "hang"))
    ann.until("GPUs do nothing", lambda: "gpus_idle" in codes(ann, "idle"))
    assert status(ann, "nan")["health"]["status"] == "critical"
    idle = status(ann, "idle")["utilisation"]
    assert (idle["gpus"], idle["gpu"]["mean"]) == (1, 0.0)  # the other GPU is somebody else's

    shown = ann.run("ps").stdout
    assert "running !!" in shown
    top = ann.run("top").stdout
    assert "no progress since" in top and "jobs at work" in top
    described = ann.run("describe", "nan").stdout
    assert "critical: loss is not a number (loss_not_a_number" in described and "lower the learning rate" in described

    assert ann.run("cancel", "nan", "hang", "idle").returncode == 0
    for name in ("nan", "hang", "idle"):
        ann.run("wait", name, "--timeout", "60")
        over = status(ann, name)
        assert over["health"]["findings"] == [] and over["unknown"]["health"] == "it is over"


def test_a_job_that_goes_on_is_well_and_its_metrics_are_drawn(ann: Person) -> None:
    submitted(ann, "fine")
    ann.until("it is judged", lambda: status(ann, "fine")["health"]["status"] == "ok")
    ann.until("its pace is known", lambda: status(ann, "fine")["progress"]["steps_per_s"] is not None)
    chart = ann.json("metrics", "fine", "--chart", "--points", "5")
    (loss,) = chart["series"]  # type: ignore[misc]
    assert 0 < len(loss["points"]) <= 5 and sum(one["count"] for one in loss["points"]) > 5
    ann.until("its machine is sampled", lambda: bool(ann.json("metrics", "fine", "--usage")["series"]))
    assert "memory_used_bytes" in ann.run("metrics", "fine", "--usage").stdout


def test_the_system_says_how_it_is(ann: Person) -> None:
    ann.until("its provider was looked at", lambda: "answers in" in ann.run("health").stdout)
    said = ann.json("health")["system"]
    checks = {one["name"]: one for one in said["checks"]}  # type: ignore[index]
    assert {"provider", "loops", "queue", "orders", "ledger", "database", "streams", "agents"} <= checks.keys()
    assert checks["ledger"]["details"]["balance_microusd"] == 0
    assert checks["loops"]["details"]["health"]["turns"] > 0
    assert ann.run("health").returncode == 0
    assert "system" in ann.run("doctor").stdout


def test_a_chart_that_is_also_watched_is_refused(ann: Person) -> None:
    ran = ann.run("metrics", "fine", "--chart", "-w")
    assert ran.returncode == 2 and "crucible top" in ran.stderr
