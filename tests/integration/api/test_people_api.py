"""Tokens, users, nodes, packages, and the server itself."""

import hashlib
from datetime import UTC, datetime, timedelta

from .conftest import Server, eventually


def test_me_is_whoever_the_token_says(server: Server) -> None:
    me = server.call("GET", "/v1/me").json
    assert (me["user_id"], me["name"], me["role"]) == ("alice", "alice", "member")
    assert server.call("GET", "/v1/me", "admin").json["role"] == "admin"


def test_a_token_is_shown_once_works_and_dies_when_revoked(server: Server) -> None:
    made = server.call("POST", "/v1/tokens", json_body={"name": "ci"})
    assert made.status == 201
    secret, token_id = made.json["token"], made.json["id"]
    assert server.call("GET", "/v1/me", secret).json["user_id"] == "alice"
    listed = server.call("GET", "/v1/tokens")
    assert token_id in [item["id"] for item in listed.json["items"]]
    assert secret not in listed.text and "digest" not in listed.text
    assert server.call("DELETE", f"/v1/tokens/{token_id}", "bob").status == 404
    assert server.call("DELETE", f"/v1/tokens/{token_id}").status == 204
    assert server.call("GET", "/v1/me", secret).status == 401


def test_tokens_of_others_are_for_admins(server: Server) -> None:
    reply = server.call("POST", "/v1/tokens", json_body={"name": "x", "user": "bob"})
    assert (reply.status, reply.json["error"]) == (403, "forbidden")
    made = server.call("POST", "/v1/tokens", "admin", json_body={"name": "x", "user": "bob"})
    assert server.call("GET", "/v1/me", made.json["token"]).json["user_id"] == "bob"
    assert server.call("POST", "/v1/tokens", "admin", json_body={"name": "x", "user": "nobody"}).status == 404
    assert {item["user_id"] for item in server.call("GET", "/v1/tokens").json["items"]} == {"alice"}
    assert {item["user_id"] for item in server.call("GET", "/v1/tokens", "admin").json["items"]} >= {"alice", "bob"}


def test_a_token_has_its_users_role_and_no_other(server: Server) -> None:
    made = server.call("POST", "/v1/tokens", json_body={"name": "x"})
    assert server.call("GET", "/v1/me", made.json["token"]).json["role"] == "member"
    reply = server.call("POST", "/v1/tokens", json_body={"name": "x", "role": "admin"})
    assert (reply.status, reply.json["details"]["field"]) == (422, "body.role")


def test_a_token_expires(server: Server) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=1)
    made = server.call("POST", "/v1/tokens", json_body={"name": "short", "expires_at": soon.isoformat()})
    assert made.status == 201
    eventually(lambda: server.call("GET", "/v1/me", made.json["token"]).status == 401)
    for moment in ("2020-01-01T00:00:00Z", "2099-01-01T00:00:00"):
        assert server.call("POST", "/v1/tokens", json_body={"name": "x", "expires_at": moment}).status == 400


def test_admins_make_users(server: Server) -> None:
    body = {"name": "carol", "role": "member"}
    assert server.call("POST", "/v1/users", json_body=body).status == 403
    made = server.call("POST", "/v1/users", "admin", json_body=body)
    assert (made.status, made.json["id"], made.json["role"]) == (201, "carol", "member")
    assert server.call("POST", "/v1/users", "admin", json_body=body).status == 409
    assert "carol" in [user["id"] for user in server.call("GET", "/v1/users", "admin").json["items"]]
    for name in ("", "a b", "../x", "é", "x" * 65):
        assert server.call("POST", "/v1/users", "admin", json_body={"name": name}).status == 422


def test_a_name_of_another_form_is_told_how_to_be_written(server: Server) -> None:
    for name in ("", "a b", "é", "x" * 65, "-a"):
        reply = server.call("POST", "/v1/users", "admin", json_body={"name": name})
        assert (reply.status, reply.json["details"]["field"]) == (422, "body.name")
        assert reply.json["message"].startswith("name: write letters, digits, ")


