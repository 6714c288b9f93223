"""Who may use what (R14, T14): every row of the table, as every kind of caller; no row, no route."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cached_property
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from crucible.api.access import SOCKET, TABLE, Access, Need
from crucible.api.app import create_app
from crucible.engine.people import digest_of
from crucible.model.account import Grant, Membership, Principal, Project, Role, Team, Token, User
from crucible.model.dataset import Dataset
from crucible.model.errors import InvariantBroken
from crucible.model.ids import Digest, TokenId, UserId
from crucible.model.notice import Notice, NoticeKind, Severity
from crucible.model.storage import parse
from crucible.ports.alerts import NoticeQuery

from .conftest import AGENT_SHA256, CLOSED, SPEC, Agent, Server, eventually

CODE = b"code"
DIGEST = hashlib.sha256(CODE).hexdigest()
TEAM, PROJECT = "vision", "cats"
NOWHERE = "00000000-0000-7000-8000-000000000000"

# Everybody who might ask. The job is ann's; it is counted under her team.
STRANGERS = ("anonymous", "nonsense", "revoked", "expired", "disabled")
PEOPLE: Mapping[str, tuple[Role, Mapping[str, Role]]] = {
    "owner": (Role.MEMBER, {TEAM: Role.MEMBER}),
    "mate": (Role.MEMBER, {TEAM: Role.MEMBER}),
    "onlooker of the team": (Role.MEMBER, {TEAM: Role.VIEWER}),
    "viewer of the server": (Role.VIEWER, {TEAM: Role.MANAGER}),  # may manage nothing, whatever the team says
    "manager": (Role.MEMBER, {TEAM: Role.MANAGER}),
    "loner": (Role.MEMBER, {}),
    "member of another team": (Role.MEMBER, {"speech": Role.MEMBER}),
    "manager of another team": (Role.MEMBER, {"speech": Role.MANAGER}),
    "admin": (Role.ADMIN, {}),
}
LIMITED = {f"admin's token for {grant} only": grant for grant in Grant}
AGENTS = ("node", "enrolment", "attempt", "attempt of another job")
CALLERS = (*STRANGERS, *PEOPLE, *LIMITED, *AGENTS)


class Thing(Enum):
    """What a route's path or body names, and so who may see and change it beside what its row says."""

    NOTHING = "nothing that belongs to anybody"
    SHARED = "everybody sees it, its owner changes it"
    JOB = "a job: seen by the owner and the team, changed by the owner and who manages the team"
    TOKEN = "one's own"
    TEAM = "seen by its members, changed by who manages it"
    USER = "seen by who manages a team of theirs"
    PRIVATE = "theirs, and an admin's"
    NEW_PERSON = "made by admins"


