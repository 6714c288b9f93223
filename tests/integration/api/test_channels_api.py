"""The server between a person and a node: it calls the node, passes on what comes, and lets neither wait for ever. Both
ends are played here, by a library that others wrote."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from crucible.api import channels as api
from crucible.api.app import ApiSettings
from crucible.engine import channels as engine

from .conftest import Agent, Server, eventually

EXEC = {"kind": "exec", "argv": ["true"]}


@pytest.fixture(scope="module")
def agent(server: Server) -> Iterator[Agent]:
    found = server.agent(server.submit("alice")).begin()
    yield found
    found.finish()


@contextmanager
def opened(server: Server, path: str, token: str) -> Iterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {server.tokens.get(token, token)}"}
    with connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers=headers) as line:
        yield line


@contextmanager
def person(agent: Agent, request: Any = EXEC, token: str = "alice", query: str = "") -> Iterator[ClientConnection]:
    with opened(agent.server, f"/v1/jobs/{agent.launch['job_id']}/channel{query}", token) as line:
        line.send(request if isinstance(request, str | bytes) else json.dumps(request))
        yield line


def wishes(agent: Agent) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = agent.server.call("GET", "/agent/v1/work", agent.key).json["channels"]
    return found


@contextmanager
def node(agent: Agent, channel_id: str | None = None) -> Iterator[ClientConnection]:
    channel_id = channel_id or eventually(lambda: wishes(agent))[0]["id"]
    with opened(agent.server, f"/agent/v1/channels/{channel_id}", agent.key) as line:
        yield line


def refusal(line: ClientConnection) -> dict[str, Any]:
    message = line.recv(10)
    assert isinstance(message, bytes) and message[0] == 7
    said: dict[str, Any] = json.loads(message[1:])
    return said


def test_what_one_side_says_the_other_hears(agent: Agent) -> None:
    with person(agent) as asking:
        (wish,) = eventually(lambda: wishes(agent))
        assert wish["url"] == f"http://127.0.0.1:{agent.server.port}"
        full = {"kind": "exec", "argv": ["true"], "stdin": False, "tty": None}
        assert wish["request"] == {**full, "attempt_id": agent.launch["attempt_id"], "rank": 0}
        with node(agent, wish["id"]) as answering:
            assert wishes(agent) == [], "nobody is called twice"
            answering.send(b"\x04room")
            assert asking.recv(10) == b"\x04room"
            asking.send(b"\x00data")
            assert answering.recv(10) == b"\x00data"
            answering.send(b"\x06{}")
            answering.close()
            assert asking.recv(10) == b"\x06{}"
            with pytest.raises(ConnectionClosed) as closed:
                asking.recv(10)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1000


def test_a_poll_that_waits_hears_of_a_wish_at_once_and_of_its_going(agent: Agent) -> None:
    seen = agent.server.call("GET", "/agent/v1/work", agent.key).json["version"]
    replies: list[Any] = []

    def poll() -> None:
        replies.append(agent.server.call("GET", f"/agent/v1/work?seen={seen}&wait=30", agent.key).json)

    waiting = threading.Thread(target=poll)
    waiting.start()
    eventually(lambda: agent.server.deps.gateway.waiting)
    with person(agent):
        waiting.join(10)
        assert [wish["request"]["kind"] for wish in replies[0]["channels"]] == ["exec"]
        assert replies[0]["version"] != seen
        assert replies[0]["ranks"], "the work is a whole picture all the same"
    eventually(lambda: agent.server.call("GET", "/agent/v1/work", agent.key).json["version"] == seen)


def test_a_channel_is_for_the_node_that_was_called_and_once(agent: Agent) -> None:
    other = agent.server.agent(agent.server.submit("alice")).begin()
    with person(agent) as asking:
        (wish,) = eventually(lambda: wishes(agent))
        with pytest.raises(InvalidStatus, match="404"), node(other, wish["id"]):
            pass
        with node(agent, wish["id"]):
            with pytest.raises(InvalidStatus, match="404"), node(agent, wish["id"]):
                pass
            asking.send(b"\x00still there")
    other.finish()


def test_a_person_who_leaves_before_the_node_came_is_forgotten(agent: Agent) -> None:
    with person(agent):
        (wish,) = eventually(lambda: wishes(agent))
    eventually(lambda: not wishes(agent))
    with pytest.raises(InvalidStatus, match="404"), node(agent, wish["id"]):
        pass


@pytest.mark.parametrize(
    "request_",
    [
        "no json",
        b"binary",
        {"kind": "sudo"},
        {"kind": "exec", "argv": "text"},
        {"kind": "exec", "argv": ["a\0b"]},
        {"kind": "exec", "argv": ["x"], "surprise": 1},
        {"kind": "exec", "tty": {"rows": -1, "columns": 80}},
        {"kind": "exec", "tty": {"rows": 1, "columns": 80, "term": "x; rm"}},
        {"kind": "forward", "port": 0},
        {"kind": "copy_in", "path": ""},
    ],
)
def test_a_request_that_makes_no_sense_reaches_no_node(agent: Agent, request_: Any) -> None:
    with person(agent, request_) as asking:
        assert refusal(asking)["error"] == "invalid_request"
    assert wishes(agent) == []


@pytest.mark.parametrize("token", ["bob", "attempt"])
def test_a_stranger_and_the_job_itself_may_not(agent: Agent, token: str) -> None:
    with pytest.raises(InvalidStatus) as refused, person(agent, token=agent.token if token == "attempt" else token):
        pass
    assert refused.value.response.status_code in (401, 404)


def test_an_admin_may(agent: Agent) -> None:
    with person(agent, token="admin"):
        assert eventually(lambda: wishes(agent))


@pytest.mark.parametrize(("query", "status"), [("?rank=1", 404), ("?rank=x", 400), ("?task=7", 404)])
def test_a_rank_that_is_not_there_is_refused_before_anything_is_opened(agent: Agent, query: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused, person(agent, query=query):
        pass
    assert refused.value.response.status_code == status


def test_a_rank_that_has_not_started_cannot_be_reached(server: Server) -> None:
    agent = server.agent(server.submit("alice")).enrol()
    job_id = str(agent.order.job_id)
    with pytest.raises(InvalidStatus) as refused, opened(server, f"/v1/jobs/{job_id}/channel", "alice"):
        pass
    assert refused.value.response.status_code == 409
    server.call("POST", f"/v1/jobs/{job_id}/cancel")


def test_nobody_has_more_channels_than_there_are_seats(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_OF_USER", 3)
    for _ in range(2):  # seats become free again
        with ExitStack() as stack:
            for _ in range(3):
                eventually(lambda stack=stack: is_seated(stack, agent))
            assert not is_seated(stack, agent)
            assert is_seated(stack, agent, "admin")


def is_seated(stack: ExitStack, agent: Agent, token: str = "alice") -> bool:
    try:
        stack.enter_context(person(agent, token=token))
    except InvalidStatus as refused:
        assert refused.response.status_code == 429
        return False
    return True


def test_a_node_that_does_not_come_is_not_waited_for_for_ever(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "COMES_WITHIN_S", 0.2)
    with person(agent) as asking:
        said = refusal(asking)
    assert said["error"] == "unreachable"
    assert said["message"].startswith("the node does not answer")


def test_a_node_that_breaks_off_is_told_as_such(agent: Agent) -> None:
    with person(agent) as asking:
        with node(agent) as answering:
            answering.send(b"\x04room")
            assert asking.recv(10) == b"\x04room"
            answering.close(1001)
        assert refusal(asking)["message"].startswith("the node hung up")


def test_only_binary_messages_pass(agent: Agent) -> None:
    with person(agent) as asking, node(agent) as answering:
        asking.send("text")
        assert refusal(asking)["error"] == "invalid_request"
        with pytest.raises(ConnectionClosed):
            answering.recv(10)


def test_a_forgotten_channel_is_closed(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "IDLE_S", 0.1)
    monkeypatch.setattr(api, "LOOK_S", 0.05)
    with person(agent) as asking, node(agent) as answering:
        assert "nothing was said" in refusal(asking)["message"]
        with pytest.raises(ConnectionClosed):
            answering.recv(10)


def test_a_channel_ends_with_its_rank(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "LAST_WORDS_S", 0.1)
    agent = server.agent(server.submit("alice")).begin()
    with person(agent) as asking, node(agent) as answering:
        agent.finish()
        assert refusal(asking)["message"] == "the rank has ended, and everything beside it"
        with pytest.raises(ConnectionClosed):
            answering.recv(10)


def test_a_server_that_stops_hangs_up_on_both(tmp_path: Path) -> None:
    server = Server(folder=tmp_path, settings=ApiSettings(version="1", providers=("fake",)))
    server.start()
    agent = server.agent(server.submit("alice")).begin()
    with person(agent) as asking, node(agent) as answering, person(agent) as waiting:
        eventually(lambda: wishes(agent))
        assert server.stop() < 5
        for line in (asking, answering, waiting):
            with pytest.raises(ConnectionClosed):
                line.recv(10)


def test_the_operator_reads_who_opened_what(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="crucible.channels"):
        with person(agent, {"kind": "exec", "argv": ["secret", "words"]}), node(agent):
            pass
        eventually(lambda: "ended after" in caplog.text)
    assert f"alice opens exec beside rank 0 of job {agent.launch['job_id']} on node " in caplog.text
    assert "secret" not in caplog.text
