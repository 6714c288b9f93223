"""A6: a job's log over plain HTTP, read by people with curl and by programs."""

import http.client
import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from crucible.ports.streams import LogLine

from .conftest import Agent, Server, eventually, resident


@pytest.fixture
def agent(server: Server) -> Iterator[Agent]:
    running = server.agent(server.submit()).begin()
    yield running
    if server.call("GET", f"/v1/jobs/{running.launch['job_id']}").json["status"] == "running":
        running.finish()


def logs(agent: Agent, query: str = "") -> Any:
    return agent.server.call("GET", f"/v1/jobs/{agent.launch['job_id']}/logs?{query}")


def append(agent: Agent, *lines: LogLine) -> None:
    agent.server.run(agent.server.append(agent.launch, lines))


def records(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.split(b"\n") if line]


def test_text_is_what_the_job_wrote(agent: Agent) -> None:
    agent.report("first", "", "third \\ with \t things \u00e9")
    reply = logs(agent)
    assert reply.headers["Content-Type"].startswith("text/plain")
    assert reply.text == "first\n\nthird \\ with \t things \u00e9\n"


def test_reading_on_from_the_offset_misses_nothing(agent: Agent) -> None:
    agent.report("one", "two")
    first = logs(agent)
    offset = first.headers["X-Next-Offset"]
    assert logs(agent, f"offset={offset}").text == ""
    agent.report("three")
    assert logs(agent, f"offset={offset}").text == "three\n"
    assert logs(agent, "offset=999999999").text == ""


def test_json_lines_say_whose_they_are_and_where_to_read_on(agent: Agent) -> None:
    agent.report("one", "two")
    reply = logs(agent, "format=json")
    assert reply.headers["Content-Type"].startswith("application/x-ndjson")
    found = records(reply.body)
    assert [(r["attempt"], r["rank"], r["n"], r["s"], r["x"]) for r in found] == [
        (0, 0, 0, "out", "one"),
        (0, 0, 1, "out", "two"),
    ]
    assert str(found[-1]["offset"]) == reply.headers["X-Next-Offset"]


def test_the_tail_of_everything_and_of_one_rank(agent: Agent) -> None:
    for n in range(300):
        append(agent, *(LogLine(0, rank, n, 1000 + n, "out", f"r{rank} {n}") for rank in range(3)))
    assert logs(agent, "tail=2").text == "r1 299\nr2 299\n"
    assert logs(agent, "tail=3&rank=1").text == "r1 297\nr1 298\nr1 299\n"
    assert logs(agent, "tail=500&rank=1").text.count("\n") == 300
    assert logs(agent, "tail=0").text == ""
    assert logs(agent, "rank=2&attempt=0").text.count("\n") == 300
    assert logs(agent, "attempt=1").text == ""


def test_lines_since_a_moment(agent: Agent) -> None:
    moment = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1000)
    append(agent, LogLine(0, 0, 0, moment - 1, "out", "before"), LogLine(0, 0, 1, moment, "out", "after"))
    assert logs(agent, "since=2026-05-01T00:00:00Z").text == "after\n"
    assert logs(agent, "since=2026-05-01T00:00:00").text == "after\n"
    assert logs(agent, "since=yesterday").status == 422


def test_pieces_of_a_long_line_are_put_together_again(agent: Agent) -> None:
    append(
        agent,
        LogLine(0, 0, 0, 1, "out", "a" * 70_000, True),
        LogLine(0, 0, 1, 1, "out", "b" * 70_000, True),
        LogLine(0, 0, 2, 1, "out", "end"),
        LogLine(0, 0, 3, 1, "out", "50%", True),
        LogLine(0, 1, 0, 1, "out", "another rank"),
    )
    assert logs(agent).text == "a" * 70_000 + "b" * 70_000 + "end\n50%\nanother rank\n"
    assert [r.get("p", False) for r in records(logs(agent, "format=json").body)] == [True, True, False, True, False]