# By the path of a route. One that names something and is not here fails the test: say what it names.
THINGS: Mapping[str, Thing] = {
    "/v1/datasets/{name}": Thing.SHARED,
    "/v1/templates/{name}": Thing.SHARED,
    "/v1/templates/{name}/fill": Thing.SHARED,
    "/v1/tokens/{token_id}": Thing.TOKEN,
    "/v1/users": Thing.NEW_PERSON,
    "/v1/users/{user}": Thing.USER,
    "/v1/secrets/{name}": Thing.TEAM,  # a team's, as the query says
    "/v1/budgets/{budget_id}": Thing.TEAM,
    "/v1/users/{user}/export": Thing.PRIVATE,
    "/v1/teams/{team}": Thing.TEAM,
    "/v1/teams/{team}/members": Thing.TEAM,
    "/v1/teams/{team}/members/{user}": Thing.TEAM,
    "/v1/projects": Thing.TEAM,
    "/v1/projects/{project}": Thing.TEAM,
    "/v1/alerts/rules/{rule_id}": Thing.TEAM,
    "/v1/alerts/channels/{alert_channel_id}": Thing.TEAM,
    "/v1/alerts/channels/{alert_channel_id}/test": Thing.TEAM,
    "/v1/alerts/channels/{alert_channel_id}/rotate": Thing.TEAM,
    "/v1/notices/{seq}/deliveries": Thing.TEAM,
    "/ui/{path:path}": Thing.NOTHING,
    # these belong to nobody, or the token itself says whose they are
    "/v1/health/{provider}": Thing.NOTHING,
    "/v1/packages/{digest}": Thing.NOTHING,
    "/v1/retention/{what}": Thing.NOTHING,
    "/v1/hosts/{name}": Thing.NOTHING,
    "/v1/hosts/{name}/check": Thing.NOTHING,
    "/v1/hosts/{name}/drain": Thing.NOTHING,
    "/v1/hosts/{name}/resume": Thing.NOTHING,
    "/v1/lab/machines/{machine}/console": Thing.NOTHING,
    "/v1/lab/faults/{name}": Thing.NOTHING,
    "/v1/objects/{token}": Thing.NOTHING,
    "/v1/agent/{sha256}": Thing.NOTHING,
    "/agent/v1/packages/{digest}": Thing.NOTHING,
    "/agent/v1/channels/{channel_id}": Thing.NOTHING,
}
# What is sent, where a body is needed to come past the door; {new} is a name that nobody has.
BODIES: Mapping[tuple[str, str], Any] = {
    ("POST", "/v1/jobs"): {"spec_yaml": SPEC},
    ("POST", "/v1/plan"): {"spec_yaml": SPEC},
    ("POST", "/v1/validate"): {"spec_yaml": SPEC},
    ("POST", "/v1/recommendations"): {"code": "import torch"},
    ("POST", "/v1/templates"): {"body": "template: {name: {new}, description: d}\njob: {command: ls}"},
    ("POST", "/v1/templates/{name}/fill"): {"parameters": {}},
    ("PUT", "/v1/secrets/{name}"): {"value": "x"},
    ("POST", "/v1/tokens"): {"name": "n"},
    ("POST", "/v1/login/ticket"): {"challenge": "c" * 43},
    ("POST", "/v1/users"): {"name": "{new}"},
    ("PATCH", "/v1/users/{user}"): {},
    ("PATCH", "/v1/budgets/{budget_id}"): {},
    ("PUT", "/v1/retention/{what}"): {"age": "default"},
    ("POST", "/v1/retention/run"): {"dry_run": True},
    ("POST", "/v1/teams"): {"name": "{new}"},
    ("PUT", "/v1/teams/{team}/members/{user}"): {"role": "viewer"},
    ("POST", "/v1/projects"): {"name": "{new}", "team": TEAM},
    ("POST", "/v1/alerts/rules"): {"name": "{new}", "channels": ["nowhere"]},
    ("PATCH", "/v1/alerts/rules/{rule_id}"): {"window_s": 60},
    ("POST", "/v1/alerts/channels"): {"name": "{new}", "kind": "webhook", "address": f"{CLOSED}/x"},
    ("POST", "/api/v1/training"): {"spec_yaml": SPEC},
    ("POST", "/agent/v1/report"): {"boot_id": "b"},
}
REFUSED = {401, 403, 404}
ENDED = ("/cancel", "/hold")  # what these do to a job, the others should not have to live with


def thing_of(template: str) -> Thing:
    if "{job_id}" in template:
        return Thing.JOB
    found = THINGS.get(template)
    assert found or "{" not in template, f"{template} names something: say in THINGS what it is"
    return found or Thing.NOTHING


# --- what must come of it -------------------------------------------------------------------------------------------


def expected(method: str, template: str, caller: str) -> int | None:
    """The status of a refusal; None: they come through. 0: refused somehow, for what is no person."""
    need = TABLE[method, template]
    if need.access in (Access.PUBLIC, Access.SIGNED):
        return None
    if caller in STRANGERS:
        return 401
    if caller in AGENTS:
        return None if caller in AGENTS_OF.get(need.access, ()) else 0
    if need.grant is None:
        return 0
    if caller in LIMITED:
        who = Principal(UserId("admin"), Role.ADMIN, TokenId("t"), {}, frozenset({LIMITED[caller]}))
    else:
        role, teams = PEOPLE[caller]
        who = Principal(UserId(caller), role, TokenId("t"), teams)
    return by_level(need, who) or by_thing(thing_of(template), method, template, caller, who)


AGENTS_OF: Mapping[Access, tuple[str, ...]] = {
    Access.NODE: ("node",),
    Access.ENROLMENT: ("enrolment",),
    Access.WORKER: ("attempt", "attempt of another job"),
    Access.ATTEMPT: ("attempt",),
}


