"""Budgets over HTTP: who sees and sets them, what is refused, what a job that cannot be paid for is told."""

from collections.abc import Iterator
from typing import Any

import pytest

from .conftest import Reply, Server

MACHINE = """\
job:
  name: dear
  command: [train]
  team: vision
  resources: {gpus: 1}
"""


@pytest.fixture(scope="module", autouse=True)
def team(server: Server) -> None:
    """Alice manages it, bob works in it."""
    for name, role in (("vision", "manager"), ("speech", None)):
        assert server.call("POST", "/v1/teams", "admin", json_body={"name": name}).status in (201, 409)
        for who, theirs in (("alice", role), ("bob", "member" if role else None)):
            if theirs:
                path = f"/v1/teams/{name}/members/{who}"
                assert server.call("PUT", path, "admin", json_body={"role": theirs}).status < 300


@pytest.fixture(autouse=True)
def none_left(server: Server) -> Iterator[None]:
    yield
    for one in server.call("GET", "/v1/budgets", "admin").json["items"]:
        server.call("DELETE", f"/v1/budgets/{one['id']}", "admin")


def create(server: Server, who: str = "alice", **fields: Any) -> Reply:
    body = {"scope": "team", "name": "vision", "period": "month", "limit_usd": 500, **fields}
    return server.call("POST", "/v1/budgets", who, json_body=body)


def test_a_budget_says_where_it_stands(server: Server) -> None:
    made = create(server, thresholds=[0.8, 0.5])
    assert made.status == 201, made.text
    said = server.call("GET", "/v1/budgets/team:vision:month", "alice").json
    assert said == made.json
    assert (said["limit_microusd"], said["spent_microusd"], said["left_usd"]) == (500_000_000, 0, 500.0)
    assert (said["thresholds"], said["when_spent"], said["runs_out_at"]) == ([0.5, 0.8], "pause", None)
    assert said["counts_from"].endswith("-01T00:00:00Z") and said["expected_usd"] == 0


def test_a_limit_is_exact_to_a_micro_dollar(server: Server) -> None:
    assert create(server, limit_usd=0.000001).json["limit_microusd"] == 1
    changed = server.call("PATCH", "/v1/budgets/team:vision:month", "alice", json_body={"limit_usd": 123456.654321})
    assert changed.json["limit_microusd"] == 123_456_654_321


def test_there_is_one_of_a_kind(server: Server) -> None:
    assert create(server).status == 201
    assert create(server).json["error"] == "conflict"
    assert create(server, period="once").status == 201


def test_a_change_on_something_old_is_refused(server: Server) -> None:
    version = create(server).json["version"]
    path = "/v1/budgets/team:vision:month"
    first = server.call("PATCH", path, "alice", json_body={"limit_usd": 600, "version": version})
    assert (first.status, first.json["version"]) == (200, version + 1)
    second = server.call("PATCH", path, "alice", json_body={"limit_usd": 700, "version": version})
    assert (second.status, second.json["error"]) == (409, "stale_version")
    assert server.call("GET", path, "alice").json["limit_usd"] == 600


def test_what_is_foreign_is_refused_like_what_does_not_exist(server: Server) -> None:
    made = {"name": "secret-project", "team": "speech"}
    assert server.call("POST", "/v1/projects", "admin", json_body=made).status in (201, 409)
    for scope, theirs in (("team", "speech"), ("project", "secret-project"), ("user", "bob")):
        foreign, nothing = create(server, scope=scope, name=theirs), create(server, scope=scope, name="nowhere")
        assert foreign.status == nothing.status == (403 if scope == "user" else 404)
        assert foreign.text.replace(theirs, "nowhere") == nothing.text


def test_managers_set_those_of_their_team_and_members_see_them(server: Server) -> None:
    assert create(server, "bob").status == 403
    assert create(server, "alice").status == 201
    assert [one["id"] for one in server.call("GET", "/v1/budgets", "bob").json["items"]] == ["team:vision:month"]
    path = "/v1/budgets/team:vision:month"
    assert server.call("PATCH", path, "bob", json_body={"limit_usd": 1}).status == 403
    assert server.call("DELETE", path, "bob").status == 403
    assert server.call("DELETE", path, "alice").status == 204


