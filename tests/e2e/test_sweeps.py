"""Searches and evaluations as a person runs them: real trials in real processes on this computer, one server, the
command line."""

import json
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from person import LIMIT_S, Person
from status_shape import assert_status

EXAMPLES = Path(__file__).parents[2] / "examples/sweep"

# Reports what it is told to: `loss` is a number or `nan`, `steps` how often, `fails` whether it dies, `waits` how long
# it stays after its first report unless it is stopped.
TRIAL = """\
import json, os, sys, time
from crucible import train

given = json.load(open(os.environ["CRUCIBLE_PARAMS"]))
print("given", json.dumps(given, sort_keys=True), flush=True)
if given.get("fails"):
    sys.exit("it does not run with this")
loss = given["loss"]
for step in range(1, int(given.get("steps", 1)) + 1):
    train.log(step, **{os.environ.get("METRIC", "loss"): float(loss)})
end = time.monotonic() + float(given.get("waits", 0))
while time.monotonic() < end:
    if train.should_stop():
        sys.exit(143)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    someone = Person(tmp_path_factory.mktemp("sweeps"))
    someone.write("trial.py", TRIAL)
    yield someone
    someone.leave()


def submit(person: Person, name: str, sweep: str, more: str = "") -> None:
    spec = f"job:\n  name: {name}\n  entrypoint: trial.py\n  retry: {{limit: 0}}\n{more}  sweep:\n{sweep}"
    sent = person.run("submit", "-y", "-d", person.write(f"{name}.yaml", spec))
    assert sent.returncode == 0, sent.stderr


def ended(person: Person, name: str) -> Any:
    person.run("wait", name, "--timeout", str(int(LIMIT_S)))
    found: Any = person.json("describe", name)
    assert_status(found["now"])
    return found


def show(person: Person, name: str) -> Any:
    return person.json("sweep", "show", name, "--all", "--sort", "index")


def test_the_example_completes_and_names_its_best_trial(person: Person) -> None:
    for path in EXAMPLES.iterdir():
        if path.is_file() and path.name != "trial.py":
            shutil.copy(path, person.folder / path.name)
    shutil.copy(EXAMPLES / "trial.py", person.folder / "rings.py")
    spec = (EXAMPLES / "sweep.yaml").read_text().replace("trial.py", "rings.py")
    sent = person.run("submit", "-y", "-d", person.write("sweep.yaml", spec))
    assert sent.returncode == 0, sent.stderr
    assert ended(person, "ring-sweep")["status"] == "completed"
    said = show(person, "ring-sweep")
    assert (said["trials"]["completed"], said["trials"]["total"]) == (12, 12)
    values = {one["index"]: one["value"] for one in said["items"]}
    best = person.json("sweep", "best", "ring-sweep")
    assert best["value"] == min(values.values()) == values[best["index"]]
    assert best["params"] == {"lr": 1.0, "width": 8}
    checkpoint: Any = best["checkpoint"]
    assert (checkpoint["step"], f"/{best['index']}/" in checkpoint["uri"]) == (27, True)
    assert person.run("sweep", "best", "ring-sweep", "--env").stdout.splitlines() == [
        "export lr=1.0",
        "export width=8",
    ]
    artifacts: Any = person.json("artifacts", "ring-sweep")
    (output,) = [one for one in artifacts["items"] if one["type"] == "output"]
    assert output["meta"]["params"] == best["params"] and output["meta"]["checkpoint"] == checkpoint["uri"]
    assert '"width": 8' in person.run("logs", "ring-sweep", "--task", str(best["index"])).stdout
    kept: Any = person.json("checkpoints", "ls", "ring-sweep", "--task", str(best["index"]))
    assert [one["uri"] for one in kept["items"]] == [checkpoint["uri"]]
    for command in (("show",), ("plot",), ("plot", "--x", "lr")):
        ran = person.run("sweep", command[0], "ring-sweep", *command[1:])
        assert ran.returncode == 0 and "loss" in ran.stdout.lower(), ran.stderr


def test_an_adaptive_search_tries_what_nobody_wrote_down(person: Person) -> None:
    sweep = """\
    method: tpe
    trials: 14
    parameters: {loss: {min: 0, max: 10}}
    objective: {metric: loss}
