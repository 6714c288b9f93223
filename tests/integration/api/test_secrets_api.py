"""Secrets over real HTTP: who may set, see and use which, and that no answer holds a value."""

import base64
from typing import Any

import pytest

from crucible.model.account import Membership, Project, Role, Team
from crucible.model.ids import UserId
from crucible.ports.accounts import AuditQuery

from .conftest import Agent, Reply, Server, eventually

CANARY = "hf_canary-9f3c7e21"
USES = """\
job:
  command: [python, train.py]
  resources: {gpus: 1}
  retry: {limit: 0}
"""


@pytest.fixture(scope="module", autouse=True)
def teams(server: Server) -> None:
    """Alice manages vision, Bob works there; the project imagenet is theirs."""
    store, now = server.deps.store, server.deps.clock.now()
    server.run(store.add_team(Team(name="vision", created_at=now, created_by=UserId("admin"))))
    server.run(store.add_project(Project(name="imagenet", team="vision", created_at=now, created_by=UserId("admin"))))
    for name, role in (("alice", Role.MANAGER), ("bob", Role.MEMBER)):
        server.run(store.save_member(Membership(team="vision", user_id=UserId(name), role=role, created_at=now)))


@pytest.fixture(autouse=True)
def clean(server: Server) -> None:
    for one in server.call("GET", "/v1/secrets", "admin").json["items"]:
        query = "" if one["owner_kind"] == "user" else f"?{one['owner_kind']}={one['owner']}"
        who = one["owner"] if one["owner_kind"] == "user" else "admin"
        assert server.call("DELETE", f"/v1/secrets/{one['name']}{query}", who).status == 204


def put(server: Server, name: str, value: str = CANARY, who: str = "alice", query: str = "") -> Reply:
    return server.call("PUT", f"/v1/secrets/{name}{query}", who, json_body={"value": value})


def wanting(*entries: str, **more: str) -> str:
    lines = [
        *(f"  {name}: {value}" for name, value in more.items()),
        "  secrets:",
        *(f"    - {one}" for one in entries),
    ]
    return USES + "\n".join(lines) + "\n"


def values(agent: Agent) -> Any:
    body = {"attempt_id": agent.launch["attempt_id"]}
    return agent.server.call("POST", "/agent/v1/secrets", agent.key, json_body=body)


def found(reply: Reply) -> dict[str, bytes]:
    assert reply.status == 200, reply.text
    return {one["name"]: base64.b64decode(one["value"]) for one in reply.json["items"]}


# --- people -------------------------------------------------------------------------------------------------


def test_a_secret_is_set_listed_changed_and_removed_and_never_shown(server: Server) -> None:
    made = put(server, "HF_TOKEN")
    assert made.status == 200 and made.json["version"] == 1 and made.json["set_by"] == "alice"
    assert put(server, "HF_TOKEN", "another value").json["version"] == 2
    listed = server.call("GET", "/v1/secrets")
    assert [(one["name"], one["owner"], one["used_at"]) for one in listed.json["items"]] == [
        ("HF_TOKEN", "alice", None)
    ]
    assert "canary" not in made.text + listed.text
    assert server.call("GET", "/v1/secrets/HF_TOKEN").status == 405
    assert server.call("DELETE", "/v1/secrets/HF_TOKEN").status == 204
    assert server.call("DELETE", "/v1/secrets/HF_TOKEN").status == 404


def test_what_is_changed_is_in_the_audit_log_by_name_only(server: Server) -> None:
    put(server, "HF_TOKEN", query="?team=vision")
    server.call("DELETE", "/v1/secrets/HF_TOKEN?team=vision")
    lines = server.run(server.deps.store.audit_lines(AuditQuery(limit=2)))
    subject = "secret:team:vision/HF_TOKEN"
    assert [(one.action, one.subject, one.team, one.user_id) for _, one in lines] == [
        ("secret.remove", subject, "vision", "alice"),
        ("secret.set", subject, "vision", "alice"),
    ]
    assert "canary" not in repr(lines)


