"""What was estimated beside what came of it, over HTTP."""

from dataclasses import replace
from typing import Any

import pytest

from crucible.model.ids import JobId
from crucible.model.record import Prediction
from crucible.model.units import MicroUsd

from .conftest import SPEC, Server

ESTIMATED = SPEC.replace("gpus: 1}", "gpus: 1, estimated_hours: 2}")


def accuracy(server: Server, query: str = "") -> Any:
    reply = server.call("GET", f"/v1/predictions/accuracy{query}")
    assert reply.status == 200, reply.text
    return reply.json


def test_a_finished_job_says_what_it_took_against_its_estimate(server: Server) -> None:
    job_id = server.submit(spec=ESTIMATED)
    assert server.call("GET", f"/v1/jobs/{job_id}").json["prediction"] is None
    server.agent(job_id).begin().finish()
    view = server.call("GET", f"/v1/jobs/{job_id}").json
    told = view["prediction"]
    assert told["estimated_hours"] == pytest.approx(2.0)
    assert 0 <= told["actual_hours"] < 0.1
    assert told["estimated_cost_usd"] == view["cost"]["estimated_usd"]
    assert 0 <= told["actual_cost_usd"] < 1.0


def test_a_job_that_goes_on_from_a_checkpoint_has_no_estimate(server: Server) -> None:
    job_id = server.submit(spec=ESTIMATED)
    agent = server.agent(job_id).begin()
    checkpoint = {
        "attempt_id": agent.launch["attempt_id"],
        "rank": 0,
        "at_ms": 1,
        "step": 5,
        "uri": "file:///c/5",
        "size_bytes": 1,
        "manifest_sha256": "0" * 64,
    }
    agent.report(checkpoints=[checkpoint])
    agent.finish()
    again = server.call("POST", f"/v1/jobs/{job_id}/resume")
    assert again.status == 201, again.text
    server.agent(again.json["id"]).begin().finish()
    view = server.call("GET", f"/v1/jobs/{again.json['id']}").json
    assert view["cost"]["estimated_usd"] is None
    assert view["prediction"]["estimated_hours"] is None and view["prediction"]["actual_hours"] is not None


def test_errors_are_told_for_all_jobs_and_for_each_gpu_and_kind(server: Server) -> None:
    row = Prediction(
        job_id=JobId(""),
        framework="jax",
        model_class="llm",
        team="figures",
        gpu="H100-SXM",
        estimated_hours=1.1,
        estimated_cost=MicroUsd(2_000_000),
        status="completed",
        actual_hours=1.0,
        actual_cost=MicroUsd(1_000_000),
        ended_at=server.deps.clock.now(),
    )
    for gpu in ("H100-SXM", "H100-SXM", "L4"):
        job_id = JobId(server.submit())
        server.run(server.deps.store.save_prediction(replace(row, job_id=job_id, gpu=gpu)))
    said = accuracy(server, "?team=figures")
    assert (said["jobs"], said["overall"]["key"]) == (3, {})
    hours, cost = said["overall"]["hours"], said["overall"]["cost"]
    assert (hours["count"], hours["within"], hours["goal"]) == (3, 1.0, 0.15)
    assert hours["median_error"] == pytest.approx(0.1) and cost["median_error"] == pytest.approx(1.0)
    assert [(group["key"]["gpu"], group["hours"]["count"]) for group in said["groups"]] == [("H100-SXM", 2), ("L4", 1)]
    assert accuracy(server, "?team=figures&gpu=L4")["jobs"] == 1
    assert len(said["trend"]) == 1
    by_framework = accuracy(server, "?team=figures&by=framework,provider")["groups"]
    assert [group["key"] for group in by_framework] == [{"framework": "jax", "provider": "fake"}]
    assert accuracy(server, "?team=figures&by=team")["jobs"] == 0  # whoever asks is not of that team
    assert server.call("GET", "/v1/predictions/accuracy?by=colour").status == 400
    assert accuracy(server, "?team=figures&limit=2")["jobs"] == 2


def test_without_jobs_there_is_nothing_to_compare(server: Server) -> None:
    nothing = {"key": {}, "hours": None, "cost": None, "within_range": None}
    assert accuracy(server, "?team=nobody") == {"jobs": 0, "since": None, "overall": nothing, "groups": [], "trend": []}


@pytest.mark.parametrize("query", ["limit=0", "limit=10001", "gpu=", "colour=red"])
def test_a_wrong_question_is_refused(server: Server, query: str) -> None:
    assert server.call("GET", f"/v1/predictions/accuracy?{query}").status == 422