def test_a_foreign_budget_does_not_exist(server: Server) -> None:
    assert create(server, "admin", name="speech").status == 201
    path = "/v1/budgets/team:speech:month"
    assert server.call("GET", path, "alice").status == 404
    assert server.call("PATCH", path, "alice", json_body={"limit_usd": 1}).status == 404
    assert server.call("GET", "/v1/budgets", "bob").json["items"] == []


@pytest.mark.parametrize("scope", ["user", "server"])
def test_those_of_users_and_of_the_server_are_for_admins_to_set(server: Server, scope: str) -> None:
    name = "" if scope == "server" else "bob"
    assert create(server, "alice", scope=scope, name=name).status == 403
    assert create(server, "admin", scope=scope, name=name).status == 201
    assert len(server.call("GET", "/v1/budgets", "bob").json["items"]) == 1


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"name": "nobody"}, 404),
        ({"scope": "user", "name": "nobody"}, 404),
        ({"scope": "project", "name": "nothing"}, 404),
        ({"scope": "job", "name": "no-such-job", "period": "once"}, 404),
        ({"scope": "server", "name": "x"}, 400),
        ({"name": ""}, 400),
        ({"limit_usd": -1}, 422),
        ({"limit_usd": "much"}, 422),
        ({"thresholds": [2]}, 422),
        ({"when_spent": "explode"}, 422),
        ({"surprise": 1}, 422),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    server: Server, fields: dict[str, Any], status: int
) -> None:
    reply = create(server, "admin", **fields)
    assert reply.status == status and reply.json["message"], reply.text
    assert server.call("GET", "/v1/budgets", "admin").json["items"] == []


def test_a_change_is_a_line_in_the_audit_log(server: Server) -> None:
    create(server)
    server.call("PATCH", "/v1/budgets/team:vision:month", "alice", json_body={"limit_usd": 7})
    lines = server.call("GET", "/v1/audit?subject=budget:team:vision:month", "admin").json["items"]
    assert [line["action"] for line in lines][:2] == ["budget.change", "budget.create"]
    assert lines[0]["details"]["limit_microusd"] == 7_000_000


def test_a_job_that_its_team_cannot_pay_for_is_refused_with_the_budget(server: Server) -> None:
    create(server, limit_usd=0.05)
    reply = server.call("POST", "/v1/jobs", "alice", json_body={"spec_yaml": MACHINE})
    assert (reply.status, reply.json["error"]) == (422, "budget_exhausted"), reply.text
    assert reply.json["details"]["budget"] == "team:vision:month"
    assert "has $0.05 of $0.05 left this month" in reply.json["message"]
    others = MACHINE.replace("vision", "speech")
    assert server.call("POST", "/v1/jobs", "admin", json_body={"spec_yaml": others}).status == 201


def test_a_plan_tells_what_is_left(server: Server) -> None:
    create(server)
    plan = server.call("POST", "/v1/plan", "alice", json_body={"spec_yaml": MACHINE}).json
    assert plan["budgets"] == [
        {"id": "team:vision:month", "limit_usd": 500.0, "left_microusd": 500_000_000, "left_usd": 500.0}
    ]
    assert "the budget team:vision:month has $500.00 of $500.00 left this month" in plan["notes"]


def test_the_own_budget_of_a_job_is_found_and_topped_up(server: Server) -> None:
    spec = MACHINE.replace("team: vision", "team: speech") + "  constraints: {budget: 5, when_spent: pause}\n"
    job_id = server.submit("admin", spec=spec)
    path = f"/v1/budgets/job:{job_id}"
    own = server.call("GET", path, "admin").json
    assert (own["limit_usd"], own["when_spent"], own["period"]) == (5.0, "pause", "once")
    assert server.call("GET", path, "bob").status == 404
    changed = server.call("PATCH", path, "admin", json_body={"limit_usd": 8, "version": own["version"]})
    assert changed.json["limit_usd"] == 8.0
    assert server.call("GET", path, "admin").json["limit_usd"] == 8.0
    server.call("POST", f"/v1/jobs/{job_id}/cancel", "admin")
