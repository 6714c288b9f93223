"""The agents' routes, played by hand (wire.agent): enrolment, work as a long poll, reports with acknowledgements."""

import asyncio
import hashlib
import http.client
import threading
import time
from typing import Any

import pytest

from crucible.engine.context import listing_of
from crucible.engine.gateway import ASKS_AGAIN_S

from .conftest import AGENT, AGENT_SHA256, Agent, Server, eventually


@pytest.fixture
def agent(server: Server) -> Agent:
    return server.agent(server.submit())


def work(agent: Agent, query: str = "") -> Any:
    return agent.server.call("GET", f"/agent/v1/work?{query}", agent.key)


def test_enrolling_again_is_the_same_node_and_another_agent_is_refused(agent: Agent) -> None:
    first = agent.enrol().key
    assert agent.enrol().key == first
    body = {"protocol": 1, "order_id": agent.order.id, "machine_id": agent.machine.id, "agent_id": "intruder"}
    body |= {"boot_id": "b", "agent_version": "1", "address": "127.0.0.1", "rendezvous_port": 1}
    reply = agent.server.call("POST", "/agent/v1/enrol", agent.boot.enrolment_token, json_body=body)
    assert (reply.status, reply.json["error"]) == (403, "forbidden")
    reply = agent.server.call("POST", "/agent/v1/enrol", agent.key, json_body=body)
    assert (reply.status, reply.json["error"]) == (401, "unauthenticated")


def test_an_enrolment_that_is_not_understood_says_which_field(agent: Agent) -> None:
    for body in (b"{}", b"not json", b'{"protocol": "x"}'):
        reply = agent.server.call("POST", "/agent/v1/enrol", agent.boot.enrolment_token, body=body)
        assert (reply.status, reply.json["error"]) == (422, "invalid_request")


def test_a_long_poll_answers_when_there_is_news(agent: Agent) -> None:
    agent.begin()
    version = work(agent).json["version"]
    began = time.monotonic()
    assert work(agent, f"seen={version}&wait=0.2").json["unchanged"] is True
    assert time.monotonic() - began < 5
    answers: list[Any] = []
    poll = threading.Thread(target=lambda: answers.append(work(agent, f"seen={version}&wait=30")))
    poll.start()
    agent.server.call("POST", f"/v1/jobs/{agent.launch['job_id']}/cancel")
    poll.join(20)
    assert answers[0].json["ranks"][0]["stop"] is True


def test_an_agent_that_breaks_off_and_stays_away_has_its_seller_asked(agent: Agent) -> None:
    """As when its machine dies: the kernel closes what was open."""
    agent.begin()
    version, hub = work(agent).json["version"], agent.server.deps.hub
    place = listing_of(agent.server.cloud.name, agent.server.cloud.region)
    seen = hub.counter(place)
    connection = wait_for_work(agent, version)
    connection.close()
    eventually(lambda: hub.counter(place) > seen)
    agent.finish()


def test_an_agent_that_asks_again_at_once_disturbs_nobody(agent: Agent) -> None:
    agent.begin()
    version, hub = work(agent).json["version"], agent.server.deps.hub
    place = listing_of(agent.server.cloud.name, agent.server.cloud.region)
    seen, first = hub.counter(place), wait_for_work(agent, version)
    second = wait_for_work(agent, version)
    first.close()
    agent.server.run(asyncio.sleep(2 * ASKS_AGAIN_S))  # what must not happen needs time not to
    assert hub.counter(place) == seen
    second.close()
    agent.finish()


def wait_for_work(agent: Agent, version: str) -> http.client.HTTPConnection:
    """A question that the server is thinking about."""
    before = agent.server.run(_asking(agent))
    connection = http.client.HTTPConnection("127.0.0.1", agent.server.port, timeout=30)
    headers = {"Authorization": f"Bearer {agent.key}"}
    connection.request("GET", f"/agent/v1/work?seen={version}&wait=30", headers=headers)
    eventually(lambda: agent.server.run(_asking(agent)) > before)
    return connection


async def _asking(agent: Agent) -> int:
    """How many questions of agents wait in the server."""
    return agent.server.deps.gateway.waiting


def test_work_names_what_to_run_and_the_token_of_the_attempt(agent: Agent) -> None:
    agent.begin()
    assert agent.launch["argv"] == ["echo", "hi"]
    assert agent.launch["job_id"] == agent.order.job_id
    assert agent.token.startswith("cra.")
    agent.finish()


