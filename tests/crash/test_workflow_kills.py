"""The server dies between the steps of workflows, around every commit that is about them. Nothing changes: each step
runs once, after those that it needs, with what they left."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from crash.database import rows_of
from crash.harness import World, world
from crash.points import WORKFLOWS, both
from crash.server_process import KILLED, until
from crucible.client.api import TERMINAL
from crucible.client.errors import ConnectionLost, ServerTimeout, ServerUnreachable
from postgres_engine import Postgres

# Within one workflow each is hit several times: as steps begin, as their jobs go on, as they end.
BETWEEN_STEPS = [f"{point}:{number}" for number in (1, 3, 5) for point in both("commit.workflow.step")]
# The first submission is the workflow's own.
BEGINNING = [f"{point}:{number}" for number in (2, 3, 5) for point in both("commit.submit")]
TOLD = both("commit.desired")
STEPS = 5

SPEC = """\
job:
  name: {name}
  retry: {{limit: 0}}
  constraints: {{providers: [local]}}
  env: {{RUN: {run}}}
  steps:
    - name: first
      command: "echo first >> {witness}; echo $RUN > $CRUCIBLE_OUTPUT/word"
    - name: left
      needs: first
      inputs: {{from: first}}
      command: "echo left >> {witness}; cp $CRUCIBLE_INPUTS/from/word $CRUCIBLE_OUTPUT/word"
    - name: right
      needs: first
      command: "echo right >> {witness}; exit {exit}"
    - name: last
      needs: [left, right]
      inputs: {{from: left/word}}
      command: "echo last:$(cat $CRUCIBLE_INPUTS/$INPUT_FROM) >> {witness}"
    - name: handler
      needs: last
      when: failed
      command: "echo handler >> {witness}"
