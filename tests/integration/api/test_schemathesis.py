"""The OpenAPI description against the server that it describes (T10, a bounded slice): whatever is asked, by whomever,
no answer is a 5xx, and every answer is what the description says. SCHEMATHESIS_FACTOR=10 asks ten times as much."""

import os
from dataclasses import dataclass, field

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from .conftest import Agent, Server

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FACTOR = int(os.environ.get("SCHEMATHESIS_FACTOR", "1"))
# How many of each operation a caller asks (one that has no parameters is asked once), and how many that comes to at
# least: together 5,000. Who may do more gets further into it.
CALLERS = {
    "anonymous": (3, 300),
    "viewer": (7, 700),
    "member": (10, 950),
    "manager": (10, 950),
    "admin": (16, 1_600),
    "attempt": (3, 250),
    "node": (3, 250),
}


@dataclass
class Stage:
    """A server with a team, people of every role, and a job that runs."""

    server: Server
    agent: Agent
    tokens: dict[str, str | None] = field(default_factory=dict)

    @property
    def real(self) -> dict[str, str]:
        """Parameters that name something that is there."""
        return {"job_id": str(self.agent.launch["job_id"]), "team": "vision", "user": "member", "task_index": "0"}


@pytest.fixture(scope="module")
def stage(server: Server) -> Stage:
    assert server.call("POST", "/v1/teams", "admin", json_body={"name": "vision"}).status == 201
    made = Stage(server, server.agent(server.submit()).begin(), {"anonymous": None, "admin": server.tokens["admin"]})
    for name, on_server, in_team in (
        ("viewer", "viewer", "viewer"),
        ("member", "member", "member"),
        ("manager", "member", "manager"),
    ):
        assert server.call("POST", "/v1/users", "admin", json_body={"name": name, "role": on_server}).status == 201
        path = f"/v1/teams/vision/members/{name}"
        assert server.call("PUT", path, "admin", json_body={"role": in_team}).status in (200, 201)
        token = server.call("POST", "/v1/tokens", "admin", json_body={"name": "t", "user": name})
        made.tokens[name] = token.json["token"]
    made.agent.report("a line", losses=(1.0, 0.5))
    return made


@pytest.fixture(scope="module")
def described(server: Server) -> BaseSchema:
    schema = schemathesis.openapi.from_dict(server.call("GET", "/v1/openapi.json").json)
    schema.config.update(base_url=f"http://127.0.0.1:{server.port}")
    return schema


def ask_everything(schema: BaseSchema, token: str | None, times: int, real: dict[str, str]) -> int:
    """Ask every operation so many things, half of them about what is there; how many were asked."""
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @seed(1)
        @settings(
            max_examples=times * FACTOR,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Case) -> None:
            nonlocal asked
            asked += 1
            if asked % 2:
                case.path_parameters |= {name: real[name] for name in case.path_parameters if name in real}
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            case.call_and_validate(headers=headers, checks=CHECKS, timeout=30)

        ask()
    return asked


@pytest.mark.parametrize("caller", CALLERS)
def test_whatever_is_asked_by_whomever_the_answer_is_as_described(
    stage: Stage, described: BaseSchema, caller: str
) -> None:
    tokens = {**stage.tokens, "attempt": stage.agent.token, "node": stage.agent.key}
    times, at_least = CALLERS[caller]
    assert ask_everything(described, tokens[caller], times, stage.real) >= at_least
