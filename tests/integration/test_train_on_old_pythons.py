"""crucible.train works on every Python from 3.8 on that this computer has: nodes have the Python they have."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import crucible

SCRIPT = """
import os, sys
from crucible import train

run = train.init()
assert run.is_crucible and run.rank == 1 and run.world_size == 2, run
assert train.latest_checkpoint() is None and not train.should_stop()
for step in range(1, 5):
    train.log(step, loss=1.0 / step)
    train.progress(step, 4)
    os.makedirs("out/nested", exist_ok=True)
    with open("out/nested/weights", "w") as file:
        file.write("weights of step %d" % step)
    train.save_checkpoint("out", step, {"loss": 1.0 / step})
newest = train.checkpoints()[-1]
(newest.path / "nested" / "weights").write_text("torn")
assert train.latest_checkpoint().step == 3 and train.checkpoint_at(4) is None
assert [one.step for one in train.checkpoints()] == [3], "the torn one has another size"
under_way = train.save_checkpoint("out", 5, background=True)
with open("out/nested/weights", "w") as file:
    file.write("of later on")
assert (under_way.wait(20).path / "nested" / "weights").read_text() == "weights of step 4" and under_way.done
for rank in ("1", "0"):
    os.environ["RANK"] = rank
    train.save_checkpoint("out", 6, {"rank": rank}, sharded=True, background=True).wait(20)
newest = train.latest_checkpoint()
assert newest.step == 6 and len(newest.shards) == 2 and newest.metadata == {"rank": "0"}
assert not train.should_checkpoint()
train.callbacks().on_epoch_end(9, {"loss": 0.5})

@train.plugins.register("m")
class Model:
    pass
assert train.plugins.get("m") is Model
crucible_modules = [name for name in sys.modules if name.startswith("crucible")]
assert all(name == "crucible" or name.startswith("crucible.train") for name in crucible_modules), crucible_modules
print("done", sys.version_info[0], sys.version_info[1])
"""

MINORS = range(8, 15)


def interpreters() -> list[str]:
    """One per version: this one, and those on the path or under pyenv."""
    found = {sys.version_info[1]: sys.executable}
    for minor in MINORS:
        candidates = [shutil.which(f"python3.{minor}"), *pyenv(minor)]
        usable = [path for path in candidates if path and reports(path, minor)]
        if usable:
            found.setdefault(minor, usable[0])
    return list(found.values())


def pyenv(minor: int) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [str(path) for path in sorted(root.glob(f"versions/3.{minor}.*/bin/python"))]


def reports(path: str, minor: int) -> bool:
    """A shim may exist for a version that does not."""
    ask = [path, "-c", "import sys; print(sys.version_info[1])"]
    return subprocess.run(ask, capture_output=True, text=True, timeout=30).stdout.strip() == str(minor)


@pytest.mark.parametrize("python", interpreters())
def test_a_script_runs_on_this_python(python: str, tmp_path: Path) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(crucible.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "CRUCIBLE_RUN_DIR": str(tmp_path),
        "CRUCIBLE_CHECKPOINTS": (tmp_path / "store").as_uri(),
        "CRUCIBLE_CHECKPOINT_KEEP": "2",
    }
    script = [python, "-W", "error", "-c", SCRIPT]
    done = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "done 3" in done.stdout, done.stderr
    events = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events if event["type"] == "metrics"] == [1, 2, 3, 4, 9]
    said = [(event["step"], event["shard"], event["shards"]) for event in events if event["type"] == "checkpoint"]
    assert said == [(1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 0, 1), (5, 0, 1), (6, 1, 2), (6, 0, 2)]
