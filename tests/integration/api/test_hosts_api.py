"""Own hosts over HTTP: who may, what is refused before anybody is called, and a server that keeps none."""

import pytest

from .conftest import Server

HOST = {"name": "gpu1", "address": "10.0.0.7"}


def test_a_server_without_own_hosts_says_how_to_have_them(server: Server) -> None:
    for method, path, body in (
        ("GET", "/v1/hosts", None),
        ("POST", "/v1/hosts", {"items": [HOST]}),
        ("POST", "/v1/hosts/gpu1/check", None),
        ("DELETE", "/v1/hosts/gpu1", None),
    ):
        reply = server.call(method, path, "admin", json_body=body)
        assert (reply.status, reply.json["error"]) == (409, "conflict")
        assert "--provider onprem" in reply.json["message"]


def test_only_admins_change_hosts(server: Server) -> None:
    assert server.call("POST", "/v1/hosts", json_body={"items": [HOST]}).status == 403
    assert server.call("POST", "/v1/hosts/gpu1/drain").status == 403
    assert server.call("DELETE", "/v1/hosts/gpu1").status == 403


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "../x"},
        {"address": "-oProxyCommand=touch /tmp/x"},
        {"address": "a b"},
        {"user": "-l"},
        {"port": 0},
        {"use": "both"},
        {"fingerprint": "MD5:00"},
        {"zone": ""},
        {"password": "hunter2"},
    ],
)
def test_what_cannot_be_a_host_is_refused_with_its_field(server: Server, wrong: dict[str, object]) -> None:
    reply = server.call("POST", "/v1/hosts", "admin", json_body={"items": [{**HOST, **wrong}]})
    assert reply.status == 422 and next(iter(wrong)) in reply.json["details"]["field"]
