"""The outermost layer: names, origins, sizes, headers, and what a client sees of our own bugs (F40, R11, R14)."""

import json
import socket
from typing import Any

import pytest

from .conftest import SPEC, Server


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1].x"])
def test_a_name_that_is_not_ours_is_refused(server: Server, host: str) -> None:
    for method, path in (("GET", "/healthz"), ("GET", "/v1/jobs"), ("POST", "/v1/jobs"), ("DELETE", "/v1/tokens/x")):
        reply = server.call(method, path, headers={"Host": host})
        assert (reply.status, reply.json["error"]) == (403, "forbidden")


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8000", "10.1.2.3", "crucible.example:443"]
)
def test_our_names_and_addresses_are_served(server: Server, host: str) -> None:
    assert server.call("GET", "/v1/me", headers={"Host": host}).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "file://", "", "garbage"])
def test_a_page_from_elsewhere_may_not_change_anything(server: Server, origin: str) -> None:
    job_id = server.submit()
    headers = {"Origin": origin}
    assert server.call("POST", f"/v1/jobs/{job_id}/cancel", headers=headers).status == 403
    assert server.call("POST", "/v1/jobs", json_body={"spec_yaml": SPEC}, headers=headers).status == 403
    assert server.call("PUT", f"/v1/packages/{'a' * 64}", body=b"x", headers=headers).status == 403
    assert server.call("GET", f"/v1/jobs/{job_id}").json["desired"] == "run"


def test_our_own_page_may(server: Server) -> None:
    origin = f"http://127.0.0.1:{server.port}"
    assert server.call("POST", "/v1/validate", json_body={"spec_yaml": SPEC}, headers={"Origin": origin}).status == 200
    reply = server.call("GET", "/v1/me", headers={"Origin": "https://evil.example"})
    assert "Access-Control-Allow-Origin" not in reply.headers


def test_every_answer_has_a_name_and_the_headers_that_keep_browsers_honest(server: Server) -> None:
    replies = [
        server.call("GET", "/healthz", None),
        server.call("GET", "/v1/me"),
        server.call("GET", "/v1/me", None),
        server.call("GET", "/nowhere"),
        server.call("GET", "/healthz", None, headers={"Host": "evil.example"}),
    ]
    for reply in replies:
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
        assert reply.headers["Cache-Control"] == "no-store"
        assert "Server" not in reply.headers
    names = [reply.headers["X-Request-Id"] for reply in replies]
    assert len(set(names)) == len(names)


def test_unknown_routes_and_methods_speak_the_same_language(server: Server) -> None:
    for method, path, status, code in (
        ("GET", "/v1/nothing", 404, "not_found"),
        ("GET", "/v2/jobs", 404, "not_found"),
        ("GET", "/v1/jobs/", 404, "not_found"),
        ("PATCH", "/v1/jobs", 405, "method_not_allowed"),
        ("DELETE", "/v1/jobs/x", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/jobs", 405, "method_not_allowed"),
    ):
        reply = server.call(method, path)
        assert (reply.status, reply.json["error"]) == (status, code), path
        assert set(reply.json) == {"error", "message", "details"}


def test_a_body_that_is_too_large_is_refused_by_its_length(server: Server) -> None:
    reply = server.call("POST", "/v1/jobs", body=b"x" * (server.settings.max_body_bytes + 1))
    assert (reply.status, reply.json["error"]) == (413, "too_large")
    assert reply.json["details"]["limit_bytes"] == server.settings.max_body_bytes


def test_a_body_that_hides_its_length_is_refused_when_it_grows_too_large(server: Server) -> None:
    pieces = (b"x" * 100_000 for _ in range(server.settings.max_body_bytes // 100_000 + 2))
    reply = server.call("POST", "/v1/jobs", body=pieces, headers={"Content-Type": "application/json"})
    assert (reply.status, reply.json["error"]) == (413, "too_large")


def raw(server: Server, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def test_half_a_request_and_rubbish_do_no_harm(server: Server) -> None:
    assert raw(server, b"\x16\x03\x01rubbish\r\n\r\n").startswith((b"HTTP/1.1 400", b""))
    head = b"GET /v1/me HTTP/1.1\r\nConnection: close\r\n"
    assert b" 403 " in raw(server, head + b"\r\n").split(b"\r\n")[0] or b" 400 " in raw(server, head + b"\r\n")
    assert server.call("GET", "/healthz", None).status == 200


def test_a_client_sees_of_our_bugs_only_the_name_of_its_request(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*args: Any) -> Any:
        raise ZeroDivisionError("the secret inner workings")

    monkeypatch.setattr(server.deps.store, "artifacts", broken)
    job_id = server.submit()
    reply = server.call("GET", f"/v1/jobs/{job_id}/artifacts")
    assert (reply.status, reply.json["error"]) == (500, "internal")
    assert "secret" not in reply.text and "Traceback" not in reply.text
    assert reply.json["details"]["request_id"] == reply.headers["X-Request-Id"]
    assert reply.headers["X-Request-Id"] in caplog.text and "ZeroDivisionError" in caplog.text


def test_an_invariant_that_broke_is_our_bug_too(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from crucible.model.errors import Busy, InvariantBroken, StorageFailed

    job_id = server.submit()
    errors = {
        InvariantBroken("inner words"): (500, "internal"),
        StorageFailed("the disk is full"): (507, "storage_failed"),
        Busy("later", retry_after_s=2.4): (429, "busy"),
    }
    for error, expected in errors.items():

        async def failing(*args: Any, error: Exception = error) -> Any:
            raise error

        monkeypatch.setattr(server.deps.store, "artifacts", failing)
        reply = server.call("GET", f"/v1/jobs/{job_id}/artifacts")
        assert (reply.status, reply.json["error"]) == expected
        assert "inner words" not in reply.text
        assert reply.headers.get("Retry-After") == ("2" if isinstance(error, Busy) else None)


def test_a_server_without_storage_is_alive_but_not_ready(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from crucible.model.errors import StorageFailed

    async def failing() -> Any:
        raise StorageFailed("gone")

    monkeypatch.setattr(server.deps.store, "servers", failing)
    assert server.call("GET", "/readyz", None).status == 503
    assert server.call("GET", "/healthz", None).status == 200


def test_odd_json_is_refused_and_named(server: Server) -> None:
    deep = b'{"spec_yaml": ' + b"[" * 5000 + b"]" * 5000 + b"}"
    big = json.dumps({"spec_yaml": SPEC, "name": 10**400}).encode()
    for body in (deep, big, b'{"spec_yaml": "x", "spec_yaml"', b'{"spec_yaml": NaN}'):
        reply = server.call("POST", "/v1/jobs", body=body, headers={"Content-Type": "application/json"})
        assert (reply.status, reply.json["error"]) == (422, "invalid_request"), body[:40]
    assert server.call("POST", "/v1/jobs", body=b"a=b", headers={"Content-Type": "text/plain"}).status == 422
    assert server.call("POST", "/v1/jobs").status == 422
