"""Who is signed in lets a browser of theirs in: one session for a code, to who began, with no more rights than they
had."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from crucible.core.sign_in import challenge_of

from .conftest import Reply, Server


def ticket(server: Server, verifier: str, token: str = "alice") -> Reply:
    return server.call("POST", "/v1/login/ticket", token, json_body={"challenge": challenge_of(verifier)})


def exchanged(server: Server, code: str, verifier: str) -> Reply:
    return server.call("POST", "/v1/login/token", None, json_body={"code": code, "verifier": verifier})


def session(server: Server, token: str = "alice") -> dict[str, Any]:
    verifier = secrets.token_urlsafe(48)
    reply = exchanged(server, ticket(server, verifier, token).json["code"], verifier)
    assert reply.status == 201, reply.text
    made: dict[str, Any] = reply.json
    return made


def test_a_session_is_the_persons_own_and_lasts_half_a_day(server: Server) -> None:
    made = session(server)
    assert server.call("GET", "/v1/me", made["token"]).json["user_id"] == "alice"
    left = datetime.fromisoformat(made["expires_at"]) - datetime.now(UTC)
    assert timedelta(hours=11, minutes=59) < left <= timedelta(hours=12)


def test_a_code_opens_one_session_and_only_to_who_began(server: Server) -> None:
    verifier = secrets.token_urlsafe(48)
    code = ticket(server, verifier).json["code"]
    assert exchanged(server, code, secrets.token_urlsafe(48)).status == 401
    assert exchanged(server, code, verifier).status == 201
    again = exchanged(server, code, verifier)
    assert (again.status, "used already" in again.json["message"]) == (401, True)


def test_a_session_may_do_no_more_than_the_token_it_came_from(server: Server) -> None:
    limited = server.call("POST", "/v1/tokens", "admin", json_body={"name": "n", "grants": ["manage"]}).json["token"]
    made = session(server, limited)
    assert made["grants"] == ["manage"]
    assert server.call("GET", "/v1/retention", made["token"]).status == 403
    only_looks = server.call("POST", "/v1/tokens", "admin", json_body={"name": "n", "grants": ["read"]}).json["token"]
    assert ticket(server, "v" * 43, only_looks).status == 403


def test_a_session_ends_with_the_token_it_came_from(server: Server) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=5)
    body = {"name": "n", "expires_at": soon.isoformat(), "grants": ["manage"]}
    short = server.call("POST", "/v1/tokens", "admin", json_body=body).json["token"]
    made = session(server, short)
    assert abs(datetime.fromisoformat(made["expires_at"]) - soon) < timedelta(seconds=1)
    again = session(server, made["token"])
    assert again["expires_at"] == made["expires_at"]
    like = server.call("POST", "/v1/tokens", short, json_body={"name": "n"}).json
    assert like["expires_at"] == made["expires_at"]
    longer = (soon + timedelta(hours=1)).isoformat()
    refused = server.call("POST", "/v1/tokens", short, json_body={"name": "n", "expires_at": longer})
    assert (refused.status, "lives longer" in refused.json["message"]) == (403, True)


def test_a_session_is_written_down(server: Server) -> None:
    made = session(server, "bob")
    lines = server.call("GET", "/v1/audit", "admin").json["items"]
    assert [line["user_id"] for line in lines if line["subject"] == f"token:{made['id']}"] == ["bob"]


def test_a_code_that_somebody_wrote_themselves_opens_nothing(server: Server) -> None:
    verifier = secrets.token_urlsafe(48)
    code = ticket(server, verifier).json["code"]
    for forged in (code[:-2], code + "x", "crt.e30.e30", "x"):
        assert exchanged(server, forged, verifier).status in (401, 403, 410), forged
    assert server.call("POST", "/v1/login/ticket", json_body={"challenge": "short"}).status == 422
