"""Checkpoints that outlive their machines: a job on spot machines of the Lab saves, loses its machine without a word,
and goes on elsewhere; then people list, check, fetch and remove what it left."""

import json
from pathlib import Path
from typing import Any

import pytest

from crucible.client.api import TERMINAL
from crucible.client.errors import ServerError
from crucible.model.errors import Conflict, PlatformError

from .test_jobs_on_ec2 import Deployment, deployment, until

__all__ = ["deployment"]

SCRIPT = """
import os, pathlib, time
from crucible import train
found = train.latest_checkpoint()
step = found.step if found else 0
print("begins after", step, flush=True)
while step < 6:
    step += 1
    pathlib.Path("state.bin").write_bytes(bytes([step]) * 100_000)
    train.save_checkpoint("state.bin", step)
    time.sleep(0.4)
"""
SPEC = """\
job:
  name: survivor
  command: [python, -c, {script}]
  resources: {{gpus: 1, gpu_type: T4}}
  constraints: {{providers: [aws], strategy: cheapest, allow_spot: true}}
"""


@pytest.fixture(scope="module")
def survivor(deployment: Deployment) -> str:
    """A job whose first machine was taken without notice after it had saved twice; it is over, and tidied up after."""
    client = deployment.client
    job_id = str(client.submit("survivor", SPEC.format(script=json.dumps(SCRIPT)))["id"])
    until(lambda: len(client.checkpoints(job_id)) >= 2, f"{client.why(job_id)}")
    saved = client.checkpoints(job_id)[-1]["step"]
    (machine,) = deployment.machines()
    deployment.lab.control.preempt(machine["id"], notice_s=0)
    until(lambda: client.job(job_id)["status"] in TERMINAL, f"{client.why(job_id)}")
    assert client.job(job_id)["status"] == "completed", client.why(job_id)
    lines = [record["x"] for record in client.logs(job_id)]
    began = [int(line.split()[-1]) for line in lines if line.startswith("begins after")]
    assert began[0] == 0 and began[-1] >= saved
    until(lambda: [row["step"] for row in client.checkpoints(job_id)] == [4, 5, 6], "the newest three are kept")
    return job_id


def test_what_was_carried_is_listed_checked_and_fetched(deployment: Deployment, survivor: str, tmp_path: Path) -> None:
    client = deployment.client
    rows: list[Any] = client.checkpoints(survivor)
    assert {row["kept_in"] for row in rows} == {"storage"} and rows[-1]["is_latest"]
    assert client.verify_checkpoint(survivor, 6)["is_valid"]
    fetched = Path(client.get_checkpoint(survivor, 6, tmp_path))
    assert (fetched / "state.bin").read_bytes() == bytes([6]) * 100_000
    with pytest.raises(Conflict):
        client.get_checkpoint(survivor, 6, tmp_path)


def test_a_byte_that_changed_in_storage_is_found_and_never_fetched(
    deployment: Deployment, survivor: str, tmp_path: Path
) -> None:
    client, objects = deployment.client, deployment.data / "objects"
    slot = client.checkpoints(survivor)[-1]["uri"].rpartition("/")[2].removesuffix(".json")
    (part,) = objects.glob(f"**/parts/{slot}/00000")
    part.write_bytes(b"\0" * part.stat().st_size)
    said = client.verify_checkpoint(survivor, 6)
    assert said["is_valid"] is False and "state.bin has other content" in said["problems"][0]
    with pytest.raises(PlatformError, match="has other content") as caught:
        client.get_checkpoint(survivor, 6, tmp_path)
    assert not isinstance(caught.value, ServerError) and list(tmp_path.iterdir()) == []


def test_one_can_be_removed_when_the_job_is_over(deployment: Deployment, survivor: str) -> None:
    deployment.client.remove_checkpoint(survivor, 6)
    assert [row["step"] for row in deployment.client.checkpoints(survivor)] == [4, 5]
    deployment.settle()
