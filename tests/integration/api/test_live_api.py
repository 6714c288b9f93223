"""A6: a job as it happens over a WebSocket; F39: a client that does not read costs nobody anything."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from crucible.api import door
from crucible.ports.streams import LogLine

from .conftest import Agent, Server, eventually, resident


@pytest.fixture
def agent(server: Server) -> Iterator[Agent]:
    running = server.agent(server.submit()).begin()
    yield running
    if server.call("GET", f"/v1/jobs/{running.launch['job_id']}").json["status"] == "running":
        running.finish()


def stream(
    server: Server, job_id: str, query: str = "", token: str = "alice", prefix: str = "/v1/jobs", **options: Any
) -> ClientConnection:
    options.setdefault("additional_headers", {"Authorization": f"Bearer {server.tokens.get(token, token)}"})
    url = f"ws://127.0.0.1:{server.port}{prefix}/{job_id}/stream{query}"
    return connect(url, open_timeout=10, compression=None, legacy=True, **options)


def until_end(socket: ClientConnection) -> list[dict[str, Any]]:
    return [json.loads(message) for message in socket]


def texts(messages: list[dict[str, Any]]) -> list[str]:
    return [line["x"] for message in messages if message["type"] == "log" for line in message["lines"]]


def statuses(messages: list[dict[str, Any]]) -> list[str]:
    return [message["status"] for message in messages if message["type"] == "status"]


def test_the_whole_story_of_a_job_until_its_end(agent: Agent) -> None:
    with stream(agent.server, agent.launch["job_id"]) as socket:
        agent.report("hello", losses=(1.0,))
        progress = {"attempt_id": agent.launch["attempt_id"], "rank": 0, "step": 3, "total_steps": 4}
        agent.report("world", progress=[progress])
        seen: list[dict[str, Any]] = []
        while not any(message["type"] == "progress" and message["step"] == 3 for message in seen):
            seen.append(json.loads(socket.recv(20)))
        agent.finish()
        seen += until_end(socket)
    assert {message["type"] for message in seen} == {"status", "progress", "metrics", "log", "cost", "end"}
    assert texts(seen) == ["hello", "world"]
    assert statuses(seen)[0] == "pending" and statuses(seen)[-1] == "completed"
    assert [point["values"] for m in seen if m["type"] == "metrics" for point in m["points"]] == [{"loss": 1.0}]
    assert seen[-1]["type"] == "end" and seen[-1]["status"] == "completed"
    assert all("cursor" in message for message in seen)


def test_coming_back_with_any_cursor_misses_nothing_and_repeats_nothing(agent: Agent) -> None:
    server, job_id = agent.server, agent.launch["job_id"]
    for n in range(5):
        agent.report(f"line {n}", losses=(float(n),))
    agent.finish()
    with stream(server, job_id) as socket:
        whole = until_end(socket)
    for n, message in enumerate(whole[:-1]):
        with stream(server, job_id, f"?cursor={message['cursor']}") as socket:
            rest = until_end(socket)
        told = whole[: n + 1]
        assert texts(told) + texts(rest) == texts(whole)
        assert statuses(rest)[-1] == "completed"
        assert rest[-1]["type"] == "end"


def test_a_stream_may_begin_with_the_last_lines(agent: Agent) -> None:
    agent.report(*(f"line {n}" for n in range(100)))
    agent.finish()
    with stream(agent.server, agent.launch["job_id"], "?tail=3") as socket:
        assert texts(until_end(socket)) == ["line 97", "line 98", "line 99"]


def test_who_draws_charts_leaves_the_points_out(agent: Agent) -> None:
    agent.report("hello", losses=(1.0,))
    agent.finish()
    with stream(agent.server, agent.launch["job_id"], "?metrics=false") as socket:
        seen = until_end(socket)
    assert texts(seen) == ["hello"] and "metrics" not in {message["type"] for message in seen}


def test_a_wish_is_told_at_once(agent: Agent) -> None:
    with stream(agent.server, agent.launch["job_id"]) as socket:
        agent.server.call("POST", f"/v1/jobs/{agent.launch['job_id']}/cancel")
        while json.loads(socket.recv(10)).get("desired") != "cancel":
            pass
    agent.report(state="exited")
    eventually(lambda: agent.server.call("GET", f"/v1/jobs/{agent.launch['job_id']}").json["status"] == "cancelled")


def test_the_second_documents_address_is_the_same_stream(agent: Agent) -> None:
    agent.finish()
    with stream(agent.server, agent.launch["job_id"], prefix="/api/v1/training") as socket:
        assert until_end(socket)[-1]["type"] == "end"


def test_a_browser_gives_its_token_as_a_subprotocol(agent: Agent) -> None:
    agent.finish()
    token = agent.server.tokens["alice"]
    for offered, accepted in (
        (["crucible.v1", f"bearer.{token}"], "crucible.v1"),
        ([f"bearer.{token}"], f"bearer.{token}"),
    ):
        with stream(agent.server, agent.launch["job_id"], additional_headers=None, subprotocols=offered) as socket:
            assert socket.subprotocol == accepted
            assert until_end(socket)[-1]["type"] == "end"


def refusal(server: Server, job_id: str, query: str = "", **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused, stream(server, job_id, query, **options):
        pass
    response = refused.value.response
    assert "x-request-id" in response.headers
    return response.status_code, json.loads(response.body or b"{}")["error"]


def test_whoever_may_not_look_gets_an_ordinary_answer(agent: Agent) -> None:
    server, job_id = agent.server, agent.launch["job_id"]
    assert refusal(server, job_id, additional_headers=None) == (401, "unauthenticated")
    assert refusal(server, job_id, token="nonsense") == (401, "unauthenticated")
    assert refusal(server, job_id, token="bob") == (404, "not_found")
    assert refusal(server, "nope") == (404, "not_found")
    assert refusal(server, job_id, "?cursor=rubbish") == (400, "invalid_request")
    assert refusal(server, job_id, "?tail=-1") == (400, "invalid_request")
    assert refusal(server, job_id, "?task=7") == (404, "not_found")
    assert refusal(server, job_id, origin="https://evil.example") == (403, "forbidden")


def test_a_token_that_is_revoked_ends_what_it_opened(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "LOOK_AGAIN_S", 0.1)
    server = agent.server
    made = server.call("POST", "/v1/tokens", "alice", json_body={"name": "soon gone"}).json
    with stream(server, agent.launch["job_id"], token=made["token"]) as socket:
        assert json.loads(socket.recv(10))["type"] == "status"
        assert server.call("DELETE", f"/v1/tokens/{made['id']}", "alice").status == 204
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                socket.recv(30)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1008, "unauthenticated")


def test_a_page_of_our_own_may_open_a_stream(agent: Agent) -> None:
    with stream(agent.server, agent.launch["job_id"], origin=f"http://127.0.0.1:{agent.server.port}") as socket:
        assert json.loads(socket.recv(10))["type"] == "status"


def test_clients_that_do_not_read_are_not_buffered_for(agent: Agent) -> None:
    server = agent.server
    stuck = [stream(server, agent.launch["job_id"], max_queue=1) for _ in range(20)]
    for n in range(300):
        lines = [LogLine(0, 0, n * 100 + i, 1, "out", "z" * 1000) for i in range(100)]
        server.run(server.append(agent.launch, lines))
        if n == 100:
            before = resident()
    assert server.call("GET", f"/v1/jobs/{agent.launch['job_id']}").status == 200
    assert resident() - before < 80 << 20
    for socket in stuck:
        socket.socket.close()
        socket.close()


def test_a_slow_reader_lags_and_loses_nothing(agent: Agent) -> None:
    server = agent.server
    with stream(server, agent.launch["job_id"], max_queue=1) as socket:
        for n in range(50):
            lines = [LogLine(0, 0, n * 100 + i, 1, "out", f"{n * 100 + i} " + "z" * 1000) for i in range(100)]
            server.run(server.append(agent.launch, lines))
        agent.finish()
        found = texts(until_end(socket))
    assert [int(text.split()[0]) for text in found] == list(range(5000))


def test_what_a_client_says_is_ignored(agent: Agent) -> None:
    with stream(agent.server, agent.launch["job_id"]) as socket:
        for _ in range(100):
            socket.send("hello?")
        agent.report("still here")
        while True:
            message = json.loads(socket.recv(10))
            if message["type"] == "log":
                break
        assert message["lines"][0]["x"] == "still here"