def test_only_managers_change_a_teams_secrets_and_members_see_their_names(server: Server) -> None:
    assert put(server, "WANDB", query="?team=vision").status == 200
    assert put(server, "GCP", query="?project=imagenet").status == 200
    for query in ("?team=vision", "?project=imagenet"):
        assert put(server, "WANDB", who="bob", query=query).status == 403
    seen = server.call("GET", "/v1/secrets", "bob").json["items"]
    assert [(one["name"], one["owner_kind"], one["owner"]) for one in seen] == [
        ("GCP", "project", "imagenet"),
        ("WANDB", "team", "vision"),
    ]
    assert server.call("DELETE", "/v1/secrets/WANDB?team=vision", "bob").status == 403


def test_what_is_foreign_does_not_exist(server: Server) -> None:
    put(server, "HF_TOKEN")
    assert server.call("GET", "/v1/secrets", "bob").json["items"] == []
    for query in ("?team=audio", "?project=whisper"):
        assert put(server, "A", query=query).status == 404
        assert server.call("GET", f"/v1/secrets{query}").status == 404
    assert put(server, "A", who="admin", query="?team=audio").status == 404


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("hf-token", {"value": CANARY}),
        ("CRUCIBLE_X", {"value": CANARY}),
        ("A" * 129, {"value": CANARY}),
        ("A", {"value": ""}),
        ("A", {"value": CANARY + "x" * (64 << 10)}),
        ("A", {"value_base64": "%canary%"}),
        ("A", {"value": CANARY, "value_base64": "YQ=="}),
        ("A", {"valeu": CANARY}),
        ("A", {"value": [CANARY]}),
        ("A", CANARY),
        (CANARY, {"value": "x"}),
    ],
)
def test_bad_input_is_refused_without_repeating_it(server: Server, name: str, body: Any) -> None:
    reply = server.call("PUT", f"/v1/secrets/{name}", json_body=body)
    assert reply.status in (400, 422) and "canary" not in reply.text, reply.text
    assert server.call("GET", "/v1/secrets").json["items"] == []


# --- jobs ---------------------------------------------------------------------------------------------------


def test_a_job_that_names_a_secret_which_it_cannot_have_is_refused_at_its_field(server: Server) -> None:
    put(server, "HF_TOKEN")
    spec = wanting("HF_TOKEN", "{name: WANDB, env: KEY}")
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": spec})
    assert (reply.status, reply.json["error"]) == (422, "unknown_secret")
    assert reply.json["details"]["field"] == "job.secrets[1]" and "crucible secret set WANDB" in reply.json["message"]
    assert server.call("POST", "/v1/jobs", "bob", json_body={"spec_yaml": wanting("HF_TOKEN")}).status == 422
    planned = server.call("POST", "/v1/plan", json_body={"spec_yaml": spec})
    assert planned.status == 200 and any("WANDB" in line for line in planned.json["warnings"])


def test_a_step_that_names_one_is_refused_with_its_workflow(server: Server) -> None:
    spec = "job:\n  steps:\n    - {name: a, command: x}\n    - {name: b, command: y, secrets: [NOPE]}\n"
    reply = server.call("POST", "/v1/jobs", json_body={"spec_yaml": spec})
    assert (reply.status, reply.json["details"]["field"]) == (422, "job.steps[1].secrets[0]")


def test_the_nearest_owner_wins_own_then_project_then_team(server: Server) -> None:
    for value, query in (("of the team", "?team=vision"), ("of the project", "?project=imagenet")):
        put(server, "A", value, query=query)
        put(server, "B", value, query=query)
    put(server, "C", "of the team", query="?team=vision")
    put(server, "A", "bob's own", who="bob")
    spec = wanting("A", "B", "C", team="vision", project="imagenet")
    agent = server.agent(server.submit("bob", spec)).enrol().begin()
    assert found(values(agent)) == {"A": b"bob's own", "B": b"of the project", "C": b"of the team"}
    used = {one["name"]: one["used_at"] for one in server.call("GET", "/v1/secrets", "bob").json["items"]}
    assert used["C"] is not None


