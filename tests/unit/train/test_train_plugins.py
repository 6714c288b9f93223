"""Model plugins run unchanged from the environment contract JOB_ID, MODEL_PLUGIN, CONFIG, DATASET (F7, F8)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crucible import train
from crucible.train import plugins

MODEL = """
from crucible import train

@train.plugins.register("tiny")
class Tiny:
    def __init__(self, config):
        self.config = config

    def loaders(self, dataset, config):
        return [dataset] * config["batches"], None

    def train(self, train_loader, val_loader, callbacks):
        for epoch in range(self.config["epochs"]):
            callbacks.on_epoch_end(epoch, {"loss": 1 / (epoch + 1), "seen": len(train_loader)})
            with open("weights.txt", "w") as file:
                file.write(str(epoch))
            callbacks.on_checkpoint_save(epoch, "weights.txt")

class Bare:
    def __init__(self, config):
        pass

    def train(self, train_loader, val_loader, callbacks):
        print("loaders", train_loader, val_loader)

class Broken(Bare):
    def train(self, train_loader, val_loader, callbacks):
        raise RuntimeError("out of memory")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tiny.py").write_text(MODEL)
    (tmp_path / "needy.py").write_text("import a_library_that_is_not_installed\n")
    return tmp_path


def run(project: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CRUCIBLE_")}
    return subprocess.run(
        [sys.executable, "-m", "crucible.train.run"],
        cwd=project,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.parametrize("name", ["tiny:Tiny", "tiny", "tiny:tiny"])
def test_a_plugin_trains_and_reports(project: Path, name: str) -> None:
    run_dir = project / "run"
    run_dir.mkdir()
    done = run(
        project,
        JOB_ID="job-1",
        MODEL_PLUGIN=name,
        CONFIG='{"epochs": 2, "batches": 3}',
        DATASET="s3://d",
        CRUCIBLE_RUN_DIR=str(run_dir),
        CRUCIBLE_CHECKPOINTS=(project / "store").as_uri(),
    )
    assert done.returncode == 0, done.stderr
    assert "Epoch 0: {'loss': 1.0, 'seen': 3}" in done.stdout
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
    assert [event["type"] for event in events] == ["metrics", "checkpoint_began", "checkpoint"] * 2
    assert events[-1]["step"] == 1 and events[-1]["size_bytes"] == 1


def test_a_plugin_without_loaders_gets_none(project: Path) -> None:
    assert "loaders None None" in run(project, MODEL_PLUGIN="tiny:Bare").stdout


def test_a_training_that_fails_fails_the_process(project: Path) -> None:
    done = run(project, MODEL_PLUGIN="tiny:Broken")
    assert done.returncode == 1 and "out of memory" in done.stderr


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "MODEL_PLUGIN is not set"),
        ({"MODEL_PLUGIN": "nothing"}, "no model plugin 'nothing'"),
        ({"MODEL_PLUGIN": "tiny:Absent"}, "(registered: tiny)"),
        ({"MODEL_PLUGIN": "tiny", "CONFIG": "{"}, "CONFIG is not JSON"),
        ({"MODEL_PLUGIN": "tiny", "CONFIG": "[1]"}, "CONFIG must be a JSON object"),
    ],
)
def test_a_wrong_environment_says_what_to_set(project: Path, env: dict[str, str], words: str) -> None:
    done = run(project, **env)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_a_plugin_that_misses_a_library_says_which(project: Path) -> None:
    done = run(project, MODEL_PLUGIN="needy:Model")
    assert done.returncode == 1 and "a_library_that_is_not_installed" in done.stderr


def test_a_name_belongs_to_one_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_models", {})

    class One:
        pass

    class Two:
        pass

    register = train.plugins.register("model")
    assert register(register(One)) is One
    with pytest.raises(ValueError, match="taken by"):
        register(Two)