def by_level(need: Need, who: Principal) -> int | None:
    """Written down a second time, and differently: what a row asks."""
    looks = {Grant.READ, Grant.JOBS, Grant.MANAGE, Grant.ADMIN}
    usable = looks if need.grant is Grant.READ else {need.grant}
    if who.grants and not who.grants & usable:
        return 403
    is_manager = who.role is Role.MEMBER and Role.MANAGER in who.teams.values()
    may = {
        Access.VIEWER: True,
        Access.ATTEMPT: True,
        Access.MEMBER: who.role in (Role.MEMBER, Role.ADMIN),
        Access.MANAGER: is_manager or who.role is Role.ADMIN,
        Access.ADMIN: who.role is Role.ADMIN,
        Access.METRICS: who.role is Role.ADMIN,
    }
    return None if may[need.access] else 403


def by_thing(thing: Thing, method: str, template: str, caller: str, who: Principal) -> int | None:
    is_admin, in_team = who.role is Role.ADMIN, TEAM in who.teams
    manages = is_admin or caller == "manager"
    is_change = TABLE[method, template].access is not Access.VIEWER and method not in ("GET", "HEAD")
    match thing:
        case Thing.NOTHING:
            return None
        case Thing.SHARED:
            return 403 if is_change and not is_admin and caller != "owner" else None
        case Thing.JOB if not (is_admin or in_team):
            return 404
        case Thing.JOB:
            return 403 if is_change and not manages and caller != "owner" else None
        case Thing.TOKEN:
            return None if is_admin or caller == "owner" else 404
        case Thing.TEAM if method == "GET" and template == "/v1/projects":
            return None
        case Thing.TEAM if not (is_admin or in_team):
            return 404
        case Thing.TEAM:
            return 403 if is_change and not manages else None
        case Thing.USER:
            return None if manages else 404
        case Thing.PRIVATE:
            return None if is_admin else 404
        case Thing.NEW_PERSON:
            # A person; an admin's token needs the grant for it too.
            refused = method == "POST" and (not is_admin or not who.is_granted(Grant.ADMIN))
            return 403 if refused else None


# --- asking ---------------------------------------------------------------------------------------------------------