"""


def a_spec(made: World, name: str, run: str, exit_code: int = 0) -> str:
    return SPEC.format(name=name, run=run, witness=made.notes / name, exit=exit_code)


def submit(made: World, name: str, spec: str) -> str:
    return str(made.insist(lambda client: client.submit(name, spec, idempotency_key=name))["id"])


def die_at(made: World, point: str, **fields: Any) -> str:
    """The id of a workflow during which the server died at `point`; it runs again when this returns."""
    name = name_of(point)
    made.server.start(armed=point)
    job = submit(made, name, a_spec(made, name, name, **fields))
    code = made.server.wait_for_end(60.0)
    if code is None:
        made.server.kill()
    made.disturbed()
    made.server.start().wait_ready()
    assert code == KILLED, f"{point} was not reached (exit {code})"
    return job


def name_of(point: str) -> str:
    return point.replace(".", "-").replace(":", "-")


def states(made: World, job: str) -> dict[str, str]:
    told = made.insist(lambda client: client.workflow(job))
    return {step["name"]: step["verdict"] or step["phase"] for step in told["steps"]}


def is_over(made: World, job: str) -> bool:
    """As the database has it: nobody else is there to be asked."""
    with rows_of(made.data, made.database) as rows:
        return any(status in TERMINAL for (status,) in rows(f"SELECT status FROM jobs WHERE id = '{job}'"))


def witnessed(made: World, name: str) -> list[str]:
    return (made.notes / name).read_text().split()


def check(made: World, job: str, name: str, word: str) -> None:
    assert made.wait(job, TERMINAL)["status"] == "completed"
    seen = witnessed(made, name)
    assert seen[0] == "first" and set(seen[1:3]) == {"left", "right"} and seen[3:] == [f"last:{word}"], seen
    assert states(made, job) == {**dict.fromkeys(("first", "left", "right", "last"), "succeeded"), "handler": "skipped"}
    children = made.insist(lambda client: client.jobs(parent=job))["items"]
    assert len(children) == 4 and {child["status"] for child in children} == {"completed"}
    assert log_of(made, job) == sorted(log_of(made, job)), "events have an order"


def log_of(made: World, job: str) -> Sequence[int]:
    return [event["seq"] for event in made.insist(lambda client: client.events(job, everything=True))]


@pytest.mark.parametrize("points", [BETWEEN_STEPS, BEGINNING], ids=["between-steps", "beginning"])
@pytest.mark.parametrize("is_shared", [False, True], ids=["sqlite", "postgres"])
def test_a_death_between_any_two_steps_changes_nothing(
    tmp_path: Path, request: pytest.FixtureRequest, points: list[str], is_shared: bool
) -> None:
    """Half of the points on each database."""
    server: Postgres | None = request.getfixturevalue("postgres") if is_shared else None
    with world(tmp_path, database=server and server.fresh_database()) as made:
        for point in points[is_shared::2]:
            job = die_at(made, point)
            check(made, job, name_of(point), name_of(point))
            made.server.stop()
        made.server.start().wait_ready()


def test_a_server_that_dies_at_every_commit_of_a_workflow_brings_it_to_its_end(tmp_path: Path) -> None:
    """Each server gets one commit further than the last: so it dies between any two steps."""
    with world(tmp_path) as made:
        made.server.start().wait_ready()
        job = submit(made, "often", a_spec(made, "often", "word"))
        made.server.kill()
        deaths = 0
        while not is_over(made, job):
            made.server.start(armed="commit.workflow.step.after:1")
            until("it dies, or all is done", lambda: made.server.has_ended() or is_over(made, job), 120.0)
            deaths += made.server.has_ended()
            made.server.kill()
            made.disturbed()
        made.server.start().wait_ready()
        check(made, job, "often", "word")
        assert deaths >= STEPS, "each of them has begun and ended"


def test_a_death_while_a_failure_is_handled_changes_nothing(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        for point in ("commit.workflow.step.before:5", "commit.workflow.step.after:5"):
            job = die_at(made, point, exit_code=3)
            assert made.wait(job, TERMINAL)["status"] == "failed"
            seen = witnessed(made, name_of(point))
            assert seen[0] == "first" and sorted(seen[1:]) == ["handler", "left", "right"]
            assert seen.index("right") < seen.index("handler"), "what is left to do keeps no failure waiting"
            assert states(made, job) == {
                "first": "succeeded", "left": "succeeded", "right": "failed", "last": "skipped", "handler": "succeeded",
            }  # fmt: skip
            made.server.stop()
        made.server.start().wait_ready()


@pytest.mark.parametrize("point", [point for point in WORKFLOWS if "begin" in point])
def test_a_death_while_results_are_taken_over_runs_nothing_again(tmp_path: Path, point: str) -> None:
    with world(tmp_path) as made:
        made.server.start().wait_ready()
        job = submit(made, "before", a_spec(made, "same", "word"))
        check(made, job, "same", "word")
        made.server.stop()
        made.server.start(armed=f"{point}:2")
        again = submit(made, "after", a_spec(made, "same", "word"))
        assert made.server.wait_for_end(60.0) == KILLED
        made.disturbed()
        made.server.start().wait_ready()
        assert made.wait(again, TERMINAL)["status"] == "completed"
        assert len(witnessed(made, "same")) == 4, "nothing has run again"
        told = states(made, again)
        assert told.pop("handler") == "skipped" and set(told.values()) == {"reused"}
        assert made.insist(lambda client: client.jobs(parent=again))["items"] == []


@pytest.mark.parametrize("point", [f"{point}:{number}" for number in (1, 2) for point in TOLD])
def test_a_death_while_a_workflow_is_cancelled_leaves_no_job_behind(tmp_path: Path, point: str) -> None:
    """The first wish is the person's, the second is for the job of the running step."""
    spec = "job:\n  name: long\n  steps:\n  - {name: a, command: sleep 600}\n  - {name: b, needs: a, command: echo b}\n"
    with world(tmp_path) as made:
        made.server.start(armed=point).wait_ready()
        job = submit(made, "long", spec)
        until("it runs", lambda: states(made, job)["a"] == "running")
        with suppress(ServerUnreachable, ServerTimeout, ConnectionLost), made.client() as client:
            client.cancel(job)  # the server may die before it answers
        assert made.server.wait_for_end(60.0) == KILLED
        made.disturbed()
        made.server.start().wait_ready()
        made.insist(lambda client: client.cancel(job))
        assert made.wait(job, TERMINAL)["status"] == "cancelled"
        (child,) = made.insist(lambda client: client.jobs(parent=job))["items"]
        assert made.wait(child["id"], TERMINAL)["status"] == "cancelled"
        assert states(made, job) == {"a": "cancelled", "b": "cancelled"}