def test_nobody_locks_themselves_out(server: Server) -> None:
    assert server.call("POST", "/v1/users", "admin", json_body={"name": "second", "role": "admin"}).status == 201
    reply = server.call("PATCH", "/v1/users/admin", "admin", json_body={"disabled": True})
    assert (reply.status, "another admin must do it" in reply.json["message"]) == (409, True)
    assert server.call("GET", "/v1/me", "admin").status == 200


def test_nodes_are_seen_by_whose_job_they_work_on(server: Server) -> None:
    job_id = server.submit()
    agent = server.agent(job_id).begin()
    mine = [node for node in server.call("GET", "/v1/nodes").json["items"] if node["job_id"] == job_id]
    assert (mine[0]["provider"], mine[0]["state"], len(mine[0]["devices"])) == ("fake", "active", 1)
    assert (mine[0]["gpus"], mine[0]["is_spot"]) == (1, False) and mine[0]["instance_type"]
    assert job_id in [node["job_id"] for node in server.call("GET", "/v1/nodes", "admin").json["items"]]
    assert job_id not in [node["job_id"] for node in server.call("GET", "/v1/nodes", "bob").json["items"]]
    agent.finish()


def test_packages_are_named_by_their_content(server: Server) -> None:
    content = b"some code"
    digest = hashlib.sha256(content).hexdigest()
    assert server.call("HEAD", f"/v1/packages/{digest}").status == 404
    made = server.call("PUT", f"/v1/packages/{digest}", body=content)
    assert (made.status, made.json) == (201, {"digest": digest, "size_bytes": len(content)})
    assert server.call("HEAD", f"/v1/packages/{digest}").status == 200
    wrong = server.call("PUT", f"/v1/packages/{'0' * 64}", body=content)
    assert (wrong.status, wrong.json["error"]) == (400, "invalid_request")
    assert server.call("HEAD", f"/v1/packages/{'0' * 64}").status == 404
    assert server.call("HEAD", "/v1/packages/nonsense").status == 400


def test_a_package_may_come_in_pieces_without_a_length(server: Server) -> None:
    pieces = [bytes([n]) * 100_000 for n in range(20)]
    digest = hashlib.sha256(b"".join(pieces)).hexdigest()
    assert server.call("PUT", f"/v1/packages/{digest}", body=iter(pieces)).status == 201


def test_health_needs_no_token_and_says_little(server: Server) -> None:
    assert server.call("GET", "/healthz", None).json == {"status": "ok"}
    assert server.call("GET", "/readyz", None).json == {"status": "ready"}
    assert server.call("GET", "/v1/health", None).status == 401
    assert server.call("GET", "/v1/health").json["status"] == "healthy"


def test_a_provider_is_asked_in_each_of_its_places(server: Server) -> None:
    admin = server.tokens["admin"]
    told = server.call("GET", "/v1/health/cloudy", admin).json
    assert (told["provider"], told["status"]) == ("cloudy", "degraded")
    assert [place["status"] for place in told["places"]] == ["healthy", "down"]
    absent = server.call("GET", "/v1/health/azure", admin)
    assert absent.status == 404 and "enabled: cloudy, local" in absent.json["message"]
    assert server.call("GET", "/v1/health/cloudy").status == 403, "it names the account: not for everybody"
    version = server.call("GET", "/v1/version").json
    assert version == {"version": "9.9.9", "api": "v1", "agent_protocol": 1}


def test_the_description_names_every_public_route(server: Server) -> None:
    described = server.call("GET", "/v1/openapi.json").json
    assert described["openapi"].startswith("3.")
    assert {"/v1/jobs", "/v1/jobs/{job_id}", "/v1/jobs/{job_id}/logs", "/v1/packages/{digest}"} <= set(
        described["paths"]
    )
    assert not any(path.startswith("/agent") for path in described["paths"])
