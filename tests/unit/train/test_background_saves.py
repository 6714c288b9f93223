"""Saves beside the training: the content is that of the call, one at a time, and nothing goes wrong in silence."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crucible import train
from crucible.train import background, durable, saving
from crucible.train.checkpoint_store import CheckpointStore, Taken


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CRUCIBLE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("CRUCIBLE_CHECKPOINTS", str(tmp_path / "store"))
    monkeypatch.setattr(saving, "saves", background.Saves())
    return tmp_path


@pytest.fixture
def model(run_dir: Path) -> Path:
    (run_dir / "model").write_bytes(b"weights of the call")
    return run_dir / "model"


class Gate:
    """Holds the thread that saves until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        real = CheckpointStore.finish

        def finish(store: CheckpointStore, taken: Taken) -> train.Checkpoint:
            assert self.opened.wait(20)
            return real(store, taken)

        monkeypatch.setattr(CheckpointStore, "finish", finish)


def events(run_dir: Path) -> list[str]:
    lines = (run_dir / "events.jsonl").read_text().splitlines()
    return ["{type} {step}".format(**json.loads(line)) for line in lines]


def test_the_content_is_that_of_the_call(run_dir: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    under_way = train.save_checkpoint(model, 1, {"loss": 0.5}, background=True)
    with model.open("r+b") as file:  # in place: a link to the file would change with it
        file.write(b"WEIGHTS OF LATER ON")
    assert not under_way.done and train.latest_checkpoint() is None
    gate.opened.set()
    saved = under_way.wait(20)
    assert under_way.done and train.latest_checkpoint() == saved and under_way.wait() == saved
    assert saved.path.read_bytes() == b"weights of the call" and saved.metadata == {"loss": 0.5}
    assert events(run_dir) == ["checkpoint_began 1", "checkpoint 1"]
    assert sorted(os.listdir(run_dir / "store/step-000000001")) == ["manifest.json", saved.path.parent.name]


def test_a_folder_is_taken_with_all_its_names(run_dir: Path) -> None:
    source = run_dir / "source"
    (source / "nested").mkdir(parents=True)
    contents = {"a": b"1", "nested/b": b"2" * 3_000_000, "empty": b""}
    for name, data in contents.items():
        (source / name).write_bytes(data)
    saved = train.save_checkpoint(source, 1, background=True, sharded=True).wait(20)
    assert {name: (saved.path / name).read_bytes() for name in contents} == contents
    assert train.checkpoint_at(1) == saved


def test_who_comes_second_waits_for_the_first(run_dir: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    first = train.save_checkpoint(model, 1, background=True)
    later: list[train.Checkpoint] = []
    second = threading.Thread(target=lambda: later.append(train.save_checkpoint(model, 2)))
    second.start()
    assert not later and not first.done
    gate.opened.set()
    second.join(20)
    assert first.done and later[0].step == 2
    assert events(run_dir) == ["checkpoint_began 1", "checkpoint 1", "checkpoint_began 2", "checkpoint 2"]


def test_waiting_has_an_end(run_dir: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    under_way = train.save_checkpoint(model, 1, background=True)
    with pytest.raises(TimeoutError, match="step 1 is still being saved"):
        under_way.wait(0)
    gate.opened.set()
    assert under_way.wait(20).step == 1


def fail_once(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    real, left = durable.settle, [error]

    def settle(path: str, piece_bytes: int) -> Any:
        if left:
            raise left.pop()
        return real(path, piece_bytes)

    monkeypatch.setattr("crucible.train.checkpoint_parts.settle", settle)


@pytest.mark.parametrize(
    ("error", "words"), [(OSError(28, "No space left on device"), "no space left"), (ZeroDivisionError("x"), "Zero")]
)
def test_what_goes_wrong_is_raised_to_who_waits_and_warned_of(
    run_dir: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    words: str,
) -> None:
    fail_once(monkeypatch, error)
    under_way = train.save_checkpoint(model, 1, background=True)
    for _ in range(2):
        with pytest.raises(train.CheckpointError, match=words):
            under_way.wait(20)
    assert train.save_checkpoint(model, 2, background=True).wait(20).step == 2, "it was told already"
    assert "step 1 was not saved" in capsys.readouterr().err
    assert train.checkpoint_at(1) is None and not list((run_dir / "store/step-000000001").iterdir())


def test_what_nobody_waited_for_is_raised_by_the_next_call_which_saves_all_the_same(
    run_dir: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_once(monkeypatch, OSError(28, "No space left on device"))
    train.save_checkpoint(model, 1, background=True)
    with pytest.raises(train.CheckpointError, match="step 1 was not saved"):
        train.save_checkpoint(model, 2, background=True)
    assert train.save_checkpoint(model, 3, background=True).wait(20).step == 3
    assert [one.step for one in train.checkpoints()] == [2, 3]
    assert events(run_dir)[:3] == ["checkpoint_began 1", "checkpoint_failed 1", "checkpoint_began 2"]


def test_a_save_that_the_script_waits_for_makes_up_for_one_that_failed(
    run_dir: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_once(monkeypatch, OSError(28, "No space left on device"))
    train.save_checkpoint(model, 1, background=True)
    assert train.save_checkpoint(model, 2).step == 2


def test_content_that_cannot_be_taken_is_refused_at_once(run_dir: Path) -> None:
    (run_dir / "empty").mkdir()
    with pytest.raises(train.CheckpointError, match="has no files"):
        train.save_checkpoint(run_dir / "empty", 1, background=True)
    assert events(run_dir) == ["checkpoint_began 1", "checkpoint_failed 1"]


def test_a_step_that_was_saved_is_not_saved_again(run_dir: Path, model: Path) -> None:
    first = train.save_checkpoint(model, 1)
    model.write_bytes(b"others")
    assert train.save_checkpoint(model, 1, background=True).wait(20) == first
    assert sorted(os.listdir(run_dir / "store/step-000000001")) == ["manifest.json", first.path.parent.name]


def no_copy(*args: Any) -> int:
    raise OSError(38, "Function not implemented")


def half_copy(old: int, new: int, count: int) -> int:
    os.write(new, os.read(old, 5))
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("copy", [no_copy, half_copy, lambda old, new, count: 0, None])
def test_where_the_kernel_does_not_copy_the_process_does(
    model: Path, monkeypatch: pytest.MonkeyPatch, copy: "Callable[..., int] | None"
) -> None:
    if copy is None:
        monkeypatch.delattr(os, "copy_file_range")
    else:
        monkeypatch.setattr(os, "copy_file_range", copy)
    assert train.save_checkpoint(model, 1, background=True).wait(20).path.read_bytes() == b"weights of the call"


ENDS_AT_ONCE = """
import sys
from crucible import train
with open("model", "wb") as file:
    file.write(b"x" * 30_000_000)
train.save_checkpoint("model", 1, background=True)
{}
"""

SAVES_IN_A_CHILD = """
import os, threading
from crucible import train
from crucible.train.checkpoint_store import CheckpointStore
open("model", "w").close()
opened, real = threading.Event(), CheckpointStore.finish
CheckpointStore.finish = lambda store, taken: opened.wait(20) and real(store, taken)
train.save_checkpoint("model", 1, background=True)
child = os.fork()
if child == 0:
    train.save_checkpoint("model", 2)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
opened.set()
"""


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (ENDS_AT_ONCE.format(""), 0),
        (ENDS_AT_ONCE.format("sys.exit(3)"), 3),
        (ENDS_AT_ONCE.format("1 / 0"), 1),
        (
            "import atexit\nfrom crucible import train\nopen('model', 'w').close()\n"
            "atexit.register(lambda: train.save_checkpoint('model', 1, background=True).wait(20))",
            0,
        ),
        (SAVES_IN_A_CHILD, 0),
    ],
)
def test_a_process_that_ends_finishes_its_save(tmp_path: Path, script: str, code: int) -> None:
    env = {**os.environ, "CRUCIBLE_CHECKPOINTS": str(tmp_path / "store")}
    env.pop("CRUCIBLE_RUN_DIR", None)
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == code, ended.stderr
    assert CheckpointStore(str(tmp_path / "store")).verify(1).size_bytes == (tmp_path / "model").stat().st_size
