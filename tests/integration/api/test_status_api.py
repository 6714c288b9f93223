"""How a job is, over HTTP: one form from submission to end, metrics as a chart, how the system is. The agent is
played."""

import time
from typing import Any

from status_shape import assert_status

from .conftest import Server, eventually

USAGE = {"cpu_percent": 37.5, "memory_used_bytes": 1.0, "memory_total_bytes": 4.0, "clock_s": 0.0}


def status(server: Server, job_id: str, token: str = "alice") -> Any:
    reply = server.call("GET", f"/v1/jobs/{job_id}/status", token)
    assert reply.status == 200, reply.text
    return assert_status(reply.json)


def test_a_job_has_one_form_from_its_submission_to_its_end(server: Server) -> None:
    job_id = server.submit()
    waiting = status(server, job_id)
    assert waiting["unknown"]["progress"] == "it has not started"
    agent = server.agent(job_id).begin()
    told = {"attempt_id": agent.launch["attempt_id"], "rank": 0, "step": 3, "total_steps": 12}
    agent.report(losses=(2.0, 1.0), progress=[told], usage={**USAGE, "clock_s": time.time() - 90})
    eventually(lambda: status(server, job_id)["utilisation"]["cpu"] is not None)
    runs = status(server, job_id)
    assert runs["progress"]["step"] == 3 and runs["progress"]["fraction"] == 0.25
    assert runs["utilisation"]["cpu"] == {"mean": 0.375, "low": 0.375, "high": 0.375, "worst_rank": 0}
    assert runs["utilisation"]["memory"]["mean"] == 0.25 and runs["phase"] == "running"
    agent.finish()
    over = status(server, job_id)
    assert over["phase"] == "completed" and over["unknown"]["eta"] == "it is over"


def test_nobody_sees_the_status_or_the_findings_of_a_foreign_job(server: Server) -> None:
    job_id = server.submit("alice")
    for path in ("status", "findings"):
        assert server.call("GET", f"/v1/jobs/{job_id}/{path}", "bob").status == 404
        assert server.call("GET", f"/v1/jobs/{job_id}/{path}", "admin").status == 200
    assert server.call("GET", f"/v1/jobs/{job_id}/findings", "alice").json == {"items": []}


def test_metrics_are_charted_in_as_many_points_as_asked_for(server: Server) -> None:
    job_id = server.submit()
    agent = server.agent(job_id).begin()
    agent.report(losses=tuple(float(n) for n in range(100)))
    path = f"/v1/jobs/{job_id}/metrics"
    said = server.call("GET", f"{path}?max_points=10").json
    (loss,) = said["series"]
    assert said["items"] == [] and len(loss["points"]) <= 10
    assert sum(one["count"] for one in loss["points"]) == 100
    assert (loss["points"][0]["min"], loss["points"][-1]["max"]) == (0.0, 99.0)
    assert server.call("GET", f"{path}?max_points=10&name=other").json["series"] == []
    assert server.call("GET", f"{path}?rank=5").json["series"] == []
    assert len(server.call("GET", path).json["items"]) == 100  # as they came
    later = server.call("GET", f"{path}?from=2026-01-01T00:00:00Z").json
    assert later["series"] == []


def test_a_loss_that_is_no_number_is_null_in_a_chart_and_counted(server: Server) -> None:
    job_id = server.submit()
    agent = server.agent(job_id).begin()
    agent.report(losses=(1.0, None))  # type: ignore[arg-type]
    (loss,) = server.call("GET", f"/v1/jobs/{job_id}/metrics?resolution=1m").json["series"]
    (only,) = loss["points"]
    assert (only["count"], only["invalid"], only["mean"], only["last"]) == (1, 1, 1.0, None)


def test_how_machines_were_used_is_charted_apart(server: Server) -> None:
    job_id = server.submit()
    agent = server.agent(job_id).begin()
    agent.report(usage=USAGE)
    path = f"/v1/jobs/{job_id}/metrics?of=usage"
    eventually(lambda: server.call("GET", path).json["series"])
    names = {one["name"] for one in server.call("GET", path).json["series"]}
    assert {"cpu_percent", "memory_used_bytes", "clock_ahead_s"} <= names and "clock_s" not in names


def test_a_chart_that_cannot_be_is_refused(server: Server) -> None:
    job_id = server.submit()
    for query in ("max_points=0", "max_points=99999", "resolution=1s", "from=yesterday", "of=logs", "rank=-1"):
        reply = server.call("GET", f"/v1/jobs/{job_id}/metrics?{query}")
        assert reply.status in (400, 422), query
    naive = server.call("GET", f"/v1/jobs/{job_id}/metrics?from=2026-01-01T00:00:00")
    assert naive.status in (400, 422) and "zone" in naive.text


def test_the_system_says_how_it_is_and_only_admins_hear_a_providers_words(server: Server) -> None:
    eventually(lambda: _check(server, "admin", "provider")["status"] == "ok")
    said = server.call("GET", "/v1/health", "alice").json
    assert said["status"] == "healthy" and said["system"]["status"] in ("ok", "warning")
    names = {one["name"] for one in said["system"]["checks"]}
    assert {"provider", "loops", "database", "queue", "orders", "ledger", "agents", "streams"} <= names
    assert _check(server, "alice", "loops")["details"]["placing"]["turns"] > 0


def _check(server: Server, token: str, name: str) -> Any:
    checks = server.call("GET", "/v1/health", token).json["system"]["checks"]
    return next(one for one in checks if one["name"] == name)
