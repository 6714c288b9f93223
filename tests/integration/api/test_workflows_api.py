"""Workflows over HTTP: their steps, the jobs of their steps, and running them again."""

from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from .conftest import Server, eventually
from .test_costs_api import charge, costs

FLOW = """\
job:
  name: %(name)s
  env: {RUN: %(name)s}
  resources: {gpus: 1}
  retry: {limit: 0}
  steps:
    - {name: prepare, command: [echo, prepare]}
    - {name: train, needs: prepare, command: [echo, train]}
    - {name: tell, needs: train, when: failed, command: [echo, tell]}
"""


_NUMBERS = count()


@pytest.fixture
def flow() -> str:
    """Each test has one of its own: what others ran is no result of it."""
    return FLOW % {"name": f"flow{next(_NUMBERS)}"}


def name_of(flow: str) -> str:
    return flow.split()[2]


def workflow(server: Server, job_id: str) -> Any:
    reply = server.call("GET", f"/v1/jobs/{job_id}/workflow")
    assert reply.status == 200, reply.text
    return reply.json


def step(server: Server, job_id: str, name: str) -> Any:
    return next(one for one in workflow(server, job_id)["steps"] if one["name"] == name)


def child(server: Server, job_id: str, name: str) -> str:
    """The job that works for a step, once there is one."""
    return str(eventually(lambda: step(server, job_id, name)["job_id"]))


def run(server: Server, job_id: str, name: str, **ending: Any) -> str:
    found = child(server, job_id, name)
    server.agent(found).begin().finish(**ending)
    return found


def ended(server: Server, job_id: str) -> Any:
    def look() -> Any:
        job = server.call("GET", f"/v1/jobs/{job_id}").json
        return job["status"] in ("completed", "failed", "cancelled") and job

    return eventually(look)


def names(server: Server, query: str = "", token: str = "alice") -> list[str]:
    return [item["name"] for item in server.call("GET", f"/v1/jobs?{query}", token).json["items"]]


def finished(server: Server, flow: str) -> str:
    job_id = server.submit(spec=flow)
    run(server, job_id, "prepare")
    run(server, job_id, "train")
    assert ended(server, job_id)["status"] == "completed"
    return job_id


def test_steps_begin_as_those_before_them_end_and_the_workflow_says_how_far_it_is(server: Server, flow: str) -> None:
    job_id = server.submit(spec=flow)
    first = child(server, job_id, "prepare")
    assert step(server, job_id, "train")["job_id"] is None
    agent = server.agent(first).begin()
    eventually(lambda: step(server, job_id, "prepare")["phase"] == "running")
    job = eventually(lambda: (j := server.call("GET", f"/v1/jobs/{job_id}").json)["status"] == "running" and j)
    assert (job["steps"], job["progress"]["step"], job["progress"]["total_steps"]) == (3, 0, 3)
    agent.finish()
    second = run(server, job_id, "train")
    job = ended(server, job_id)
    assert (job["status"], job["progress"]["fraction"], job["reason"]) == ("completed", 1.0, None)
    told = workflow(server, job_id)
    assert [(one["name"], one["verdict"] or one["phase"]) for one in told["steps"]] == [
        ("prepare", "succeeded"),
        ("train", "succeeded"),
        ("tell", "skipped"),
    ]
    assert [one["job_id"] for one in told["steps"]] == [first, second, None]
    assert told["steps"][2]["reason"] == "nothing before it failed"


def test_the_job_of_a_step_names_its_workflow_and_has_a_spec_of_its_own(server: Server, flow: str) -> None:
    job_id, name = server.submit(spec=flow), name_of(flow)
    found = child(server, job_id, "prepare")
    job = server.call("GET", f"/v1/jobs/{found}").json
    assert (job["name"], job["parent"], job["step"], job["steps"]) == (f"{name}/prepare", job_id, 0, 0)
    assert server.call("GET", f"/v1/jobs/{found}/spec").text == (
        f'job:\n  name: "{name}/prepare"\n  command:\n  - echo\n  - prepare\n  env:\n    RUN: {name}\n'
        "  resources:\n    gpus: 1\n  retry:\n    limit: 0\n"
    )
    assert server.call("GET", f"/v1/jobs/{found}/workflow").status == 409
    again = server.call("POST", "/v1/jobs", json_body={"spec_yaml": flow}).json["id"]
    assert server.call("GET", f"/v1/jobs/{again}").json["parent"] is None


