"""A5: jobs over HTTP, with the shapes of seed 000."""

import re
from pathlib import Path
from typing import Any

from .conftest import SPEC, Server, eventually

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
BIG = SPEC.replace("gpus: 1", "gpus: 8, max_gpus_per_node: 8")


def finished(server: Server, spec: str = SPEC) -> str:
    job_id = server.submit(spec=spec)
    server.agent(job_id).begin().finish()
    return job_id


def shape(value: Any) -> Any:
    """The names in a JSON value, with what they hold left out."""
    return {name: shape(inner) for name, inner in value.items()} if isinstance(value, dict) else None


def test_submitting_answers_with_id_status_and_time(server: Server) -> None:
    reply = server.call("POST", "/v1/jobs", json_body={"name": "resnet50-imagenet", "spec_yaml": SPEC})
    assert reply.status == 201
    assert UUID.fullmatch(reply.json["id"])
    assert reply.json["status"] == "pending"
    assert MOMENT.fullmatch(reply.json["created_at"])


def test_a_job_has_the_shape_of_the_first_document(server: Server) -> None:
    job_id = server.submit(name="resnet50-imagenet")
    agent = server.agent(job_id).begin()
    agent.report(progress=[{"attempt_id": agent.launch["attempt_id"], "rank": 0, "step": 5, "total_steps": 10}])
    job = eventually(
        lambda: (
            (found := server.call("GET", f"/v1/jobs/{job_id}").json)["status"] == "running"
            and found["progress"]
            and found
        )
    )
    assert {"id", "name", "status", "job_type", "framework", "execution_mode"} <= set(job)
    assert (job["id"], job["name"], job["job_type"]) == (job_id, "resnet50-imagenet", "training")
    assert job["selected"] == {
        "provider": "fake",
        "region": "nowhere-1",
        "backend": "vm",
        "instance_type": "fake-1gpu",
        "spot": False,
        "count": 1,
    }
    assert shape(job["cost"]) == {"running_usd": None, "estimated_usd": None}
    assert MOMENT.fullmatch(job["timestamps"]["created_at"]) and MOMENT.fullmatch(job["timestamps"]["started_at"])
    assert job["timestamps"]["finished_at"] is None
    assert (job["progress"]["step"], job["progress"]["fraction"]) == (5, 0.5)
    assert job["attempts"] == {"started": 1, "failures": 0, "losses": 0}
    assert (job["desired"], job["user_id"], job["origin"], job["lineage"]) == ("run", "alice", None, job_id)
    agent.finish()


def test_a_job_that_has_no_place_yet_has_nothing_selected(server: Server) -> None:
    job_id = server.submit(spec=BIG.replace("command", "priority: -5\n  command"))
    assert server.call("POST", f"/v1/jobs/{job_id}/hold", json_body={"reason": "not now"}).status == 200
    job = server.call("GET", f"/v1/jobs/{job_id}").json
    assert job["desired"] == "hold"
    assert server.call("POST", f"/v1/jobs/{job_id}/release").json["desired"] == "run"
    assert server.call("POST", f"/v1/jobs/{job_id}/cancel").json["desired"] == "cancel"


def test_the_same_idempotency_key_is_the_same_job(server: Server) -> None:
    def submit(spec: str, key: str, token: str = "alice") -> Any:
        headers = {"Idempotency-Key": key}
        return server.call("POST", "/v1/jobs", token, json_body={"spec_yaml": spec}, headers=headers)

    first, again = submit(SPEC, "key-1"), submit(SPEC, "key-1")
    assert (again.status, again.json["id"]) == (201, first.json["id"])
    other = submit(SPEC.replace("tiny", "other"), "key-1")
    assert (other.status, other.json["error"]) == (409, "conflict")
    assert submit(SPEC, "key-1", "bob").json["id"] != first.json["id"]
    assert submit(SPEC, "bad key").status == 422


