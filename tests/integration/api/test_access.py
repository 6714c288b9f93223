"""Who may use what (R14, T14): every row of the table, as every kind of caller; no row, no route."""

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from crucible.api.access import SOCKET, TABLE, Access
from crucible.api.app import create_app
from crucible.engine.service import digest_of
from crucible.model.dataset import Dataset
from crucible.model.errors import InvariantBroken
from crucible.model.ids import Digest, TokenId, UserId
from crucible.model.record import Token
from crucible.model.storage import parse

from .conftest import AGENT_SHA256, SPEC, Agent, Server, eventually

CODE = b"code"
DIGEST = hashlib.sha256(CODE).hexdigest()
BODIES: dict[str, Any] = {
    "/v1/jobs": {"spec_yaml": SPEC},
    "/v1/plan": {"spec_yaml": SPEC},
    "/v1/validate": {"spec_yaml": SPEC},
    "/v1/recommendations": {"code": "import torch"},
    "/v1/templates/{name}/fill": {"parameters": {}},
    "/v1/tokens": {"name": "n"},
    "/v1/users": {"name": "dave"},
    "/api/v1/training": {"spec_yaml": SPEC},
    "/agent/v1/report": {"boot_id": "b"},
}
CALLERS = (
    "anonymous",
    "nonsense",
    "revoked",
    "expired",
    "owner",
    "other member",
    "admin",
    "node",
    "enrolment",
    "attempt",
    "attempt of another job",
)
REFUSED = {401, 403, 404}


@dataclass
class Cast:
    """Everybody who might ask, and whose things they ask for."""

    server: Server
    agent: Agent
    job_id: str
    credentials: dict[str, str | None]

    def ask(self, method: str, template: str, caller: str) -> int:
        path = template.replace("{job_id}", self.job_id).replace("{digest}", DIGEST).replace("{sha256}", AGENT_SHA256)
        path = path.replace("{token}", self._address(method) if "{token}" in path else "")
        path = path.replace("{token_id}", self._token() if "{token_id}" in path else "").replace("{provider}", "cloudy")
        if "/v1/templates/" in path:
            path = path.replace("{name}", self._template("bob" if caller == "other member" else "alice"))
        if "{name}" in path:
            path = path.replace("{name}", self._dataset("bob" if caller == "other member" else "alice"))
        token = self.credentials[caller]
        if "{channel_id}" in path:
            with self._waiting() as channel_id:
                return self._open_socket(path.replace("{channel_id}", channel_id), token)
        if method == SOCKET:
            return self._open_socket(path, token)
        body = BODIES.get(template)
        if (method, template) == ("POST", "/v1/templates"):
            body = {"body": a_template()}
        if template == "/agent/v1/enrol":
            body = self._enrolment()
        content = CODE if method == "PUT" else None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self.server.call(method, path, token, body=content, headers=headers).status

    def _open_socket(self, path: str, token: str | None) -> int:
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        url = f"ws://127.0.0.1:{self.server.port}{path}"
        try:
            with connect(url, additional_headers=headers):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    @contextmanager
    def _waiting(self) -> Iterator[str]:
        """The owner waits for the node."""
        headers = {"Authorization": f"Bearer {self.server.tokens['alice']}"}
        url = f"ws://127.0.0.1:{self.server.port}/v1/jobs/{self.job_id}/channel"
        with connect(url, additional_headers=headers) as person:
            person.send('{"kind": "exec", "argv": ["true"]}')
            work = eventually(lambda: self.server.call("GET", "/agent/v1/work", self.agent.key).json["channels"])
            yield work[0]["id"]

    def _address(self, method: str) -> str:
        """Of an object that is there, as whoever was given it has it."""
        objects = self.server.door.objects(parse(self.server.folder.as_uri()).below("objects"))
        self.server.run(objects.put("k", b"x"))
        (signed,) = self.server.run(objects.sign("GET" if method == "GET" else "PUT", ["k"], timedelta(minutes=5)))
        return signed.url.rpartition("/")[2]

    def _token(self) -> str:
        """A fresh one of the owner's, to be revoked by whoever can."""
        return str(self.server.call("POST", "/v1/tokens", "alice", json_body={"name": "victim"}).json["id"])

    def _template(self, owner: str) -> str:
        """A fresh one; everybody may look at it, its owner may remove it."""
        reply = self.server.call("POST", "/v1/templates", owner, json_body={"body": a_template()})
        return str(reply.json["name"])

    def _dataset(self, owner: str) -> str:
        """A fresh one; everybody may look at it, its owner may remove it."""

        async def add() -> str:
            store, now = self.server.deps.store, self.server.deps.clock.now()
            claim = await store.claim(f"test-{time.monotonic_ns()}", "test", timedelta(minutes=1))
            assert claim is not None
            dataset = Dataset(
                name=f"{owner}-{time.monotonic_ns()}",
                digest=Digest(DIGEST),
                uri="s3://kept/datasets",
                region=None,
                size_bytes=1,
                files=1,
                user_id=UserId(owner),
                created_at=now,
            )
            await store.save_dataset(dataset, claim=claim)
            return dataset.name

        return self.server.run(add())

    def _enrolment(self) -> dict[str, Any]:
        body = {"protocol": 1, "order_id": self.agent.order.id, "machine_id": self.agent.machine.id, "boot_id": "b"}
        more = {
            "agent_id": f"agent-{self.agent.machine.id}",
            "agent_version": "1",
            "address": "x",
            "rendezvous_port": 1,
        }
        return body | more


