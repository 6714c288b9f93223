from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_process import AgentProcess
from crucible.agent import bundle
from doubles.agent_server import ServerDouble, running_double
from doubles.outputs import OutputsDouble
from doubles.storage import StorageDouble, running_storage
from doubles.trees import TreesDouble


@pytest.fixture(scope="session")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "crucible-agent.pyz"
    bundle.build(path)
    return path


@pytest.fixture
def server() -> Iterator[ServerDouble]:
    with running_double() as double:
        yield double


@pytest.fixture
def storage(server: ServerDouble) -> Iterator[StorageDouble]:
    """Behind the server."""
    with running_storage() as double:
        server.storage = double
        yield double


@pytest.fixture
def trees(server: ServerDouble, storage: StorageDouble) -> TreesDouble:
    """Datasets, in that storage."""
    server.trees = TreesDouble(storage)
    return server.trees


@pytest.fixture
def outputs(server: ServerDouble, storage: StorageDouble) -> OutputsDouble:
    """What ranks leave, in that storage."""
    server.outputs = OutputsDouble(storage)
    return server.outputs


@pytest.fixture
def new_agent(pyz: Path, server: ServerDouble, tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    agents: list[AgentProcess] = []

    def make(**options: Any) -> AgentProcess:
        agent = AgentProcess(pyz, tmp_path / f"node-{len(agents)}", server, **options)
        agents.append(agent)
        return agent

    yield make
    for agent in agents:
        agent.destroy()


@pytest.fixture
def agent(new_agent: Callable[..., AgentProcess]) -> AgentProcess:
    """Not started yet."""
    return new_agent()
