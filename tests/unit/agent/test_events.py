"""What job code appends to events.jsonl: numbered the same however often it is read, and never trusted."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible.agent.events import Events, parse
from crucible.wire import agent as wire

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["type", "t", "step", "total", "fraction", "values", "uri", "size_bytes", "manifest_sha256", "metadata"]
)
KINDS = st.sampled_from(["metrics", "progress", "checkpoint", "checkpoint_began", "other"])


def write(path: Path, *events: dict[str, Any]) -> None:
    with path.open("a") as file:
        for event in events:
            file.write(json.dumps(event) + "\n")


def metric(step: int) -> dict[str, Any]:
    return {"type": "metrics", "t": step, "step": step, "values": {"loss": step}}


def checkpoint(step: int) -> dict[str, Any]:
    return {
        "type": "checkpoint",
        "t": 1,
        "step": step,
        "uri": f"file:///{step}",
        "size_bytes": 1,
        "manifest_sha256": "a" * 64,
    }


@given(st.dictionaries(NAMES, VALUES), KINDS)
def test_whatever_is_taken_is_a_valid_message(event: dict[str, Any], kind: str) -> None:
    parsed = parse(json.dumps({**event, "type": kind}).encode())
    if parsed is None:
        return
    whose = {"attempt_id": "a", "rank": 0}
    del parsed["type"]
    if kind == "metrics":
        wire.MetricRecord.model_validate({**parsed, "n": 0})
    elif kind == "progress":
        wire.ProgressReport.model_validate({**parsed, **whose})
    elif kind == "checkpoint":
        wire.CheckpointReport.model_validate({**parsed, **whose})
    json.dumps(parsed, allow_nan=False)


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(line: bytes) -> None:
    parse(line)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"type": "metrics"', b"", b"null", b'{"type": ["metrics"]}'])
def test_a_line_that_cannot_be_meant_is_refused(line: bytes) -> None:
    assert parse(line) is None


def test_metrics_keep_their_numbers_when_the_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, metric(0), {"type": "nonsense"}, metric(1), metric(2))
    events = Events(str(path))
    events.read()
    assert [(each["n"], each["step"]) for each in events.metrics(1 << 20)] == [(0, 0), (1, 1), (2, 2)]
    events.acknowledge(2)
    assert [(each["n"], each["step"]) for each in events.metrics(1 << 20)] == [(2, 2)]
    again = Events(str(path))
    again.acknowledge(2)
    again.read()
    write(path, metric(3))
    again.read()
    assert [(each["n"], each["step"]) for each in again.metrics(1 << 20)] == [(2, 2), (3, 3)]


def test_a_report_takes_what_fits_and_at_least_one(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    wide = {f"name-{i:0200d}": 1.0 for i in range(500)}
    write(path, *[{"type": "metrics", "t": 1, "step": i, "values": wide} for i in range(10)])
    write(path, *[{**checkpoint(i), "metadata": {"notes": "x" * 100_000}} for i in range(10)])
    events = Events(str(path))
    for _ in range(10):
        events.read()
    assert len(events.metrics(1)) == 1 and len(events.metrics(250_000)) == 3
    assert len(events.first_checkpoints(1)) == 1 and len(events.first_checkpoints(250_000)) == 3


def test_a_restart_does_not_read_everything_again(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = Events(str(path))
    for start in range(0, 20_000, 2000):
        write(path, *map(metric, range(start, start + 2000)))
        events.read()
        events.acknowledge(start + 2000)
    again = Events(str(path))
    assert 0 < again.acknowledged <= 20_000
    again.acknowledge(20_000)
    again.read()
    write(path, metric(20_000))
    again.read()
    assert [(each["n"], each["step"]) for each in again.metrics(1 << 20)] == [(20_000, 20_000)]


def test_a_checkpoint_waits_until_a_report_was_taken(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, checkpoint(1), checkpoint(2))
    events = Events(str(path))
    events.read()
    sent = list(events.checkpoints)
    write(path, checkpoint(3))
    events.read()
    events.deliver(sent)
    assert [each["step"] for each in events.checkpoints] == [3]
    assert not events.is_empty()
    again = Events(str(path))
    again.read()
    assert [each["step"] for each in again.checkpoints] == [1, 2, 3]


def test_a_rank_is_checkpointing_between_the_two_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = Events(str(path))
    write(path, {"type": "checkpoint_began", "t": 1, "step": 5})
    events.read()
    assert events.is_checkpointing
    write(path, checkpoint(5))
    events.read()
    assert not events.is_checkpointing


def test_a_checkpoint_that_failed_is_over_too(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = Events(str(path))
    write(path, {"type": "checkpoint_began", "t": 1, "step": 5})
    write(path, {"type": "checkpoint_failed", "t": 2, "step": 5, "reason": "no space left"})
    events.read()
    assert not events.is_checkpointing
    assert events.checkpoints == []


def test_an_unfinished_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    text = json.dumps(metric(7)) + "\n"
    path.write_text(text[:10])
    events = Events(str(path))
    events.read()
    assert events.is_empty() and not events.has_news()
    path.write_text(text)
    assert events.has_news()
    events.read()
    assert [each["step"] for each in events.metrics(1 << 20)] == [7]


def test_an_endless_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("x" * (3 << 20))
    events = Events(str(path))
    for _ in range(5):
        events.read()
    with path.open("a") as file:
        file.write("x\n")
    write(path, metric(1))
    for _ in range(5):
        events.read()
    assert [each["step"] for each in events.metrics(1 << 20)] == [1]
