"""How an agent becomes a node, and that it stays the same one."""

import json
import os
import stat
from collections.abc import Callable

from agent_process import AgentProcess, environment_of
from doubles.agent_server import ENROLMENT_TOKEN, NODE_KEY, ServerDouble


def test_an_agent_enrols_with_the_facts_of_its_machine(agent: AgentProcess, server: ServerDouble) -> None:
    agent.start()
    message = server.wait_for(lambda: server.enrolments)[0]
    assert (message.order_id, message.machine_id) == ("order-1", agent.machine_id)
    assert 1 <= message.rendezvous_port <= 65535
    assert message.facts["cpus"] == os.cpu_count()
    assert message.facts["memory_bytes"] > 0
    assert message.facts["python"].count(".") == 2
    assert isinstance(message.facts["gpus"], list)


def test_a_lost_reply_makes_the_same_agent_ask_again(agent: AgentProcess, server: ServerDouble) -> None:
    server.replies_to_lose["/agent/v1/enrol"] = 2
    agent.start()
    server.wait_for(lambda: server.reports)
    assert len(server.enrolments) == 3
    assert len({message.agent_id for message in server.enrolments}) == 1
    assert len({message.rendezvous_port for message in server.enrolments}) == 1


def test_an_agent_killed_before_the_answer_asks_again_as_the_same_agent(
    agent: AgentProcess, server: ServerDouble
) -> None:
    server.replies_to_lose["/agent/v1/enrol"] = 1000
    agent.start()
    server.wait_for(lambda: server.enrolments)
    agent.kill()
    server.replies_to_lose.clear()
    agent.start()
    server.wait_for(lambda: server.reports)
    assert len({message.agent_id for message in server.enrolments}) == 1
    assert len({message.boot_id for message in server.enrolments}) == 2


def test_a_restarted_agent_goes_on_without_enrolling(agent: AgentProcess, server: ServerDouble) -> None:
    agent.start()
    server.wait_for(lambda: server.reports)
    agent.kill()
    seen = len(server.reports)
    agent.start()
    server.wait_for(lambda: len(server.reports) > seen)
    assert len(server.enrolments) == 1
    assert server.reports[-1].boot_id != server.reports[0].boot_id


def test_an_agent_that_is_refused_ends_and_says_why(
    new_agent: Callable[[], AgentProcess], server: ServerDouble
) -> None:
    for status in (401, 403, 404, 409, 410):
        server.refusals["/agent/v1/enrol"] = status
        agent = new_agent().start()
        assert agent.wait() == 1
        assert f"the server refused the enrolment (HTTP {status}" in agent.said()
        assert str(status) in (agent.folder / "agent.exit").read_text()


def test_an_agent_waits_for_a_server_that_is_not_there_yet(agent: AgentProcess, server: ServerDouble) -> None:
    server.stop()
    agent.start()
    while "trying again" not in ((agent.folder / "agent.out").read_text()):
        assert agent.process is not None and agent.process.poll() is None
    server.start()
    agent.point_at(server)
    server.wait_for(lambda: server.reports)


def test_a_second_agent_of_a_folder_ends_at_once_and_says_so(agent: AgentProcess, server: ServerDouble) -> None:
    agent.start()
    server.wait_for(lambda: server.reports)
    first = agent.process
    assert first is not None
    assert (agent.folder / "lock").read_text().split() == [str(first.pid)]
    agent.start()
    assert agent.wait() == 0
    assert "another agent already runs" in (agent.folder / "agent.out").read_text()
    assert first.poll() is None
    assert (agent.folder / "lock").read_text().split() == [str(first.pid)]
    first.kill()
    first.wait()


def test_an_agent_without_its_boot_file_ends_with_a_clear_line(agent: AgentProcess) -> None:
    (agent.folder / "boot.json").unlink()
    agent.start()
    assert agent.wait() == 1
    assert "boot.json" in agent.said()


def test_secrets_stay_in_files_of_mode_0600(agent: AgentProcess, server: ServerDouble) -> None:
    agent.start()
    server.wait_for(lambda: server.reports)
    assert agent.process is not None
    identity = agent.folder / "identity.json"
    assert stat.S_IMODE(identity.stat().st_mode) == 0o600
    assert json.loads(identity.read_text())["node_key"] == NODE_KEY
    with open(f"/proc/{agent.process.pid}/cmdline", "rb") as file:
        seen = file.read() + b"".join(environment_of(agent.process.pid)) + agent.said().encode()
    assert NODE_KEY.encode() not in seen
    assert ENROLMENT_TOKEN.encode() not in seen
