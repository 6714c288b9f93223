"""From user-data to a finished job, against the real server: the program is fetched, checked, enrolled, and runs."""

import hashlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from crucible.agent import bundle
from crucible.core.boot import EC2, script
from crucible.engine.keys import Keys
from crucible.model.ids import Digest
from doubles.metadata import META, MetadataDouble, running_metadata

from .conftest import Agent, Server, eventually

PROGRAM = bundle.portable()
SHA256 = Digest(hashlib.sha256(PROGRAM).hexdigest())


@dataclass
class Booting:
    """The machine that the engine bought, as a process that knows nothing but its user-data."""

    agent: Agent
    metadata: MetadataDouble
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def run(self, token: str) -> subprocess.Popen[bytes]:
        self.metadata.words[META + "instance-id"] = self.agent.machine.id
        boot = replace(self.agent.boot, agent_sha256=SHA256, enrolment_token=token)
        cloud = replace(EC2, power_off=("touch", str(self.folder / "off")))
        (self.folder / "user-data").write_text(script(self.agent.order, boot, cloud))
        env = {
            "PATH": os.environ["PATH"],
            "CRUCIBLE_NODE_DIR": str(self.folder / "var"),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.metadata.url,
        }
        argv = [sys.executable, str(self.folder / "user-data")]
        with (self.folder / "console").open("wb") as console:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=env)
        return self.process

    def destroy(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def last_word(self) -> str:
        return (self.folder / "console").read_text().splitlines()[-1]


@pytest.fixture
def booting(server: Server, tmp_path: Path) -> Iterator[Booting]:
    async def content() -> AsyncIterator[bytes]:
        yield PROGRAM

    server.run(server.deps.agents.put(SHA256, content(), len(PROGRAM)))
    with running_metadata() as metadata:
        machine = Booting(server.agent(server.submit()), metadata, tmp_path)
        yield machine
        machine.destroy()


def test_a_machine_with_nothing_but_user_data_runs_its_job_and_powers_off(server: Server, booting: Booting) -> None:
    machine = booting.run(booting.agent.boot.enrolment_token)
    job = f"/v1/jobs/{booting.agent.order.job_id}"
    eventually(lambda: server.call("GET", job).json["status"] == "completed", 60)
    assert server.call("GET", job + "/logs").text == "hi\n"
    assert machine.wait(60) == 0
    assert (booting.folder / "off").exists()


def test_a_machine_with_a_foreign_token_gets_nothing_and_powers_off(booting: Booting) -> None:
    machine = booting.run(Keys(b"another server's").enrolment(booting.agent.order.id))
    assert machine.wait(60) == 1
    assert booting.last_word().startswith("crucible: boot failed: no server hands out the agent: ")
    assert booting.last_word().endswith("says HTTP 401 Unauthorized")
    assert (booting.folder / "off").exists()


def test_a_machine_that_comes_after_its_job_was_cancelled_powers_off(server: Server, booting: Booting) -> None:
    server.call("POST", f"/v1/jobs/{booting.agent.order.job_id}/cancel")
    token = booting.agent.boot.enrolment_token
    eventually(lambda: server.call("GET", f"/v1/agent/{SHA256}", token).status == 404, 30)
    machine = booting.run(token)
    assert machine.wait(60) == 1
    assert booting.last_word().endswith("says HTTP 404 Not Found")
    assert (booting.folder / "off").exists()