def test_records_are_acknowledged_kept_once_and_a_gap_is_refused(agent: Agent) -> None:
    agent.begin()
    attempt = {"attempt_id": agent.launch["attempt_id"], "number": 0, "rank": 0}
    lines = [{"n": n, "t": 1, "s": "out", "x": f"line {n}"} for n in range(4)]

    def send(*records: Any) -> Any:
        body = {"boot_id": "b", "streams": [{**attempt, "log": list(records)}]}
        return agent.server.call("POST", "/agent/v1/report", agent.key, json_body=body)

    assert send(*lines[:2]).json["acks"][0]["log"] == 2
    assert send(*lines[1:3]).json["acks"][0]["log"] == 3
    gap = send({**lines[3], "n": 7})
    assert (gap.status, gap.json["details"]["expected"]) == (400, 3)
    text = agent.server.call("GET", f"/v1/jobs/{agent.launch['job_id']}/logs").text
    assert text == "line 0\nline 1\nline 2\n"
    agent.lines = 3
    agent.finish()


def test_a_node_whose_lease_is_over_is_told_to_go(agent: Agent) -> None:
    agent.begin().finish()
    eventually(lambda: work(agent, "wait=0").status == 410, 30)
    assert work(agent).json["error"] == "gone"


def test_a_report_that_is_too_large_is_refused_before_it_is_read(agent: Agent) -> None:
    agent.enrol()
    reply = agent.server.call("POST", "/agent/v1/report", agent.key, body=b"x" * (4 << 20) + b"x")
    assert (reply.status, reply.json["error"]) == (413, "too_large")


def test_a_node_fetches_the_package_of_its_job(server: Server, agent: Agent) -> None:
    agent.enrol()
    content = b"packed code" * 100_000
    digest = hashlib.sha256(content).hexdigest()
    assert server.call("GET", f"/agent/v1/packages/{digest}", agent.key).status == 404
    assert server.call("PUT", f"/v1/packages/{digest}", body=content).status == 201
    fetched = server.call("GET", f"/agent/v1/packages/{digest}", agent.key)
    assert (fetched.status, fetched.body) == (200, content)
    assert server.call("GET", "/agent/v1/packages/..%2f..%2fdb", agent.key).status in (400, 404)


def fetched(agent: Agent, sha256: str = AGENT_SHA256, token: str | None = None) -> Any:
    return agent.server.call("GET", f"/v1/agent/{sha256}", token or agent.boot.enrolment_token)


def test_a_machine_that_was_ordered_fetches_its_agent_by_digest(agent: Agent) -> None:
    reply = fetched(agent)
    assert (reply.status, reply.body, reply.headers["ETag"]) == (200, AGENT, f'"{AGENT_SHA256}"')
    for other in ("0" * 64, "x", "..%2f..%2fdb", AGENT_SHA256.upper()):
        assert (fetched(agent, other).status, fetched(agent, other).json["error"]) == (404, "not_found"), other


def test_an_enrolment_token_does_not_open_the_packages_of_users(server: Server, agent: Agent) -> None:
    digest = hashlib.sha256(b"somebody's code").hexdigest()
    assert server.call("PUT", f"/v1/packages/{digest}", body=b"somebody's code").status == 201
    assert fetched(agent, digest).status == 404


def test_the_agent_is_nothing_for_tokens_that_are_forged_or_of_another_kind(server: Server, agent: Agent) -> None:
    kind, order, mac = agent.boot.enrolment_token.split(".")
    forged = f"{kind}.{order}x.{mac}"
    for token in (forged, agent.enrol().key, server.tokens["admin"]):
        assert (fetched(agent, token=token).status, fetched(agent, token=token).json["error"]) == (
            401,
            "unauthenticated",
        )


def test_an_order_whose_machines_are_not_wanted_any_more_fetches_nothing(agent: Agent) -> None:
    agent.begin().finish()
    eventually(lambda: fetched(agent).status == 404, 30)


def test_waiting_times_that_make_no_sense_are_refused_or_short(agent: Agent) -> None:
    agent.enrol()
    assert work(agent, "wait=soon").status == 400
    began = time.monotonic()
    for wait in ("-1", "nan", "inf", "1e9"):
        assert work(agent, f"wait={wait}").status == 200
    assert time.monotonic() - began < 10
