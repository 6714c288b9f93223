"""What a script reports reaches the agent's file, and nothing a script reports can hurt it (F7's callbacks, E9)."""

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crucible import train
from crucible.train import events, stderr
from crucible.train.numbers import EXACT, number


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path))
    monkeypatch.setattr(stderr, "_said", set())
    return tmp_path


def reported(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines() if line]


def test_metrics_are_one_line_with_step_and_values(run_dir: Path) -> None:
    train.log(3, loss=0.5, accuracy=1)
    train.log(loss=0.25)
    first, second = reported(run_dir)
    assert (first["type"], first["step"], first["values"]) == ("metrics", 3, {"loss": 0.5, "accuracy": 1})
    assert isinstance(first["t"], int) and first["t"] > 10**12
    assert (second["step"], second["values"]) == (None, {"loss": 0.25})


def test_numpy_and_other_numbers_are_sent_as_plain_ones(run_dir: Path) -> None:
    train.log(
        np.int64(7), a=np.float32(0.5), b=np.int8(-3), c=np.array(2.5), d=Decimal("1.5"), e=np.bool_(True), f=True
    )
    assert reported(run_dir)[0]["values"] == {"a": 0.5, "b": -3, "c": 2.5, "d": 1.5, "e": 1, "f": 1}
    assert reported(run_dir)[0]["step"] == 7


def test_nan_and_infinities_are_sent_as_null(run_dir: Path) -> None:
    train.log(1, a=math.nan, b=math.inf, c=-np.inf, d=10**400)
    assert reported(run_dir)[0]["values"] == {"a": None, "b": None, "c": None, "d": None}


def test_what_is_not_a_number_is_left_out_with_one_warning(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for step in range(3):
        train.log(step, loss=1.0, name="resnet", grid=np.zeros(3))
    assert [event["values"] for event in reported(run_dir)] == [{"loss": 1.0}] * 3
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 2 and "'name'" in warnings[0] and "'grid'" in warnings[1]


def test_a_metric_may_be_called_step_in_callbacks(run_dir: Path) -> None:
    train.callbacks().on_epoch_end(2, {"step": 9, "loss": 0.1})
    assert reported(run_dir)[0]["values"] == {"step": 9, "loss": 0.1} and reported(run_dir)[0]["step"] == 2


def test_progress_gives_a_fraction_within_bounds(run_dir: Path) -> None:
    train.progress(5, 20)
    train.progress(fraction=3.5)
    train.progress(30, 20)
    train.progress(step=4)
    assert [(e["step"], e["total"], e["fraction"]) for e in reported(run_dir)] == [
        (5, 20, 0.25),
        (None, None, 1.0),
        (30, 20, 1.0),
        (4, None, None),
    ]


def test_outside_crucible_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRUCIBLE_RUN_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    train.log(1, loss=0.5)
    train.progress(1, 2)
    assert not train.should_stop()
    assert not train.init().is_crucible
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_warns_once_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stderr, "_said", set())
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path / "missing"))
    for step in range(5):
        train.log(step, loss=1.0)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_after_a_short_write_the_next_event_starts_on_its_own_line(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train.log(1, loss=1.0)
    real_write = events.os.write
    monkeypatch.setattr(events.os, "write", lambda file, data: real_write(file, data[:10]))
    train.log(2, loss=2.0)
    monkeypatch.undo()
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(run_dir))
    train.log(3, loss=3.0)
    lines = (run_dir / "events.jsonl").read_text().splitlines()
    assert len(lines) == 3 and len(lines[1]) == 10
    assert [json.loads(lines[i])["step"] for i in (0, 2)] == [1, 3]


def test_very_many_metrics_are_sent_in_pieces(run_dir: Path) -> None:
    train.log(1, **{f"metric_{i}": float(i) for i in range(2500)})
    events = reported(run_dir)
    assert [len(event["values"]) for event in events] == [1000, 1000, 500] and {event["step"] for event in events} == {
        1
    }


def test_an_event_longer_than_a_line_may_be_is_dropped(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train.log(1, **{"x" * 1000 + str(i): float(i) for i in range(500)})
    train.log(2, loss=1.0)
    assert [event["step"] for event in reported(run_dir)] == [2]
    assert "too long" in capsys.readouterr().err


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.decimals(), st.fractions()))
def test_every_number_becomes_one_that_json_and_a_double_can_carry(value: Any) -> None:
    sent = number(value)
    assert sent is None or math.isfinite(float(sent))
    assert not isinstance(sent, int) or abs(sent) <= EXACT
    json.dumps(sent, allow_nan=False)


def test_a_run_knows_its_place(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "RANK": "3",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "1",
        "NODE_RANK": "1",
        "CRUCIBLE_JOB_ID": "job-1",
        "CRUCIBLE_ATTEMPT": "2",
        "CUDA_VISIBLE_DEVICES": "4,5",
        "CRUCIBLE_CHECKPOINT_INTERVAL_S": "600.0",
    }.items():
        monkeypatch.setenv(name, value)
    assert train.init() == train.Run(3, 8, 1, 1, "job-1", 2, True, ("4", "5"), 600.0)


def test_foreign_values_of_rank_variables_are_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    assert train.init().rank == 0
