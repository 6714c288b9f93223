"""How long anybody waits for an upload, and what is kept of a notice for the next one."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crucible.agent.cargo import STALLED_S, Cargo
from crucible.agent.hold import Hold
from crucible.agent.link import Link, Servers
from crucible.agent.meter import Meter
from crucible.agent.words import Words


@pytest.fixture
def cargo(tmp_path: Path) -> Iterator[Cargo]:
    """Of a rank whose server never answers."""
    launch = {"attempt_id": "att-1", "rank": 0, "number": 0, "env": {}}
    hold = Hold(str(tmp_path / "checkpoints"))
    words = Words(str(tmp_path / "agent.log"))
    events, uploads = str(tmp_path / "events.jsonl"), str(tmp_path / "uploads")
    cargo = Cargo(launch, events, uploads, hold, Meter(), lambda: Link(Servers([], [], None), "key"), words)
    yield cargo
    cargo.close()


def save(tmp_path: Path, step: int) -> None:
    """A line that claims a checkpoint."""
    said = {"type": "checkpoint", "t": 1, "step": step, "uri": "file:///x", "size_bytes": 1000}
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(json.dumps({**said, "manifest_sha256": "a" * 64}) + "\n")


def folder(tmp_path: Path, step: int) -> None:
    """What it claims, as far as an upload takes hold of it before it needs a server."""
    from crucible.train.checkpoint_store import CheckpointStore

    (tmp_path / "model").write_bytes(b"model")
    found = CheckpointStore(str(tmp_path / "checkpoints")).commit(tmp_path / "model", step)
    line = {"type": "checkpoint", "t": 1, "step": step, "uri": found.uri, "size_bytes": found.size_bytes}
    with (tmp_path / "events.jsonl").open("a") as file:
        file.write(json.dumps({**line, "manifest_sha256": found.manifest_sha256}) + "\n")


def test_nothing_saved_is_settled(cargo: Cargo) -> None:
    cargo.look()
    assert cargo.is_settled(time.monotonic()) and not cargo.is_carrying()


def test_an_upload_is_awaited_until_nothing_moved_for_a_minute(cargo: Cargo, tmp_path: Path) -> None:
    folder(tmp_path, 5)
    cargo.look()
    now = time.monotonic()
    assert cargo.is_carrying() and not cargo.is_settled(now)
    assert not cargo.is_settled(now + STALLED_S - 5)
    assert cargo.is_settled(now + STALLED_S + 5)


def test_patience_begins_again_while_nobody_could_hear(cargo: Cargo, tmp_path: Path) -> None:
    folder(tmp_path, 5)
    cargo.look()
    later = time.monotonic() + STALLED_S
    cargo.be_patient()
    assert not cargo.is_settled(later - 1)


@pytest.mark.parametrize("end", ["give_up", "close"])
def test_nobody_waits_for_what_is_given_up(cargo: Cargo, tmp_path: Path, end: str) -> None:
    folder(tmp_path, 5)
    cargo.look()
    getattr(cargo, end)()
    assert cargo.is_settled(time.monotonic())


def test_a_claim_without_a_checkpoint_is_a_complaint_and_keeps_nobody_waiting(cargo: Cargo, tmp_path: Path) -> None:
    save(tmp_path, 7)
    cargo.look()
    deadline = time.monotonic() + 10
    while not cargo.is_settled(time.monotonic()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (complaint,) = cargo.take_complaints()
    assert complaint.startswith("the checkpoint of step 7 did not get to storage: its files could not be taken")
    assert cargo.take_reports() == [] and cargo.needs_s() == 0.0