def test_the_next_attempt_gets_the_newest_value_and_who_left_the_team_gets_none(server: Server) -> None:
    put(server, "A", "first", query="?team=vision")
    agent = server.agent(server.submit("bob", wanting("A", team="vision"))).enrol().begin()
    assert found(values(agent)) == {"A": b"first"}
    put(server, "A", "second", query="?team=vision")
    assert found(values(agent)) == {"A": b"second"}
    store, now = server.deps.store, server.deps.clock.now()
    server.run(store.remove_member("vision", UserId("bob")))
    try:
        reply = values(agent)
        assert (reply.status, reply.json["error"]) == (422, "unknown_secret")
    finally:
        member = Membership(team="vision", user_id=UserId("bob"), role=Role.MEMBER, created_at=now)
        server.run(store.save_member(member))


def test_only_a_node_of_the_attempt_gets_them_and_only_while_it_lives(server: Server) -> None:
    put(server, "A")
    agent = server.agent(server.submit(spec=wanting("A"))).enrol().begin()
    other = server.agent(server.submit(spec=wanting("A"))).enrol().begin()
    body = {"attempt_id": agent.launch["attempt_id"]}
    assert server.call("POST", "/agent/v1/secrets", other.key, json_body=body).status == 403
    for token in (agent.token, server.tokens["alice"], server.tokens["admin"]):
        assert server.call("POST", "/agent/v1/secrets", token, json_body=body).status in (401, 403)
    assert found(values(agent)) == {"A": CANARY.encode()}
    agent.finish()
    eventually(lambda: values(agent).status == 403)


def test_the_work_of_a_node_names_secrets_and_holds_none(server: Server) -> None:
    put(server, "A")
    agent = server.agent(server.submit(spec=wanting("A", "{name: A, file: a.txt}"))).enrol().begin()
    assert agent.launch["secrets"] == [
        {"name": "A", "env": "A", "file": None},
        {"name": "A", "env": None, "file": "a.txt"},
    ]
    assert "canary" not in server.call("GET", "/agent/v1/work", agent.key).text


def test_bytes_that_no_variable_holds_are_refused_with_the_way_out(server: Server) -> None:
    body = {"value_base64": base64.b64encode(b"\xff\x00").decode()}
    assert server.call("PUT", "/v1/secrets/RAW", json_body=body).status == 200
    agent = server.agent(server.submit(spec=wanting("RAW"))).enrol().begin()
    reply = values(agent)
    assert reply.status == 400 and "deliver it as a file" in reply.json["message"]
    as_file = server.agent(server.submit(spec=wanting("{name: RAW, file: raw}"))).enrol().begin()
    assert found(values(as_file)) == {"RAW": b"\xff\x00"}


def test_last_words_of_an_agent_hold_neither_secrets_nor_tokens(server: Server) -> None:
    put(server, "A")
    job_id = server.submit(spec=wanting("A"))
    agent = server.agent(job_id).enrol().begin()
    words = f"could not start: {CANARY} {agent.key} http://x/v1/objects/cro.{'a' * 20}.{'0' * 64}?sig=abcdefgh"
    ended = {"attempt_id": agent.launch["attempt_id"], "rank": 0, "generation": agent.launch["generation"]}
    ended |= {"state": "exited", "exit_code": 1, "reason": words}
    agent.report(ranks=[{**ended, "last_lines": [f"Authorization: Bearer {agent.token}", CANARY]}])
    eventually(lambda: server.call("GET", f"/v1/jobs/{job_id}").json["status"] == "failed")
    for path in ("", "/events", "/attempts", "/why"):
        said = server.call("GET", f"/v1/jobs/{job_id}{path}").text
        assert "canary" not in said and agent.key not in said and agent.token not in said and "abcdefgh" not in said
    assert "***" in server.call("GET", f"/v1/jobs/{job_id}/events").text


def test_a_new_key_seals_everything_and_jobs_notice_nothing(server: Server) -> None:
    put(server, "A")
    before = server.run(server.deps.store.secret_keys())
    assert server.call("POST", "/v1/secrets-key/rotate").status == 403
    done = server.call("POST", "/v1/secrets-key/rotate", "admin")
    assert done.status == 200 and done.json["secrets"] == 1 and set(done.json["forgotten"]) == set(before)
    assert server.run(server.deps.store.secret_keys()) == {done.json["key_id"]}
    agent = server.agent(server.submit(spec=wanting("A"))).enrol().begin()
    assert found(values(agent)) == {"A": CANARY.encode()}