"""
    submit(person, "adaptive", sweep, "  execution: {parallelism: 3}\n")
    assert ended(person, "adaptive")["status"] == "completed"
    said = show(person, "adaptive")
    tried = [one["params"]["loss"] for one in said["items"]]
    assert len(set(tried)) == 14 and all(0 <= one <= 10 for one in tried)
    assert [one["value"] for one in said["items"]] == tried
    assert said["best"]["value"] == min(tried)


def test_a_trial_that_does_badly_is_stopped_and_its_seat_goes_to_the_next(person: Person) -> None:
    """The bad ones would stay for longer than the test may take."""
    sweep = """\
    trials:
      - {loss: 1, steps: 3, waits: 0}
      - {loss: 2, steps: 3, waits: 0}
      - {loss: 9, steps: 3, waits: 600}
      - {loss: 8, steps: 3, waits: 600}
      - {loss: 0.5, steps: 3, waits: 0}
    objective: {metric: loss}
    stop_early: {rule: median, after_step: 2, least_trials: 2}
"""
    submit(person, "pruned", sweep, "  execution: {parallelism: 1}\n")
    assert ended(person, "pruned")["status"] == "completed"
    said = show(person, "pruned")
    assert [one["verdict"] for one in said["items"]] == [None, None, "pruned", "pruned", None]
    third = said["items"][2]
    assert third["phase"] == "succeeded" and third["reason"].startswith("stopped early: loss 9 at step 3 is worse")
    assert (said["best"]["index"], said["best"]["value"]) == (4, 0.5)


def test_trials_that_fail_diverge_or_say_nothing_are_told_apart(person: Person) -> None:
    sweep = """\
    trials:
      - {loss: 3, fails: false}
      - {loss: 1, fails: true}
      - {loss: nan, fails: false}
    objective: {metric: loss}
