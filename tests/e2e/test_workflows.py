"""Workflows as people use them: the command line, a real server, real agents."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab_process import RunningLab
from person import Person
from status_shape import assert_status

EXAMPLE = Path(__file__).parents[2] / "examples" / "workflow"


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    someone = Person(tmp_path)
    yield someone
    someone.leave()


@pytest.fixture
def cloud_person(tmp_path: Path) -> Iterator[Person]:
    """Somebody with this computer and a cloud in the Lab."""
    with RunningLab(tmp_path) as lab:
        someone = Person(tmp_path)
        someone.env |= lab.environment
        yield someone
        someone.leave()


def steps(person: Person, job: str) -> dict[str, Any]:
    told: Any = person.json("workflow", "show", job)["steps"]
    return {step["name"]: step for step in told}


def states(person: Person, job: str) -> dict[str, str]:
    return {name: step["verdict"] or step["phase"] for name, step in steps(person, job).items()}


def spec(*lines: str, **fields: Any) -> str:
    """A workflow; each line is a step as a flow mapping."""
    listed = "".join(f"    - {{{line}}}\n" for line in lines)
    return f"job:\n  name: flow\n  retry: {{limit: 0}}\n{fields.get('more', '')}  steps:\n{listed}"


def copy_example(person: Person) -> None:
    shutil.copytree(EXAMPLE, person.folder, dirs_exist_ok=True)


# --- the example ------------------------------------------------------------------------------------------------------


def test_the_example_runs_and_is_not_run_again_until_something_changes(person: Person) -> None:
    copy_example(person)
    ran = person.run("submit", "workflow.yaml")
    assert ran.returncode == 0, ran.stderr
    assert "accuracy 0.9" in ran.stdout and "epoch 39" in ran.stdout
    first = str(person.json("describe", "preprocess-train-evaluate")["id"])
    assert states(person, first) == dict.fromkeys(("preprocess", "train", "evaluate"), "succeeded")

    again = person.run("submit", "workflow.yaml", "-q")
    assert (again.returncode, again.stdout) == (0, ""), again.stderr
    second = str(person.json("describe", "preprocess-train-evaluate")["id"])
    assert second != first and set(states(person, second).values()) == {"reused"}
    assert {s["outputs"] for s in steps(person, first).values()} == {
        s["outputs"] for s in steps(person, second).values()
    }

    text = (person.folder / "workflow.yaml").read_text()
    changed = person.run("submit", person.write("workflow.yaml", text.replace('EPOCHS: "40"', 'EPOCHS: "41"')), "-q")
    assert changed.returncode == 0, changed.stderr
    third = str(person.json("describe", "preprocess-train-evaluate")["id"])
    assert states(person, third) == {"preprocess": "reused", "train": "succeeded", "evaluate": "succeeded"}


def test_a_rerun_from_the_middle_takes_over_what_was_before_it(person: Person) -> None:
    copy_example(person)
    assert person.run("submit", "workflow.yaml", "-q").returncode == 0
    first = str(person.json("describe", "preprocess-train-evaluate")["id"])
    ran = person.run("retry", first, "--from", "train", "-f")
    assert ran.returncode == 0, ran.stderr
    assert "epoch 39" in ran.stdout and "1600 points" not in ran.stdout
    job: Any = person.json("describe", "preprocess-train-evaluate")
    assert job["origin"] == first and assert_status(job["now"])["progress"]["fraction"] == 1.0
    assert states(person, str(job["id"])) == {"preprocess": "reused", "train": "succeeded", "evaluate": "succeeded"}
    refused = person.run("retry", first, "--from", "tran")
    assert (
        refused.returncode == 5 and "there is no step tran; the steps are preprocess, train, evaluate" in refused.stderr
    )


def test_the_example_runs_over_two_backends(cloud_person: Person) -> None:
    person = cloud_person
    copy_example(person)
    ran = person.run("submit", "two_backends.yaml")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    told = steps(person, "over-two-backends")
    assert {name: step["provider"] for name, step in told.items()} == {
        "preprocess": "local",
        "train": "aws",
        "evaluate-here": "local",
        "evaluate-there": "aws",
        "compare": "local",
    }
    here, there = (line.split()[-1] for line in ran.stdout.splitlines() if line.startswith(("here:", "there:")))
    assert here == there

    job_id = str(person.json("describe", "over-two-backends")["id"])
    # Until then the cost grows from one question to the next.
    person.until("every machine is paid for", lambda: all(m["ended_at"] is not None for m in charged(person, job_id)))
    job: Any = person.json("describe", job_id)
    by_step = sum(step["cost_usd"] for step in steps(person, job_id).values())
    assert job["cost"]["running_usd"] == pytest.approx(by_step, abs=1e-6) and by_step > 0
    costs: Any = person.json("costs", job_id)
    assert {machine["provider"] for machine in costs["machines"]} == {"aws"} and len(costs["machines"]) == 2
    assert costs["so_far_microusd"] == sum(entry["amount_microusd"] for entry in costs["intervals"]) > 0

    again = person.run("retry", job_id, "--from", "evaluate-there", "-f")
    assert again.returncode == 0, again.stderr + again.stdout
    rerun = str(person.json("describe", "over-two-backends")["id"])
    reused = dict.fromkeys(("preprocess", "train", "evaluate-here"), "reused")
    assert states(person, rerun) == {**reused, "evaluate-there": "succeeded", "compare": "succeeded"}
    assert [steps(person, rerun)[name]["provider"] for name in ("evaluate-there", "compare")] == ["aws", "local"]
    assert [line.split()[-1] for line in again.stdout.splitlines() if line.startswith("there:")] == [there]
    assert len(charged(person, rerun)) == 1, "only the step that ran again has bought a machine"


def charged(person: Person, job: str) -> list[Any]:
    machines: Any = person.json("costs", job)["machines"]
    return list(machines)


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_a_diamond_runs_its_sides_before_its_end(person: Person) -> None:
    text = spec(
        'name: top, command: "echo top > $CRUCIBLE_OUTPUT/name"',
        'name: left, needs: top, inputs: {t: top}, command: "cat $CRUCIBLE_INPUTS/t/name > $CRUCIBLE_OUTPUT/name"',
        'name: right, needs: top, command: "echo right > $CRUCIBLE_OUTPUT/name"',
        "name: end, needs: [left, right], inputs: {l: left/name, r: right/name}, "
        'command: "cd $CRUCIBLE_INPUTS && cat $INPUT_L $INPUT_R"',
    )
    ran = person.run("submit", person.write("flow.yaml", text))
    assert ran.returncode == 0, ran.stderr
    told = steps(person, "flow")
    assert told["end"]["started_at"] > max(told[side]["finished_at"] for side in ("left", "right"))
    assert min(told[side]["started_at"] for side in ("left", "right")) > told["top"]["finished_at"]
    rows: Any = person.json("ps", "-a")["items"]
    assert [(row["name"], row["progress"]) for row in rows] == [("flow", 1.0)]
    every: Any = person.json("ps", "-a", "--all-jobs")["items"]
    assert {row["name"] for row in every} == {"flow", "flow/top", "flow/left", "flow/right", "flow/end"}
    assert person.run("logs", "flow", "--step", "end").stdout.endswith("top\nright\n")


def test_a_failure_skips_what_needs_it_and_wakes_its_handler(person: Person) -> None:
    text = spec(
        "name: train, command: exit 3",
        "name: evaluate, needs: train, command: echo never",
        'name: tell, needs: evaluate, when: failed, command: "echo it failed"',
        "name: clean, needs: [evaluate], when: ended, command: echo cleaned",
        "name: celebrate, needs: [clean], when: failed, command: echo told",
    )
    ran = person.run("submit", person.write("flow.yaml", text))
    assert ran.returncode == 100
    assert states(person, "flow") == {
        "train": "failed",
        "evaluate": "skipped",
        "tell": "succeeded",
        "clean": "succeeded",
        "celebrate": "succeeded",
    }
    assert "train: rank 0 exited with code 3" in str(person.json("describe", "flow")["reason"])
    assert "it failed" in ran.stdout and "never" not in ran.stdout
    assert steps(person, "flow")["evaluate"]["reason"] == "train failed"


def test_a_plain_retry_runs_only_what_did_not_succeed(person: Person) -> None:
    flag = person.folder / "fixed"
    text = spec("name: good, command: echo good", f'name: bad, needs: good, command: "test -e {flag}"')
    assert person.run("submit", person.write("flow.yaml", text), "-q").returncode == 100
    first = str(person.json("describe", "flow")["id"])
    flag.write_text("")
    assert person.run("retry", first, "-f").returncode == 0
    second = str(person.json("describe", "flow")["id"])
    assert states(person, second) == {"good": "reused", "bad": "succeeded"}


def test_a_step_without_cache_runs_every_time(person: Person) -> None:
    text = spec("name: a, command: echo ran, cache: no", "name: b, needs: a, command: echo b")
    for _ in range(2):
        ran = person.run("submit", person.write("flow.yaml", text))
        assert ran.returncode == 0 and "ran" in ran.stdout
    assert states(person, "flow") == {"a": "succeeded", "b": "reused"}


def test_an_input_that_nobody_left_fails_its_step_with_the_reason(person: Person) -> None:
    text = spec(
        'name: a, command: "echo x > $CRUCIBLE_OUTPUT/there"',
        "name: empty, command: echo nothing",
        "name: b, needs: a, inputs: {x: a/elsewhere}, command: echo b",
        "name: c, needs: empty, inputs: {x: empty}, command: echo c",
    )
    assert person.run("submit", person.write("flow.yaml", text), "-q").returncode == 100
    told = steps(person, "flow")
    assert told["b"]["reason"] == "b: a has left no elsewhere"
    assert told["c"]["reason"] == "c: empty has left nothing behind: what it writes into $CRUCIBLE_OUTPUT is kept"


def test_a_step_runs_for_each_item_that_another_left_and_the_next_has_all_of_them(person: Person) -> None:
    text = spec(
        "name: list, command: \"printf 'ant\\nbee\\ncat\\n' > $CRUCIBLE_OUTPUT/animals.txt\"",
        "name: shout, needs: list, for_each: list/animals.txt, "
        'command: "echo $item | tr a-z A-Z > $CRUCIBLE_OUTPUT/loud"',
        'name: gather, needs: shout, inputs: {w: shout/loud}, command: "cd $CRUCIBLE_INPUTS && cat $INPUT_W"',
    )
    ran = person.run("submit", person.write("flow.yaml", text))
    assert ran.returncode == 0, ran.stderr
    assert person.run("logs", "flow", "--step", "gather").stdout.split()[-3:] == ["ANT", "BEE", "CAT"]
    again = person.run("submit", "flow.yaml", "-q")
    assert again.returncode == 0 and set(states(person, "flow").values()) == {"reused"}
    assert person.run("retry", "flow", "--from", "gather", "-f", "-q").returncode == 0
    assert person.run("logs", "flow", "--step", "gather").stdout.split()[-3:] == ["ANT", "BEE", "CAT"]


def test_a_list_that_is_none_fails_the_step_that_wants_it(person: Person) -> None:
    text = spec(
        "name: list, command: \"echo '[1, [2]]' > $CRUCIBLE_OUTPUT/numbers.json\"",
        "name: each, needs: list, for_each: list/numbers.json, command: echo $item",
    )
    assert person.run("submit", person.write("flow.yaml", text), "-q").returncode == 100
    assert "each: list/numbers.json: item 1 is neither text" in steps(person, "flow")["each"]["reason"]


def test_a_step_whose_job_is_refused_when_its_turn_comes_fails_with_that_reason(person: Person) -> None:
    gate = person.folder / "gate"
    (person.folder / "files").mkdir()
    (person.folder / "files" / "a").write_text("a")
    assert person.run("dataset", "add", "words", "files").returncode == 0
    text = spec(
        f'name: wait, command: "until test -e {gate}; do sleep 0.1; done"',
        "name: read, needs: wait, data: {dataset: dataset://words}, command: echo read",
        "name: tell, needs: read, when: failed, command: echo told",
    )
    job = person.run("submit", person.write("flow.yaml", text), "-dq").stdout.strip()
    person.until("it runs", lambda: states(person, job)["wait"] == "running")
    assert person.run("dataset", "rm", "words").returncode == 0
    gate.write_text("")
    assert person.run("wait", job).returncode == 100
    assert states(person, job) == {"wait": "succeeded", "read": "failed", "tell": "succeeded"}
    assert steps(person, job)["read"]["reason"].startswith("read: there is no dataset words")
    assert steps(person, job)["read"]["job_id"] is None


# --- what people want -------------------------------------------------------------------------------------------------


def test_a_cancel_ends_the_running_step_and_all_that_wait(person: Person) -> None:
    text = spec("name: long, command: sleep 600", "name: after, needs: long, when: ended, command: echo no")
    job = person.run("submit", person.write("flow.yaml", text), "-dq").stdout.strip()
    person.until("it runs", lambda: states(person, job)["long"] == "running")
    assert person.run("cancel", job).returncode == 0
    assert person.run("wait", job).returncode == 103
    assert states(person, job) == {"long": "cancelled", "after": "cancelled"}
    children: Any = person.json("ps", "-a", "--all-jobs")["items"]
    assert {row["name"]: row["status"] for row in children} == {"flow": "cancelled", "flow/long": "cancelled"}


def test_a_held_workflow_waits_with_its_steps_until_it_is_released(person: Person) -> None:
    gate = person.folder / "gate"
    waiting = f"until test -e {gate}; do sleep 0.1; done"
    text = spec(f'name: a, command: "{waiting}"', "name: b, needs: a, command: echo b")
    job = person.run("submit", person.write("flow.yaml", text), "-dq").stdout.strip()
    person.until("it runs", lambda: states(person, job)["a"] == "running")
    assert person.run("hold", job, "--reason", "lunch").returncode == 0
    person.until("its step is held", lambda: states(person, job)["a"] == "waiting")
    assert person.json("describe", "flow/a")["desired"] == "hold"
    gate.write_text("")
    assert person.run("release", job).returncode == 0
    assert person.run("wait", job).returncode == 0
    assert states(person, job) == {"a": "succeeded", "b": "succeeded"}


def test_what_cannot_be_is_told_before_anything_begins(person: Person) -> None:
    circle = spec("name: a, needs: b, command: x", "name: b, needs: a, command: x")
    refused = person.run("submit", person.write("flow.yaml", circle))
    assert refused.returncode == 2 and "in a circle: a → b → a" in refused.stderr
    unknown = spec("name: a, command: x", "name: b, needs: [a], inputs: {d: prepare}, command: x")
    refused = person.run("submit", person.write("flow.yaml", unknown))
    assert refused.returncode == 2 and "there is no step 'prepare'" in refused.stderr
    huge = spec("name: a, command: x", "name: b, needs: a, command: x, resources: {gpus: 99999}")
    refused = person.run("submit", person.write("flow.yaml", huge))
    assert refused.returncode == 3 and "step b: no offer fits" in refused.stderr
    assert person.json("ps", "-a") == {"items": []}
    plain = person.run("submit", person.write("job.yaml", "job: {name: plain, command: echo hi}\n"), "-q")
    assert plain.returncode == 0
    assert "no workflow" in person.run("workflow", "show", "plain").stderr
    assert json.loads(person.run("describe", "plain", "-o", "json").stdout)["steps"] == 0