@dataclass
class Cast:
    """Everybody who might ask, and whose things they ask for."""

    server: Server
    agent: Agent
    other: Agent
    job_id: str
    credentials: dict[str, str | None]

    def ask(self, method: str, template: str, caller: str) -> int:
        path = self.filled(method, template)
        token = self.credentials[caller]
        if "{channel_id}" in path:
            with self._waiting() as channel_id:
                return self._open_socket(path.replace("{channel_id}", channel_id), token)
        if method == SOCKET:
            return self._open_socket(path, token)
        body = self._enrolment() if template == "/agent/v1/enrol" else BODIES.get((method, template))
        content = None if body is None else json.dumps(body).replace("{new}", fresh()).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        content = CODE if method == "PUT" and body is None else content
        return self.server.call(method, path, token, body=content, headers=headers).status

    def filled(self, method: str, template: str) -> str:
        """With things of the owner's; what may be removed is made for it. What lies within a job (a step, a task) is
        asked for badly: whoever comes so far hears that, and nobody else."""
        known: dict[str, Callable[[], str]] = {
            "job_id": lambda: self.job_id,
            "digest": lambda: DIGEST,
            "sha256": lambda: AGENT_SHA256,
            "provider": lambda: "cloudy",
            "token": lambda: self._address(method),
            "token_id": self._token,
            "team": lambda: TEAM,
            "project": self._project,
            "budget_id": self._budget,
            "user": self._member,
            "name": {"/v1/templates/": self._template, "/v1/secrets/": self._secret}.get(
                template.partition("{")[0], self._dataset
            ),
            "rule_id": self._rule,
            "alert_channel_id": lambda: self._channel() if method == "DELETE" else self._shared_channel,
            "seq": self._notice,
        }
        path = template
        for name in re.findall(r"{(\w+)}", template):
            if name in known:
                path = path.replace(f"{{{name}}}", known[name]())
        return path

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
        headers = {"Authorization": f"Bearer {self.credentials['owner']}"}
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

    def made(self, path: str, caller: str, body: Any) -> Any:
        reply = self.server.call("POST", path, self.credentials[caller], json_body=body)
        assert reply.status == 201, reply.text
        return reply.json

    def _token(self) -> str:
        return str(self.made("/v1/tokens", "owner", {"name": "victim"})["id"])

    def _budget(self) -> str:
        body = {"scope": "team", "name": TEAM, "limit_usd": 5}
        self.server.call("POST", "/v1/budgets", self.credentials["admin"], json_body=body)  # unless it is there
        return f"team:{TEAM}:once"

    def _project(self) -> str:
        return str(self.made("/v1/projects", "admin", {"name": fresh(), "team": TEAM})["name"])

    def _member(self) -> str:
        return str(self.made("/v1/users", "admin", {"name": fresh(), "team": TEAM})["name"])

    def _channel(self) -> str:
        """Where nobody listens."""
        body = {"name": fresh(), "team": TEAM, "kind": "webhook", "address": f"{CLOSED}/x"}
        return str(self.made("/v1/alerts/channels", "manager", body)["id"])

    def _rule(self) -> str:
        body = {"name": fresh(), "team": TEAM, "channels": [self._shared_channel]}
        return str(self.made("/v1/alerts/rules", "manager", body)["id"])

    @cached_property
    def _shared_channel(self) -> str:
        return self._channel()

    def _notice(self) -> str:
        async def write() -> int:
            store, now = self.server.deps.store, self.server.deps.clock.now()
            told = {"kind": NoticeKind.STALL, "severity": Severity.INFO, "title": "t", "text": "t", "team": TEAM}
            await store.commit([], [Notice(key=fresh(), at=now, **told)], label="notice")  # type: ignore[arg-type]
            return (await store.notices(NoticeQuery(limit=1)))[0][0]

        return str(self.server.run(write()))

    def _template(self) -> str:
        body = f"template: {{name: {fresh()}, description: d}}\njob: {{command: ls}}"
        return str(self.made("/v1/templates", "owner", {"body": body})["name"])

    def _secret(self) -> str:
        """A team's."""
        path = f"{fresh().replace('-', '_')}?team={TEAM}"
        reply = self.server.call("PUT", f"/v1/secrets/{path}", self.credentials["admin"], json_body={"value": "x"})
        assert reply.status == 200, reply.text
        return path

    def _dataset(self) -> str:
        async def add() -> str:
            store, now = self.server.deps.store, self.server.deps.clock.now()
            claim = await store.claim(f"test-{fresh()}", "test", timedelta(minutes=1))
            assert claim is not None
            dataset = Dataset(
                name=fresh(),
                digest=Digest(DIGEST),
                uri="s3://kept/datasets",
                region=None,
                size_bytes=1,
                files=1,
                user_id=UserId("owner"),
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


def fresh() -> str:
    """A name that nobody has."""
    return f"n-{time.monotonic_ns()}"


@pytest.fixture(scope="module")
def cast(server: Server) -> Iterator[Cast]:
    credentials: dict[str, str | None] = {"anonymous": None, "nonsense": "cru_nonsense"}
    server.run(populate(server, credentials))
    for how in ("revoked", "expired", "disabled"):
        credentials[how] = lost_token(server, how)
    owner = credentials["owner"]
    assert owner is not None
    assert server.call("PUT", f"/v1/packages/{DIGEST}", owner, body=CODE).status == 201
    agent, other = (server.agent(server.submit(owner)).begin() for _ in range(2))
    assert server.call("GET", f"/v1/jobs/{agent.launch['job_id']}", "admin").json["team"] == TEAM
    credentials |= {
        "node": agent.key,
        "enrolment": agent.boot.enrolment_token,
        "attempt": agent.token,
        "attempt of another job": other.token,
    }
    yield Cast(server, agent, other, agent.launch["job_id"], credentials)
    agent.finish()
    other.finish()


async def populate(server: Server, credentials: dict[str, str | None]) -> None:
    store, now = server.deps.store, server.deps.clock.now()
    for team in (TEAM, "speech"):
        await store.add_team(Team(name=team, created_at=now, created_by=UserId("admin")))
    await store.add_project(Project(name=PROJECT, team=TEAM, created_at=now, created_by=UserId("admin")))
    for name, (role, teams) in PEOPLE.items():
        user = UserId(name)
        if name != "admin":
            await store.add_user(User(id=user, name=name, role=role, created_at=now))
        for team, there in teams.items():
            await store.save_member(Membership(team=team, user_id=user, role=there, created_at=now))
        credentials[name] = await a_token(server, user, name)
    for name, grant in LIMITED.items():
        credentials[name] = await a_token(server, UserId("admin"), name, grants=(grant,))


async def a_token(server: Server, user: UserId, name: str, **more: Any) -> str:
    secret, now = f"cru_{name}".replace(" ", "-"), server.deps.clock.now()
    token = Token(id=TokenId(name), user_id=user, name=name, digest=digest_of(secret), created_at=now)
    await server.deps.store.add_token(replace(token, **more))
    return secret


def lost_token(server: Server, how: str) -> str:
    """It would be an admin's."""
    store, then = server.deps.store, datetime.now(UTC) - timedelta(minutes=1)
    user = User(id=UserId(how), name=how, role=Role.ADMIN, created_at=then)
    server.run(store.add_user(user))
    secret = server.run(a_token(server, user.id, how, expires_at=then if how == "expired" else None))
    if how == "revoked":
        server.run(store.revoke_token(TokenId(how), then))
    if how == "disabled":
        server.run(store.save_user(replace(user, disabled_at=then)))
    return secret


# --- every route, every caller --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "template"), sorted(TABLE), ids=lambda value: value)
def test_every_route_lets_in_exactly_whom_its_row_and_its_thing_name(cast: Cast, method: str, template: str) -> None:
    wrong = []
    for agent in (cast.agent, cast.other):  # who is silent for too long is taken for dead
        agent.report()
    for caller in CALLERS:
        must = expected(method, template, caller)
        playing = cast
        if must is None and template.endswith(ENDED):  # of another job, so that the cast keeps its own
            playing = replace(cast, job_id=cast.server.submit(cast.credentials["owner"] or ""))
        status = playing.ask(method, template, caller)
        is_right = came_through(status) if must is None else status in ({must} if must else REFUSED)
        if not is_right:
            wrong.append(f"{caller}: {status}, not {'an answer' if must is None else must}")
    assert not wrong, "\n".join(wrong)


def came_through(status: int) -> bool:
    """502: it was asked elsewhere, and nobody was there."""
    return status not in REFUSED and (status < 500 or status == 502)


# Who asks for what is foreign to them: the one who may do the most without it.
FOREIGN = "manager of another team"
IDS = {"job_id", "token_id", "team", "project", "user", "budget_id", "rule_id", "alert_channel_id"}


def test_what_is_foreign_looks_exactly_like_what_does_not_exist(cast: Cast) -> None:
    server, seen = cast.server, set()
    for method, template in TABLE:
        names = IDS & set(re.findall(r"{(\w+)}", template))
        if not names or method == SOCKET or TABLE[method, template].access is Access.ADMIN:
            continue
        seen |= names
        path = cast.filled(method, template)
        absent = re.sub(r"{(\w+)}", NOWHERE, template)
        body = BODIES.get((method, template))
        foreign, nothing = (
            server.call(method, one, cast.credentials[FOREIGN], json_body=body) for one in (path, absent)
        )
        assert foreign.status == nothing.status == 404, (method, template, foreign.status, nothing.status)
        words = foreign.text
        for part in set(path.split("/")) - set(absent.split("/")):
            words = words.replace(part, NOWHERE)
        assert words == nothing.text, template
    assert seen == IDS


def test_a_route_without_a_row_keeps_the_server_from_starting(server: Server) -> None:
    app = create_app(server.deps)

    async def secret() -> None: ...

    with pytest.raises(InvariantBroken, match="GET /v1/secret has no row"):
        app.router.add_api_route("/v1/secret", secret, methods=["GET"])


def test_an_attempts_token_reads_its_own_job_and_nothing_else(cast: Cast) -> None:
    for (method, template), need in TABLE.items():
        if need.access not in (Access.PUBLIC, Access.SIGNED):
            status = cast.ask(method, template, "attempt")
            assert (status == 200) == (template == "/v1/jobs/{job_id}"), template


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