"""
    submit(person, "mixed", sweep)
    job = ended(person, "mixed")
    assert job["status"] == "completed"
    assert str(job["reason"]).startswith("1 of 3 tasks failed, the first: ")
    fine, failed, diverged = show(person, "mixed")["items"]
    assert (fine["phase"], fine["value"]) == ("succeeded", 3.0)
    assert (failed["phase"], failed["value"]) == ("failed", None)
    assert (diverged["phase"], diverged["value"]) == ("succeeded", None)
    assert diverged["reason"] == "its loss was no finite number"
    found: Any = person.json("tasks", "mixed", "--phase", "failed")
    assert [one["index"] for one in found["items"]] == [1]
    assert person.json("sweep", "best", "mixed")["index"] == 0


def test_a_metric_that_nobody_reports_is_a_clear_answer(person: Person) -> None:
    sweep = "    trials: [{loss: 1}, {loss: 2}]\n    objective: {metric: loss}\n"
    submit(person, "silent", sweep, "  env: {METRIC: los}\n")
    assert ended(person, "silent")["status"] == "completed"
    asked = person.run("sweep", "best", "silent")
    assert asked.returncode == 5
    assert "no trial has ended with a finite loss; they report los" in asked.stderr
    assert "crucible sweep show silent" in asked.stderr and "crucible ps" not in asked.stderr
    assert "Progress:  100%" in person.run("describe", "silent").stdout, "its trials said nothing of how far they were"


def test_a_search_in_which_every_trial_diverges_says_so(person: Person) -> None:
    submit(person, "diverged", "    trials: [{loss: nan}, {loss: inf}]\n    objective: {metric: loss}\n")
    assert ended(person, "diverged")["status"] == "completed"
    asked = person.run("sweep", "best", "diverged")
    assert asked.returncode == 5
    assert "no trial has ended with a finite loss: what was reported of it was NaN or infinite" in asked.stderr
    assert {one["reason"] for one in show(person, "diverged")["items"]} == {"its loss was no finite number"}


def test_what_cannot_be_tried_is_told_at_its_line(person: Person) -> None:
    wrong = {
        "none.yaml": ("trials: 0, method: random", "expected a whole number from 1 to 100000, found '0'"),
        "empty.yaml": ("trials: []", "is an empty list"),
        "slip.yaml": ("parameters: {x: {min: 1, max: 2, steps: 1}}", "unknown field 'steps' (did you mean 'step'?)"),
    }
    for name, (sweep, said) in wrong.items():
        text = f"job:\n  name: wrong\n  command: 'true'\n  sweep: {{{sweep}, objective: {{metric: loss}}}}\n"
        refused = person.run("submit", "-y", person.write(name, text))
        assert refused.returncode == 2 and f"{name}:4:" in refused.stderr and said in refused.stderr, refused.stderr
    refused = person.run("template", "use", "sweep", "-p", "trails=4")
    assert refused.returncode == 2 and "has no parameter 'trails' (did you mean 'trials'?)" in refused.stderr


def test_parameters_come_as_variables_or_arguments_too(person: Person) -> None:
    person.write("shown.py", "import os, sys; print(sys.argv[1:], os.environ.get('lr'), flush=True)\n")
    for deliver, said in (("env", "['--seed', '7'] 0.5"), ("args", "['--seed', '7', '--lr=0.5'] None")):
        spec = (
            f"job:\n  name: by-{deliver}\n  entrypoint: shown.py\n  args: [--seed, 7]\n"
            f"  sweep: {{deliver: {deliver}, parameters: {{lr: 0.5}}}}\n"
        )
        ran = person.run("submit", "-y", "-q", person.write(f"{deliver}.yaml", spec))
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip() == said


def test_a_server_that_is_killed_repeats_no_trial_that_has_ended(person: Person) -> None:
    sweep = "    parameters: {loss: {min: 1, max: 6, step: 1}, waits: 1}\n    objective: {metric: loss}\n"
    submit(person, "killed", sweep, "  execution: {parallelism: 1}\n")
    person.until("two have ended", lambda: show(person, "killed")["trials"]["completed"] >= 2)
    before = show(person, "killed")
    os.kill(int(json.loads((person.data / "server.json").read_text())["pid"]), signal.SIGKILL)
    assert ended(person, "killed")["status"] == "completed"
    after = show(person, "killed")
    assert after["trials"]["completed"] == 6
    assert after["best"]["value"] == 1.0
    done = [one["index"] for one in before["items"] if one["phase"] == "succeeded"]
    for index in done:
        assert (after["items"][index]["attempts"], after["items"][index]["ended_at"]) == (
            1,
            before["items"][index]["ended_at"],
        )
    assert [one["value"] for one in after["items"]] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_an_evaluation_is_a_table(person: Person) -> None:
    for name in ("eval.yaml", "evaluate.py"):
        shutil.copy(EXAMPLES / name, person.folder / name)
    ran = person.run("submit", "-y", "-d", "eval.yaml")
    assert ran.returncode == 0, ran.stderr
    assert ended(person, "ring-eval")["status"] == "completed"
    said: Any = person.json("eval", "show", "ring-eval")
    always, _, nearest = said["rows"]
    assert always["cells"][0]["metrics"]["accuracy"] == {"value": 0.5, "delta": None, "is_better": None}
    assert nearest["cells"][0]["metrics"]["accuracy"]["is_better"] is True
    text = person.run("eval", "show", "ring-eval").stdout
    assert "accuracy (more is better, beside always)" in text and "f1" in text
    assert person.run("eval", "show", "ring-eval", "--csv").stdout.count("\n") == 1 + 3 * 2 * 2