def test_a_broken_spec_is_refused_with_every_problem_at_its_line(server: Server) -> None:
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": "job:\n  typ: training\n  resources: {gpus: -1}\n"})
    assert (reply.status, reply.json["error"]) == (422, "invalid_spec")
    problems = reply.json["details"]["problems"]
    assert {problem["line"] for problem in problems} >= {2, 3}


def test_a_job_that_nothing_can_run_names_the_field_that_blocks(server: Server) -> None:
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": SPEC.replace("gpus: 1", "gpus: 1000")})
    assert (reply.status, reply.json["error"]) == (422, "infeasible_job")
    assert reply.json["details"]["field"].startswith("resources")
    assert set(reply.json) == {"error", "message", "details"}


def test_a_wish_that_is_not_understood_is_not_dropped(server: Server) -> None:
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": SPEC, "queue": "fast"})
    assert (reply.status, reply.json["error"]) == (422, "invalid_request")
    assert reply.json["details"]["field"] == "body.queue"


def test_the_list_is_newest_first_page_by_page_and_only_ones_own(server: Server) -> None:
    mine = [server.submit("bob", name=f"page-{n}") for n in range(5)]
    server.submit("alice", name="page-x")
    seen: list[str] = []
    cursor = ""
    while cursor is not None:
        page = server.call("GET", f"/v1/jobs?limit=2&cursor={cursor}", "bob").json
        assert len(page["items"]) <= 2
        seen += [item["id"] for item in page["items"] if item["name"].startswith("page-")]
        cursor = page["next_cursor"]
    assert seen == mine[::-1]
    everybody = server.call("GET", "/v1/jobs?limit=200", "admin").json["items"]
    assert {item["user_id"] for item in everybody} == {"alice", "bob"}


def test_the_list_is_filtered_by_status_and_name(server: Server) -> None:
    job_id = server.submit("bob", name="filtered")
    server.call("POST", f"/v1/jobs/{job_id}/cancel", "bob")
    eventually(lambda: server.call("GET", f"/v1/jobs/{job_id}", "bob").json["status"] == "cancelled")
    items = server.call("GET", "/v1/jobs?status=cancelled,failed&name=filtered", "bob").json["items"]
    assert [item["id"] for item in items] == [job_id]
    assert {"id", "name", "status", "reason", "progress", "cost_usd", "provider"} <= set(items[0])
    assert server.call("GET", "/v1/jobs?status=running&name=filtered", "bob").json["items"] == []
    refused = server.call("GET", "/v1/jobs?status=asleep", "bob")
    assert (refused.status, refused.json["details"]["field"]) == (400, "status")
    assert server.call("GET", "/v1/jobs?limit=0", "bob").status == 422
    assert server.call("GET", "/v1/jobs?cursor=rubbish", "bob").status in (400, 422)


def test_cancelling_twice_is_the_same_and_a_finished_job_cannot_be_cancelled(server: Server) -> None:
    job_id = server.submit()
    for _ in range(2):
        reply = server.call("POST", f"/v1/jobs/{job_id}/cancel")
        assert (reply.status, reply.json["id"], reply.json["desired"]) == (200, job_id, "cancel")
    eventually(lambda: server.call("GET", f"/v1/jobs/{job_id}").json["status"] == "cancelled")
    assert server.call("POST", f"/v1/jobs/{job_id}/cancel").json["status"] == "cancelled"
    done = finished(server)
    reply = server.call("POST", f"/v1/jobs/{done}/cancel")
    assert (reply.status, reply.json["error"]) == (409, "conflict")


