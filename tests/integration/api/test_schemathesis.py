"""The OpenAPI description against the server that it describes (T10, a bounded slice): whatever is asked, no answer is
a 5xx, and every answer is what the description says."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from .conftest import Server

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BOUNDED = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def finished_job(server: Server) -> str:
    agent = server.agent(server.submit()).begin()
    agent.report("a line", losses=(1.0, 0.5))
    agent.finish()
    return str(agent.launch["job_id"])


@pytest.fixture
def described(server: Server) -> BaseSchema:
    schema = schemathesis.openapi.from_dict(server.call("GET", "/v1/openapi.json").json)
    schema.config.update(base_url=f"http://127.0.0.1:{server.port}")
    return schema


def ask_everything(schema: BaseSchema, token: str, job_id: str | None = None) -> int:
    """Ask every operation a few things; how many were asked. With a job, only what is about a job, and that one."""
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if job_id is not None and "{job_id}" not in operation.path:
            continue

        @BOUNDED
        @given(case=operation.as_strategy())
        def ask(case: Case) -> None:
            nonlocal asked
            asked += 1
            if job_id is not None:
                case.path_parameters["job_id"] = job_id
            case.call_and_validate(headers={"Authorization": f"Bearer {token}"}, checks=CHECKS, timeout=20)

        ask()
    return asked


def test_whatever_an_admin_asks_the_answer_is_as_described(server: Server, described: BaseSchema) -> None:
    assert ask_everything(described, server.tokens["admin"]) >= 100


def test_whatever_is_asked_of_a_real_job_the_answer_is_as_described(
    server: Server, described: BaseSchema, finished_job: str
) -> None:
    assert ask_everything(described, server.tokens["alice"], finished_job) >= 50