def test_jobs_of_steps_are_listed_only_for_whoever_asks(server: Server, flow: str) -> None:
    job_id, name = server.submit(spec=flow), name_of(flow)
    child(server, job_id, "prepare")
    assert names(server)[0] == name and f"{name}/prepare" not in names(server, "limit=200")
    assert names(server, f"parent={job_id}") == [f"{name}/prepare"]
    assert names(server, "steps=true")[:2] == [f"{name}/prepare", name]
    assert names(server, f"name={name}/prepare") == []
    assert names(server, f"name={name}/prepare&steps=true") == [f"{name}/prepare"]
    assert names(server, f"parent={job_id}", "bob") == [] and name not in names(server, "steps=true", "bob")
    (row,) = server.call("GET", f"/v1/jobs?name={name}").json["items"]
    assert row["progress"] == 0.0
    assert server.call("GET", "/v1/jobs?parent=no%20id").status == 422


def test_a_workflow_costs_what_the_jobs_of_its_steps_cost(server: Server, flow: str) -> None:
    job_id = server.submit(spec=flow)
    found = child(server, job_id, "prepare")
    server.agent(found).begin()
    charge(server, found, started=timedelta(minutes=10))
    own, whole = costs(server, found), costs(server, job_id)
    assert whole["so_far_microusd"] >= own["so_far_microusd"] > 0
    assert {one["machine_id"] for one in whole["machines"]} == {one["machine_id"] for one in own["machines"]}
    cost = server.call("GET", f"/v1/jobs/{job_id}").json["cost"]["running_usd"]
    assert cost == pytest.approx(whole["so_far_usd"], rel=0.05)
    rows = {item["id"]: item["cost_usd"] for item in server.call("GET", "/v1/jobs?steps=true").json["items"]}
    assert rows[job_id] == pytest.approx(rows[found], rel=0.01) and rows[job_id] > 0
    assert step(server, job_id, "prepare")["cost_usd"] == pytest.approx(rows[job_id], rel=0.05)


def test_a_failure_is_told_with_the_name_of_its_step(server: Server, flow: str) -> None:
    job_id = server.submit(spec=flow)
    run(server, job_id, "prepare")
    run(server, job_id, "train", exit_code=3)
    run(server, job_id, "tell")
    job = ended(server, job_id)
    assert job["status"] == "failed" and "train: rank 0 exited with code 3" in job["reason"]


def test_a_retry_from_a_step_takes_over_what_was_before_it(server: Server, flow: str) -> None:
    origin = finished(server, flow)
    reply = server.call("POST", f"/v1/jobs/{origin}/retry", json_body={"from_step": "train"})
    assert reply.status == 201 and reply.json["origin"] == origin
    again = reply.json["id"]
    run(server, again, "train")
    assert ended(server, again)["status"] == "completed"
    told = workflow(server, again)["steps"]
    assert [one["verdict"] or one["phase"] for one in told] == ["reused", "succeeded", "skipped"]
    assert told[0]["job_id"] == step(server, origin, "prepare")["job_id"]


def test_a_plain_retry_runs_nothing_that_has_not_changed(server: Server, flow: str) -> None:
    origin = finished(server, flow)
    again = server.call("POST", f"/v1/jobs/{origin}/retry").json["id"]
    assert ended(server, again)["status"] == "completed"
    assert [one["verdict"] for one in workflow(server, again)["steps"]] == ["reused", "reused", "skipped"]
    assert names(server, f"parent={again}") == []