def test_retry_and_resume_make_new_jobs_that_know_where_they_come_from(server: Server, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    uri = tmp_path.as_uri()
    job_id = server.submit()
    assert server.call("POST", f"/v1/jobs/{job_id}/retry").status == 409
    agent = server.agent(job_id).begin()
    saved = {"attempt_id": agent.launch["attempt_id"], "rank": 0, "step": 7, "uri": uri, "size_bytes": 3}
    agent.report(checkpoints=[{**saved, "manifest_sha256": "a" * 64, "at_ms": 1, "metadata": {"loss": 0.5}}])
    agent.finish(1)
    retried = server.call("POST", f"/v1/jobs/{job_id}/retry")
    resumed = server.call("POST", f"/v1/jobs/{job_id}/resume")
    assert retried.status == resumed.status == 201
    assert retried.json["origin"] == resumed.json["origin"] == job_id
    assert server.call("GET", f"/v1/jobs/{resumed.json['id']}").json["lineage"] == job_id
    (checkpoint,) = server.call("GET", f"/v1/jobs/{resumed.json['id']}/checkpoints").json["items"]
    assert (checkpoint["step"], checkpoint["metadata"], checkpoint["job_id"]) == (7, {"loss": 0.5}, job_id)
    artifacts = server.call("GET", f"/v1/jobs/{job_id}/artifacts").json["items"]
    assert [item["uri"] for item in artifacts if item["type"] == "checkpoint"] == [uri]
    assert all(MOMENT.fullmatch(item["created_at"]) for item in artifacts)
    (tmp_path / "manifest.json").unlink()  # as retention does
    assert server.call("GET", f"/v1/jobs/{job_id}/checkpoints").json["items"] == []


def test_a_repeated_retry_with_the_same_key_is_one_job(server: Server) -> None:
    job_id = finished(server)
    asked = [server.call("POST", f"/v1/jobs/{job_id}/retry", headers={"Idempotency-Key": "once"}) for _ in range(2)]
    assert [reply.status for reply in asked] == [201, 201]
    assert asked[0].json["id"] == asked[1].json["id"]


def test_events_have_the_shape_of_the_first_document(server: Server) -> None:
    job_id = finished(server)
    events = server.call("GET", f"/v1/jobs/{job_id}/events").json
    changes = [(event.get("from"), event["to"]) for event in events["items"]]
    assert changes[-1] == ("running", "completed")
    assert ("pending", "scheduled") in changes
    assert all(MOMENT.fullmatch(event["at"]) for event in events["items"])
    everything = server.call("GET", f"/v1/jobs/{job_id}/events?all=true").json["items"]
    assert {"job", "task", "attempt", "order", "lease"} <= {event["kind"] for event in everything}
    assert all({"seq", "at", "kind", "id", "type", "body"} <= set(event) for event in everything)


def test_events_are_read_on_from_the_last_one(server: Server) -> None:
    job_id = finished(server)
    everything = f"/v1/jobs/{job_id}/events?all=true"
    # When its machine is gone, and its node with it, nothing more happens to the job.
    eventually(lambda: any(event["type"] == "NodeRetired" for event in server.call("GET", everything).json["items"]))
    whole = server.call("GET", everything).json
    assert whole["next_after"] is None
    read: list[Any] = []
    after = 0
    while after is not None:
        page = server.call("GET", f"/v1/jobs/{job_id}/events?all=true&limit=3&after={after}").json
        read += page["items"]
        after = page["next_after"]
    assert read == whole["items"]


def test_attempts_show_their_ranks_and_how_they_ended(server: Server) -> None:
    job_id = server.submit()
    server.agent(job_id).begin().finish(3)
    (attempt,) = server.call("GET", f"/v1/jobs/{job_id}/attempts").json["items"]
    assert (attempt["number"], attempt["outcome"]) == (0, "failed")
    assert [(rank["rank"], rank["exit_code"]) for rank in attempt["ranks"]] == [(0, 3)]


def test_the_spec_comes_back_to_the_letter(server: Server) -> None:
    spec = "# a comment, kept\n" + SPEC + "\n\n"
    job_id = server.submit(spec=spec)
    reply = server.call("GET", f"/v1/jobs/{job_id}/spec")
    assert reply.text == spec
    assert reply.headers["Content-Type"].startswith("text/yaml")
    as_json = server.call("GET", f"/v1/jobs/{job_id}/spec", headers={"Accept": "application/json"})
    assert as_json.json == {"spec_yaml": spec}


def test_why_says_what_a_job_waits_for(server: Server) -> None:
    job_id = server.submit(spec=BIG)
    reply = server.call("GET", f"/v1/jobs/{job_id}/why")
    assert reply.status == 200
    assert reply.json["id"] == job_id


def test_the_launch_script_of_a_job_without_machines_has_placeholders(server: Server) -> None:
    job_id = server.submit(spec=BIG)
    reply = server.call("GET", f"/v1/jobs/{job_id}/launch-script").json
    assert reply["is_placed"] is False
    assert "export MASTER_ADDR=node-0" in reply["script"] and "cru_" not in reply["script"]
    refused = server.call("GET", f"/v1/jobs/{job_id}/launch-script?rank=99")
    assert refused.status == 400 and "its ranks are 0 to" in refused.text


def test_a_plan_is_made_without_submitting(server: Server) -> None:
    before = len(server.call("GET", "/v1/jobs?limit=200").json["items"])
    plan = server.call("POST", "/v1/plan", json_body={"spec_yaml": SPEC}).json
    assert plan["chosen"]["provider"] == "fake"
    job_id = server.submit()
    assert server.call("GET", f"/v1/jobs/{job_id}/plan").json["chosen"]["instance_type"] == "fake-1gpu"
    assert len(server.call("GET", "/v1/jobs?limit=200").json["items"]) == before + 1


def test_validating_says_what_is_wrong_and_what_is_doubtful(server: Server) -> None:
    assert server.call("POST", "/v1/validate", json_body={"spec_yaml": SPEC}).json == {"valid": True, "warnings": []}
    old = SPEC + "  constraints: {deadline: 2024-01-01T00:00:00Z}\n"
    assert server.call("POST", "/v1/validate", json_body={"spec_yaml": old}).json["valid"] is True
    assert server.call("POST", "/v1/jobs", json_body={"spec_yaml": old}).status == 422
    wrong = server.call("POST", "/v1/validate", json_body={"spec_yaml": "job: [1"})
    assert (wrong.status, wrong.json["error"]) == (422, "invalid_spec")


def test_metrics_are_read_on_filtered_and_limited(server: Server) -> None:
    job_id = server.submit()
    agent = server.agent(job_id).begin()
    agent.report(losses=(3.0, 2.0, 1.0))
    agent.report(losses=(0.5, 0.25))
    page = server.call("GET", f"/v1/jobs/{job_id}/metrics?limit=2").json
    assert [item["values"]["loss"] for item in page["items"]] == [3.0, 2.0]
    rest = server.call("GET", f"/v1/jobs/{job_id}/metrics?offset={page['next_offset']}").json
    assert [item["step"] for item in rest["items"]] == [2, 3, 4]
    later = server.call("GET", f"/v1/jobs/{job_id}/metrics?after=2&name=loss&name=lr").json
    assert [item["step"] for item in later["items"]] == [3, 4]
    assert server.call("GET", f"/v1/jobs/{job_id}/metrics?name=accuracy").json["items"] == []
    agent.finish()


def test_a_metric_that_is_not_a_number_is_null(server: Server) -> None:
    job_id = server.submit()
    agent = server.agent(job_id).begin()
    batch = {"attempt_id": agent.launch["attempt_id"], "number": 0, "rank": 0}
    agent.report(streams=[{**batch, "metrics": [{"n": 0, "t": 1, "step": 1, "v": {"loss": None}}]}])
    (item,) = server.call("GET", f"/v1/jobs/{job_id}/metrics").json["items"]
    assert item["values"] == {"loss": None}
    assert server.call("GET", f"/v1/jobs/{job_id}").status == 200
    agent.finish()


def test_ids_that_cannot_be_ids_are_simply_not_found(server: Server) -> None:
    for job_id in ("nope", "%00", "%2e%2e", "a" * 500, "%f0%9f%92%a9", "'; drop table jobs; --".replace(" ", "%20")):
        for rest in ("", "/events", "/logs", "/spec"):
            reply = server.call("GET", f"/v1/jobs/{job_id}{rest}")
            assert (reply.status, reply.json["error"]) == (404, "not_found"), job_id


def test_text_that_no_database_takes_is_refused_politely(server: Server) -> None:
    for body in (b'{"spec_yaml": "\\ud800"}', b'{"spec_yaml": ', b"\xff\xfe", b"[]", b"null", b'{"spec_yaml": 3}'):
        reply = server.call("POST", "/v1/jobs", body=body, headers={"Content-Type": "application/json"})
        assert (reply.status, reply.json["error"]) == (422, "invalid_request"), body
    assert server.call("POST", "/v1/jobs", json_body={"spec_yaml": SPEC, "name": "a\x00b"}).status == 422
    assert server.call("GET", "/v1/jobs?name=a%00b").status == 422


def test_the_second_documents_names_reach_the_same_jobs(server: Server) -> None:
    started = server.call("POST", "/api/v1/training", json_body={"name": "t", "spec_yaml": SPEC})
    assert started.status == 201
    job_id = started.json["job_id"]
    assert started.json["execution_id"] == job_id
    view = server.call("GET", f"/api/v1/training/{job_id}").json
    assert set(view) == {*server.call("GET", f"/v1/jobs/{job_id}").json, "job_id"}
    assert (view["job_id"], view["id"], view["name"]) == (job_id, job_id, "t")
    assert server.call("POST", f"/api/v1/training/{job_id}/resume").status == 409


def test_a_model_plugin_with_its_config_becomes_a_spec(server: Server) -> None:
    body = {"model_name": "resnet", "config": {"epochs": 3, "executor": "local"}}
    started = server.call("POST", "/api/v1/training", json_body=body)
    if started.status == 201:
        spec = server.call("GET", f"/v1/jobs/{started.json['job_id']}/spec").text
        assert "plugin: resnet" in spec and "epochs: 3" in spec and "executor: local" in spec
    else:  # a spec that was understood, and that this cloud cannot run
        assert started.json["error"] in ("infeasible_job", "not_available_yet"), started.text
    both = server.call("POST", "/api/v1/training", json_body={**body, "spec_yaml": SPEC})
    assert (both.status, both.json["error"]) == (400, "invalid_request")


def test_a_row_of_the_list_says_whose_it_is_what_is_wished_and_what_it_costs_an_hour(server: Server) -> None:
    job_id = server.submit(name="told-in-full")
    row = next(one for one in server.call("GET", "/v1/jobs?name=told-in-full").json["items"] if one["id"] == job_id)
    assert (row["desired"], row["user_id"], row["team"], row["project"]) == ("run", "alice", None, None)
    assert row["per_hour_usd"] >= 0
    server.agent(job_id).begin().finish()


def test_the_overview_counts_what_one_sees(server: Server) -> None:
    job_id = server.submit(name="overlooked")
    agent = server.agent(job_id).begin()
    seen = eventually(
        lambda: (found := server.call("GET", "/v1/overview?name=overlooked").json)["jobs"]["running"] and found
    )
    assert seen["gpus"] == {"held": 1, "computing": 1} and seen["machines"] == 1
    assert sum(seen["jobs"].values()) == 1 and seen["per_hour_microusd"] == round(seen["per_hour_usd"] * 1e6)
    agent.finish()
    assert eventually(lambda: server.call("GET", "/v1/overview?name=overlooked").json["jobs"]["completed"]) == 1
    assert server.call("GET", "/v1/overview?name=%00").json["error"] == "invalid_request"
