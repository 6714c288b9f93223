"""The server dies while an agent carries a checkpoint through its door: some parts are stored, the manifest is not. The
agent goes on when the server is back; nothing begins anew, and what was saved is whole."""

import json
import random
import signal
from pathlib import Path
from typing import Any

from crash.lab_world import LabWorld, lab_world
from crash.server_process import until
from crucible.client.api import TERMINAL

PARTS = 24
PART_BYTES = 1 << 20  # as small as an object of its own may be: many of them take a while
LOOK_EVERY_S = 0.005  # at the folder of objects: the upload must not be over before anybody has looked

# Saves twice; each file has bytes of its own, which nothing compresses or stores once for all.
PROGRAM = f"""
import pathlib, random
from crucible import train

print("begins after", getattr(train.latest_checkpoint(), "step", 0), flush=True)
for step in (1, 2):
    folder = pathlib.Path("state-%d" % step)
    folder.mkdir()
    for part in range({PARTS}):
        (folder / str(part)).write_bytes(random.Random(step * 1000 + part).randbytes({PART_BYTES}))
    train.save_checkpoint(str(folder), step)
"""

SPEC = """\
job:
  name: saver
  command: [python, -c, {program}]
  resources: {{gpus: 1, gpu_type: T4}}
  retry: {{limit: 0}}
  constraints: {{providers: [aws], strategy: cheapest}}
"""


def test_a_death_between_the_parts_of_a_checkpoint_and_its_manifest_changes_nothing(tmp_path: Path) -> None:
    with lab_world(tmp_path / "world", seed=1) as made:
        made.server.start().wait_ready()
        spec = SPEC.format(program=json.dumps(PROGRAM))
        job = str(made.insist(lambda client: client.submit("saver", spec, idempotency_key="saver"))["id"])
        for manifests in (0, 1):
            die_within_an_upload(made, manifests)
        assert made.wait(job, TERMINAL)["status"] == "completed"
        check(made, job, tmp_path / "fetched")
        made.settle()


def die_within_an_upload(made: LabWorld, manifests: int) -> None:
    """Of the checkpoint after so many."""
    until(
        f"parts of checkpoint {manifests + 1} are stored",
        lambda: len(stored(made, "parts")) > PARTS * manifests,
        every_s=LOOK_EVERY_S,
    )
    made.server.signal(signal.SIGSTOP)  # so that what is seen now is how it died
    parts = len(stored(made, "parts")) - PARTS * manifests
    has_manifest = len(stored(made, "manifests")) > manifests
    made.server.kill()
    made.disturbed()
    assert 0 < parts <= PARTS and not has_manifest, f"it was too late: {parts} parts, manifest {has_manifest}"
    made.server.start().wait_ready()
    until(f"checkpoint {manifests + 1} is whole", lambda: len(stored(made, "manifests")) > manifests)


def stored(made: LabWorld, what: str) -> list[Path]:
    """Whole objects; what is being written has a name of its own."""
    depth = "*/*" if what == "parts" else "*.json"
    return list((made.data / "objects").glob(f"**/{what}/{depth}"))


def check(made: LabWorld, job: str, folder: Path) -> None:
    attempts: list[Any] = made.insist(lambda client: client.attempts(job))
    assert [attempt["outcome"] for attempt in attempts] == ["succeeded"]
    lines = [record["x"] for record in made.insist(lambda client: list(client.logs(job)))]
    assert [line for line in lines if line.startswith("begins")] == ["begins after 0"]
    assert [one["step"] for one in made.insist(lambda client: client.checkpoints(job))] == [1, 2]
    for step in (1, 2):
        said = made.insist(lambda client, step=step: client.verify_checkpoint(job, step))  # type: ignore[misc]
        assert said["is_valid"], said
    fetched = Path(made.insist(lambda client: client.get_checkpoint(job, 2, folder)))
    expected = {str(part): content(2, part) for part in range(PARTS)}
    assert {path.name: path.read_bytes() for path in fetched.iterdir()} == expected


def content(step: int, part: int) -> bytes:
    return random.Random(step * 1000 + part).randbytes(PART_BYTES)