def test_a_long_log_is_whole_at_whatever_pace_it_is_read(agent: Agent) -> None:
    lines = [LogLine(0, 0, n, 1, "out", f"{n} " + "x" * 100) for n in range(30_000)]
    append(agent, *lines)
    response, connection = agent.server.open(f"/v1/jobs/{agent.launch['job_id']}/logs")
    body = b""
    while piece := response.read(10_000):
        body += piece
    connection.close()
    assert body.decode() == "".join(f"{line.text}\n" for line in lines)


def test_following_ends_when_the_job_is_over_and_everything_was_sent(agent: Agent) -> None:
    agent.report("early")
    response, connection = agent.server.open(f"/v1/jobs/{agent.launch['job_id']}/logs?follow=true")
    assert response.readline() == b"early\n"
    for n in range(20):
        agent.report(f"line {n}")
        assert response.readline() == f"line {n}\n".encode()
    agent.report("last words", state="exited", exit_code=0)
    assert response.read() == b"last words\n"
    connection.close()


def test_following_a_finished_job_is_reading_it(agent: Agent) -> None:
    agent.report("all there is")
    agent.finish()
    assert logs(agent, "follow=true").text == "all there is\n"
    assert [r["x"] for r in records(logs(agent, "follow=true&format=json&tail=1").body)] == ["all there is"]


def test_a_follower_that_goes_away_is_noticed(agent: Agent) -> None:
    before = agent.server.tasks()
    response, connection = agent.server.open(f"/v1/jobs/{agent.launch['job_id']}/logs?follow=true")
    assert agent.server.tasks() > before
    response.close()
    connection.close()
    eventually(lambda: agent.server.tasks() <= before)


def test_many_followers_all_get_every_line(agent: Agent) -> None:
    path = f"/v1/jobs/{agent.launch['job_id']}/logs?follow=true&format=json"
    got: list[list[int]] = [[] for _ in range(30)]

    def follow(mine: list[int]) -> None:
        response, connection = agent.server.open(path)
        mine += [r["n"] for r in records(response.read())]
        connection.close()

    followers = [threading.Thread(target=follow, args=(mine,)) for mine in got]
    for follower in followers:
        follower.start()
    for n in range(30):
        agent.report(*(f"{n}.{i}" for i in range(10)))
    agent.finish()
    for follower in followers:
        follower.join(20)
    assert got == [list(range(300))] * 30


def test_a_follower_that_does_not_read_holds_up_nobody_and_is_not_buffered_for(agent: Agent) -> None:
    server = agent.server
    path = f"/v1/jobs/{agent.launch['job_id']}/logs?follow=true"
    stuck = [server.open(path) for _ in range(20)]
    for n in range(100):
        append(agent, *(LogLine(0, 0, n * 100 + i, 1, "out", "y" * 1000) for i in range(100)))
    before = resident()
    for n in range(100, 300):
        append(agent, *(LogLine(0, 0, n * 100 + i, 1, "out", "y" * 1000) for i in range(100)))
    assert logs(agent, "tail=1").status == 200
    # 20 readers x 20 MB more would be 400 MB, were anything kept for them.
    assert resident() - before < 60 << 20
    for response, connection in stuck:
        response.close()
        connection.close()


def test_the_log_of_a_task_that_is_not_there_is_not_found(agent: Agent) -> None:
    assert logs(agent, "task=1").status == 404
    for query in ("offset=-1", "tail=-1", "format=xml", "rank=x", "tail=99999999", f"offset={2**70}"):
        assert logs(agent, query).status == 422, query


def test_head_of_the_body_arrives_before_the_job_is_over(agent: Agent) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", agent.server.port, timeout=10)
    headers = {"Authorization": f"Bearer {agent.server.tokens['alice']}"}
    connection.request("GET", f"/v1/jobs/{agent.launch['job_id']}/logs?follow=true", headers=headers)
    response = connection.getresponse()
    assert response.status == 200 and response.headers["Transfer-Encoding"] == "chunked"
    agent.report("now")
    assert response.readline() == b"now\n"
    connection.close()
