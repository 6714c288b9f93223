"""A machine that has nothing but its user-data: it becomes a node, or says why on its console and powers off."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from crucible.agent import bundle
from crucible.core.boot import EC2, script
from crucible.model.lease import Boot
from doubles.agent_server import ENROLMENT_TOKEN, ServerDouble
from doubles.http_server import Handler, Request, serving
from doubles.metadata import META, MetadataDouble, running_metadata
from making import an_order

from .test_agent_interpreters import FOUND

AGENT = bundle.portable()
SHA256 = hashlib.sha256(AGENT).hexdigest()
PATH = f"/v1/agent/{SHA256}"


@dataclass
class Booting:
    """A computer that runs user-data."""

    folder: Path
    metadata: MetadataDouble
    cloud = EC2
    process: subprocess.Popen[bytes] | None = None
    power_off: list[str] = field(default_factory=list)
    within_s: float = 20.0

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.power_off = ["touch", str(self.folder / "off")]

    def start(self, *servers: str, python: str = sys.executable, is_spot: bool = False) -> None:
        boot = Boot(servers, ENROLMENT_TOKEN, SHA256)
        limits = timedelta(seconds=self.within_s)
        cloud = replace(EC2, power_off=tuple(self.power_off), boot_within=limits)
        program = self.folder / "user-data"
        program.write_text(script(an_order(is_spot=is_spot), boot, cloud))
        env = {
            "PATH": os.environ["PATH"],
            "CRUCIBLE_NODE_DIR": str(self.folder / "var"),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.metadata.url,
        }
        with (self.folder / "console").open("wb") as console:
            self.process = subprocess.Popen(
                [python, str(program)], stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=env
            )

    def end(self) -> int:
        assert self.process is not None
        return self.process.wait(30)

    @property
    def is_off(self) -> bool:
        return (self.folder / "off").exists()

    @property
    def console(self) -> str:
        return (self.folder / "console").read_text()

    def last_word(self) -> str:
        return self.console.splitlines()[-1]

    def destroy(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)


@pytest.fixture
def metadata() -> Iterator[MetadataDouble]:
    with running_metadata() as double:
        yield double


@pytest.fixture
def machine(tmp_path: Path, metadata: MetadataDouble) -> Iterator[Booting]:
    booting = Booting(tmp_path / "machine", metadata)
    yield booting
    booting.destroy()
    assert ENROLMENT_TOKEN not in booting.console


def says(status: int, body: bytes = b"{}") -> Callable[[Request, Handler], None]:
    def answer(request: Request, http: Handler) -> None:
        http.send_response(status)
        http.send_header("Content-Length", str(len(body)))
        http.end_headers()
        http.wfile.write(body)

    return answer


@pytest.mark.parametrize("version", sorted(FOUND))
def test_user_data_alone_makes_a_node(machine: Booting, server: ServerDouble, version: str) -> None:
    server.agents[PATH] = AGENT
    machine.start(server.url, python=FOUND[version])
    message = server.wait_for(lambda: server.enrolments)[0]
    assert (message.order_id, message.machine_id, message.address) == ("o", "i-0123456789abcdef0", "10.0.0.7")
    assert message.facts["python"].startswith(version + ".")
    assert machine.process is not None and machine.process.poll() is None, "the program became the agent"
    boot = machine.folder / "var" / "boot.json"
    assert stat.S_IMODE(boot.stat().st_mode) == 0o600
    assert json.loads(boot.read_text())["metadata"] is None
    assert not machine.is_off


def test_a_node_that_is_not_wanted_any_more_powers_off(machine: Booting, server: ServerDouble) -> None:
    server.agents[PATH] = AGENT
    server.give(retire=True)
    machine.start(server.url)
    assert machine.end() == 0
    assert machine.is_off


def test_a_spot_machine_hears_that_it_is_taken_back(
    machine: Booting, server: ServerDouble, metadata: MetadataDouble
) -> None:
    server.agents[PATH] = AGENT
    metadata.take_back(in_s=120)
    machine.start(server.url, is_spot=True)
    deadline = time.monotonic() + 20
    while "waiting for the provider to take the machine" not in machine.console:
        assert time.monotonic() < deadline, machine.console
        time.sleep(0.02)


def test_the_next_server_is_asked(machine: Booting, server: ServerDouble) -> None:
    server.agents[PATH] = AGENT
    with serving(says(404)) as elsewhere:
        machine.start("http://127.0.0.1:9", elsewhere.url, server.url)
        server.wait_for(lambda: server.enrolments)


def test_servers_and_metadata_that_come_late_are_waited_for(
    machine: Booting, server: ServerDouble, metadata: MetadataDouble
) -> None:
    answers = [says(503), says(200, AGENT[:1000])]

    def stumble(request: Request, http: Handler) -> None:
        if len(answers) == 1:  # says more than it sends
            http.send_response(200)
            http.send_header("Content-Length", str(len(AGENT)))
            http.end_headers()
            http.wfile.write(AGENT[:1000])
            http.hang_up()
        else:
            answers[0](request, http)
        answers.pop(0)
        if not answers:
            server.agents[PATH] = AGENT

    metadata.is_silent = True
    server.refusals[PATH] = 503
    with serving(stumble) as broken:
        machine.start(broken.url, server.url)
        while "does not answer" not in machine.console and "Remote end" not in machine.console:
            time.sleep(0.02)
        metadata.is_silent = False
        server.wait_for(lambda: not answers)
        server.refusals.clear()
        server.wait_for(lambda: server.enrolments)


def test_an_agent_with_another_digest_is_not_run(machine: Booting) -> None:
    with serving(says(200, b"print('gotcha')")) as impostor:
        machine.start(impostor.url)
        assert machine.end() == 1
    digest = hashlib.sha256(b"print('gotcha')").hexdigest()
    assert machine.last_word() == (
        f"crucible: boot failed: the agent of {impostor.url} is not the one that was ordered: its sha256 is {digest}"
    )
    assert machine.is_off and "gotcha" not in machine.console
    assert not (machine.folder / "var" / "boot.json").exists()


def test_a_token_that_every_server_refuses_ends_the_machine_at_once(machine: Booting) -> None:
    machine.within_s = 600
    with serving(says(401)) as one, serving(says(404)) as other:
        machine.start(one.url, other.url)
        assert machine.end() == 1
    said = f"no server hands out the agent: {one.url} says HTTP 401 Unauthorized; {other.url} says HTTP 404 Not Found"
    assert machine.last_word() == f"crucible: boot failed: {said}"
    assert machine.is_off


def test_servers_that_nobody_reaches_end_the_machine_after_a_while(machine: Booting) -> None:
    machine.within_s = 2
    machine.start("http://127.0.0.1:9")
    assert machine.end() == 1
    assert machine.last_word().startswith("crucible: boot failed: no server hands out the agent, for 2 s: ")
    assert "http://127.0.0.1:9 does not answer" in machine.last_word()
    assert machine.is_off


def test_a_machine_that_does_not_know_who_it_is_ends(machine: Booting, metadata: MetadataDouble) -> None:
    machine.within_s = 1
    del metadata.words[META + "instance-id"]
    machine.start("http://127.0.0.1:9")
    assert machine.end() == 1
    reason = "the metadata service does not say who this machine is, for 1 s: HTTP 404, 0 bytes"
    assert machine.last_word() == f"crucible: boot failed: {reason}"
    assert machine.is_off


def test_a_machine_that_cannot_be_used_or_switched_off_says_both(machine: Booting) -> None:
    machine.power_off = ["/no/such/program"]
    (machine.folder / "var").write_text("in the way")
    machine.start("http://127.0.0.1:9")
    assert machine.end() == 1
    failed, stuck = machine.console.splitlines()
    assert failed.startswith("crucible: boot failed: FileExistsError")
    assert stuck.startswith("crucible: could not power off: ")