def test_nobody_has_another_person_s_results(server: Server, flow: str) -> None:
    finished(server, flow)
    theirs = server.submit("bob", spec=flow)
    told = eventually(lambda: server.call("GET", f"/v1/jobs/{theirs}/workflow", "bob").json["steps"][0]["job_id"])
    assert server.call("GET", f"/v1/jobs/{told}", "bob").json["parent"] == theirs
    assert server.call("GET", f"/v1/jobs/{theirs}/workflow", "alice").status == 404


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"from_step": "tran"}, 404, "the steps are prepare, train, tell"),
        ({"from_step": ""}, 422, "from_step"),
        ({"from_step": "../x"}, 422, "from_step"),
        ({"steps": "train"}, 422, "steps"),
    ],
)
def test_a_retry_that_cannot_be_is_refused_and_changes_nothing(
    server: Server, flow: str, body: dict[str, str], status: int, word: str
) -> None:
    origin = finished(server, flow)
    before = names(server, "steps=true")
    reply = server.call("POST", f"/v1/jobs/{origin}/retry", json_body=body)
    assert reply.status == status and word in reply.text
    assert names(server, "steps=true") == before


def test_only_a_workflow_is_run_again_from_a_step(server: Server, flow: str) -> None:
    job_id = server.submit()
    server.agent(job_id).begin().finish()
    ended(server, job_id)
    reply = server.call("POST", f"/v1/jobs/{job_id}/retry", json_body={"from_step": "train"})
    assert reply.status == 409 and "has no steps" in reply.text
    assert server.call("GET", f"/v1/jobs/{job_id}/workflow").status == 409
    running = server.submit(spec=flow)
    assert server.call("POST", f"/v1/jobs/{running}/retry", json_body={"from_step": "train"}).status == 409


def test_a_cancel_reaches_the_jobs_of_the_steps(server: Server, flow: str) -> None:
    job_id = server.submit(spec=flow)
    found = child(server, job_id, "prepare")
    assert server.call("POST", f"/v1/jobs/{job_id}/cancel").status == 200
    assert ended(server, job_id)["status"] == "cancelled"
    assert ended(server, found)["status"] == "cancelled"
    assert {one["phase"] for one in workflow(server, job_id)["steps"]} == {"cancelled"}


def test_the_job_of_a_step_may_be_cancelled_alone(server: Server, flow: str) -> None:
    job_id = server.submit(spec=flow.replace("when: failed", "when: ended"))
    found = child(server, job_id, "prepare")
    assert server.call("POST", f"/v1/jobs/{found}/cancel").status == 200
    run(server, job_id, "tell")
    assert ended(server, job_id)["status"] == "cancelled"
    assert [one["verdict"] or one["phase"] for one in workflow(server, job_id)["steps"]] == [
        "cancelled",
        "skipped",
        "succeeded",
    ]


def test_a_step_that_nothing_could_run_keeps_the_workflow_out(server: Server, flow: str) -> None:
    spec = flow.replace("needs: prepare,", "needs: prepare, resources: {gpus: 4096},")
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": spec})
    assert reply.status == 422 and reply.json["error"] == "infeasible_job"
    assert reply.json["message"].startswith("step train: no offer fits")
    assert reply.json["details"]["field"].startswith("job.steps[1].")
    assert names(server, f"name={name_of(flow)}") == []


def test_the_plan_of_a_workflow_is_a_plan_for_each_step(server: Server, flow: str) -> None:
    said = server.call("POST", "/v1/plan", json_body={"spec_yaml": flow})
    assert said.status == 200
    assert [one["name"] for one in said.json["steps"]] == ["prepare", "train", "tell"]
    assert all(one["chosen"]["provider"] == "fake" for one in said.json["steps"])
    job_id = server.submit(spec=flow)
    assert len(server.call("GET", f"/v1/jobs/{job_id}/plan").json["steps"]) == 3


def test_a_workflow_has_no_program_of_its_own(server: Server, flow: str) -> None:
    job_id = server.submit(spec=flow)
    script = server.call("GET", f"/v1/jobs/{job_id}/launch-script")
    assert script.status == 409 and "the job of a step" in script.text
    why = server.call("GET", f"/v1/jobs/{job_id}/why").json
    assert "train: waits for the steps that it needs" in [task["reason"] for task in why["tasks"]]