@pytest.fixture(scope="module")
def cast(server: Server) -> Iterator[Cast]:
    assert server.call("PUT", f"/v1/packages/{DIGEST}", body=CODE).status == 201
    agent = server.agent(server.submit("alice")).begin()
    other = server.agent(server.submit("alice")).begin()
    credentials = {
        "anonymous": None,
        "nonsense": "cru_nonsense",
        "revoked": lost_token(server, "revoked"),
        "expired": lost_token(server, "expired"),
        "owner": server.tokens["alice"],
        "other member": server.tokens["bob"],
        "admin": server.tokens["admin"],
        "node": agent.key,
        "enrolment": agent.boot.enrolment_token,
        "attempt": agent.token,
        "attempt of another job": other.token,
    }
    yield Cast(server, agent, agent.launch["job_id"], credentials)
    agent.finish()
    other.finish()


def a_template() -> str:
    """Of a name that nobody has."""
    return f"template: {{name: t-{time.monotonic_ns()}, description: d}}\njob: {{command: ls}}"


def lost_token(server: Server, how: str) -> str:
    secret, then = f"cru_{how}", datetime.now(UTC) - timedelta(minutes=1)
    token = Token(id=TokenId(how), user_id=UserId("admin"), name=how, digest=digest_of(secret), created_at=then)
    if how == "expired":
        token = replace(token, expires_at=then)
    server.run(server.deps.store.add_token(token))
    if how == "revoked":
        server.run(server.deps.store.revoke_token(TokenId(how), then))
    return secret


def allowed(access: Access, template: str) -> set[str]:
    match access:
        case Access.PUBLIC | Access.SIGNED:
            return set(CALLERS)
        case Access.NODE:
            return {"node"}
        case Access.WORKER:
            return {"attempt", "attempt of another job"}
        case Access.ENROLMENT:
            return {"enrolment"}
        case Access.ADMIN:
            return {"admin"}
        case Access.MEMBER | Access.ATTEMPT:
            people = {"owner", "admin"}
            if not ("{job_id}" in template or "{token_id}" in template):
                people.add("other member")  # there is nothing foreign in it
            return people | ({"attempt"} if access is Access.ATTEMPT else set())


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("method", "template"), sorted(TABLE), ids=lambda value: value)
def test_every_route_lets_in_exactly_whom_its_row_names(cast: Cast, method: str, template: str, caller: str) -> None:
    may = caller in allowed(TABLE[method, template], template)
    if may and template.endswith(("/cancel", "/hold")):  # of another job, so that the cast keeps its own
        cast = replace(cast, job_id=cast.server.submit("alice"))
    status = cast.ask(method, template, caller)
    if may:
        assert status not in REFUSED and status < 500, status
    else:
        assert status in REFUSED, status
        if caller in ("anonymous", "nonsense", "revoked", "expired"):
            assert status == 401, status


def test_a_foreign_job_looks_exactly_like_one_that_does_not_exist(cast: Cast) -> None:
    nowhere = "00000000-0000-7000-8000-000000000000"
    for method, template in TABLE:
        if "{job_id}" in template and method != SOCKET:
            paths = [template.replace("{job_id}", job_id) for job_id in (cast.job_id, nowhere)]
            foreign, absent = (cast.server.call(method, path, "bob") for path in paths)
            assert foreign.status == absent.status == 404, template
            assert foreign.text.replace(cast.job_id, nowhere) == absent.text, template


def test_a_route_without_a_row_keeps_the_server_from_starting(server: Server) -> None:
    app = create_app(server.deps)

    async def secret() -> None: ...

    with pytest.raises(InvariantBroken, match="GET /v1/secret has no row"):
        app.router.add_api_route("/v1/secret", secret, methods=["GET"])


def test_an_attempts_token_reads_its_own_job_and_nothing_else(cast: Cast) -> None:
    for method, template in TABLE:
        status = cast.ask(method, template, "attempt")
        for_all = TABLE[method, template] in (Access.PUBLIC, Access.SIGNED)
        assert (status == 200) == (template == "/v1/jobs/{job_id}" or for_all), template


def test_an_attempts_token_dies_with_the_attempt(server: Server) -> None:
    agent = server.agent(server.submit()).begin()
    path = f"/v1/jobs/{agent.launch['job_id']}"
    assert server.call("GET", path, agent.token).status == 200
    agent.finish()
    assert server.call("GET", path, agent.token).status in REFUSED


def test_tokens_in_odd_clothes_are_refused(server: Server) -> None:
    secret = server.tokens["alice"]
    for value in (
        secret,
        f"Basic {secret}",
        "Bearer",
        "Bearer ",
        f"Bearer {secret}x",
        "Bearer " + "x" * 5000,
        "Bearer é",
    ):
        reply = server.call("GET", "/v1/me", None, headers={"Authorization": value})
        assert (reply.status, reply.json["error"]) == (401, "unauthenticated"), value
        assert reply.headers["WWW-Authenticate"] == "Bearer"
    assert server.call("GET", "/v1/me", None, headers={"Authorization": f"bearer {secret}"}).status == 200
    assert server.call("GET", f"/v1/me?token={secret}", None).status == 401
