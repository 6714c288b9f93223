"""A real server on loopback: the real engine, store, streams and routes, with a cloud in memory whose machines the
tests play themselves over the agents' own routes."""

import asyncio
import gzip
import hashlib
import http.client
import json
import random
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop

from crucible.api.app import ApiSettings, Deps, create_app
from crucible.api.limits import RateLimits
from crucible.api.serve import serve
from crucible.blobs.file_door import FileDoor
from crucible.blobs.files import FileBlobs
from crucible.core.sign_in import SignInPolicy
from crucible.engine.commit_meter import CommitMeter
from crucible.engine.context import Context
from crucible.engine.engine import Engine
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.metered_seller import metered
from crucible.engine.people import digest_of
from crucible.engine.planner import NO_KNOWLEDGE, Knowledge
from crucible.engine.sign_in import SignIn
from crucible.engine.wakes import Wakes
from crucible.exporting.prometheus import PrometheusMeter
from crucible.main import shipped_templates
from crucible.model.account import Role, Token, User
from crucible.model.ids import Digest, TaskId, TokenId, UserId
from crucible.model.lease import Boot, Machine, Order
from crucible.model.policy import Policy
from crucible.model.storage import Address, parse
from crucible.notify.opening import open_notifiers
from crucible.ports.identity import IdentityProvider
from crucible.ports.lab import LabDoor
from crucible.ports.notifier import Outlets
from crucible.ports.prices import Prices
from crucible.ports.streams import LogLine
from crucible.seal import KeyRing
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.system import SystemClock, SystemIds, SystemRandom
from crucible.testing.fake_cloud import FakeCloud
from crucible.testing.fake_objects import FakeStorage

T = TypeVar("T")

AGENT = b"the program of a machine" * 20_000
# Where nobody listens; alerts may be sent there.
CLOSED = "http://127.0.0.1:9"
AGENT_SHA256 = Digest(hashlib.sha256(AGENT).hexdigest())

NO_LIMITS = RateLimits(person=0, agent=0, stranger=0)  # tests ask more often than anybody should

SPEC = """\
job:
  name: tiny
  command: [echo, hi]
  resources: {gpus: 1}
  retry: {limit: 0}
"""


@dataclass
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(kw_only=True)
class Server:
    """Lives in its own thread; `run` does something in its event loop."""

    folder: Path
    settings: ApiSettings
    knowledge: Knowledge = NO_KNOWLEDGE
    price_sources: Sequence[Prices] = ()
    region_storage: Mapping[str, Address] = field(default_factory=dict)
    identity_provider: IdentityProvider | None = None
    sign_in_policy: SignInPolicy = field(default_factory=SignInPolicy)
    alert_endpoints: tuple[str, ...] = (CLOSED,)
    lab: LabDoor | None = None
    port: int = 0
    loop: asyncio.AbstractEventLoop = field(init=False)
    deps: Deps = field(init=False)
    cloud: FakeCloud = field(init=False)
    storage: FakeStorage = field(init=False)
    keys: Keys = field(init=False)
    door: FileDoor = field(init=False)  # to objects on this server's disk
    boots: list[tuple[Machine, Order, Boot]] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    ready: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._main)
        self._thread.start()
        assert self.ready.wait(30), "the server did not start"
        if self.error is not None:
            raise self.error

    def stop(self) -> float:
        """How long it took to end."""
        began = time.monotonic()
        self.loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(30)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return time.monotonic() - began

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
        except OSError:
            return False
        return True

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    def call(
        self,
        method: str,
        path: str,
        token: str | None = "alice",
        *,
        json_body: Any = None,
        body: bytes | Iterator[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """`token` is the name of a person of ours, or a token itself."""
        sent = dict(headers or {})
        if token is not None:
            sent.setdefault("Authorization", f"Bearer {self.tokens.get(token, token)}")
        if json_body is not None:
            body = json.dumps(json_body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        finally:
            connection.close()

    def submit(self, token: str = "alice", spec: str = SPEC, **more: Any) -> str:
        reply = self.call("POST", "/v1/jobs", token, json_body={"spec_yaml": spec, **more})
        assert reply.status == 201, reply.text
        return str(reply.json["id"])

    def open(self, path: str, token: str = "alice") -> tuple[http.client.HTTPResponse, http.client.HTTPConnection]:
        """A GET whose answer is read bit by bit."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.tokens[token]}"})
        return connection.getresponse(), connection

    def agent(self, job_id: str) -> "Agent":
        """The machine that the engine bought for a job, played by the test."""
        found = eventually(lambda: [boot for boot in self.boots if boot[1].job_id == job_id])
        machine, order, boot = found[0]
        return Agent(self, machine, order, boot)

    async def append(self, launch: dict[str, Any], lines: Sequence[LogLine]) -> None:
        """As a report does, without the trouble of making one."""
        await self.deps.streams.append_log(TaskId(launch["task_id"]), lines)
        self.deps.hub.notify(launch["job_id"])

    def tasks(self) -> int:
        """How much goes on in it."""
        return self.run(_count_tasks())

    # --- inside the thread --------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self.error = error
            self.ready.set()

    async def _serve(self) -> None:
        self.loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        async with self._engine() as engine:
            await engine.start()
            await serve(create_app(self.deps), listener, self._stopping, on_ready=self.ready.set)

    @asynccontextmanager
    async def _engine(self) -> AsyncIterator[Engine]:
        clock = SystemClock()
        counted = CommitMeter(PrometheusMeter())
        store = await open_store(f"sqlite:///{self.folder / 'db'}", watch=counted)
        streams = FileStreams(self.folder / "streams", add_segment=store.add_segment, segments=store.segments)
        blobs = FileBlobs(self.folder / "blobs")
        self.keys = Keys(b"secret")
        self.cloud = FakeCloud(clock=clock, random=random.Random(1), gpus=64, on_boot=self._booted)
        self.storage = FakeStorage(now=clock.now)
        url = f"http://127.0.0.1:{self.port}"
        self.door = FileDoor(url, self.keys.address, self.keys.right_of, clock.now)
        context = Context(
            store=store,
            streams=streams,
            sellers={(self.cloud.name, self.cloud.region): metered(self.cloud, counted.meter, clock)},
            clock=clock,
            ids=SystemIds(),
            random=SystemRandom(),
            keys=self.keys,
            hub=Hub(clock),
            wakes=Wakes(),
            policy=Policy(),
            server_id="test",
            url=url,
            checkpoint_root=self.folder.as_uri(),
            storage=self.storage,
            storage_root=parse("s3://kept/checkpoints"),
            region_storage=self.region_storage,
            failpoint=lambda name: None,
            counted=counted,
            sealer=KeyRing.made_in(self.folder / "secrets-keys"),
        )
        engine = Engine(context, blobs, self.knowledge, self.price_sources, shipped_templates(), self._outlets())
        self.deps = Deps(
            store=store,
            streams=streams,
            blobs=blobs,
            agents=await self._agents(),
            service=engine.service,
            people=engine.people,
            teams=engine.teams,
            audits=engine.audits,
            sign_in=SignIn(context, self.identity_provider, self.sign_in_policy),
            retention=engine.retention,
            privacy=engine.privacy,
            gateway=engine.gateway,
            channels=engine.channels,
            checkpoints=engine.checkpoint_desk,
            datasets=engine.datasets,
            templates=engine.templates,
            secrets=engine.secrets,
            secret_keys=engine.secret_keys,
            budgets=engine.budgets,
            trials=engine.trials,
            statuses=engine.statuses,
            system=engine.system,
            outputs=engine.outputs,
            shards=engine.shards,
            shard_outputs=engine.shard_outputs,
            gauges=engine.gauges,
            hub=context.hub,
            clock=clock,
            settings=self.settings,
            signed=self.door.opened,
            prices=engine.prices,
            recommender=engine.recommender,
            costs=engine.costs,
            savings=engine.savings,
            table=engine.planner.table,
            enabled=context.providers,
            enabled_places=context.enabled,
            alerts=engine.alerts,
            healths={"local": [_healthy], "cloudy": [_healthy, _sick]},
            lab=self.lab,
        )
        for name, role in (("admin", Role.ADMIN), ("alice", Role.MEMBER), ("bob", Role.MEMBER)):
            await self._add_person(name, role)
        try:
            yield engine
        finally:
            await engine.stop()
            await streams.close()
            await store.close()

    def _outlets(self) -> Outlets:
        endpoints, now = self.alert_endpoints, SystemClock().now
        return Outlets(open_notifiers(smtp=None, endpoints=endpoints, deployment="test", now=now))

    async def _agents(self) -> FileBlobs:
        agents = FileBlobs(self.folder / "agents")

        async def content() -> AsyncIterator[bytes]:
            yield AGENT

        await agents.put(AGENT_SHA256, content(), len(AGENT))
        return agents

    def _booted(self, machine: Machine, order: Order, boot: Boot) -> None:
        self.boots.append((machine, order, boot))

    async def _add_person(self, name: str, role: Role) -> None:
        store, now = self.deps.store, self.deps.clock.now()
        await store.add_user(User(id=UserId(name), name=name, role=role, created_at=now))
        secret = self.tokens[name] = f"cru_{name}-secret"
        token = Token(
            id=TokenId(f"token-{name}"), user_id=UserId(name), name="t", digest=digest_of(secret), created_at=now
        )
        await store.add_token(token)


async def _count_tasks() -> int:
    return len(asyncio.all_tasks())


async def _healthy() -> dict[str, Any]:
    return {"status": "healthy", "problems": []}


async def _sick() -> dict[str, Any]:
    return {"status": "down", "region": "south-1", "problems": [{"problem": "no key", "fix": "log in"}]}


@dataclass
class Agent:
    """One machine with one rank, over HTTP."""

    server: Server
    machine: Machine
    order: Order
    boot: Boot
    key: str = ""
    launch: dict[str, Any] = field(default_factory=dict)
    token: str = ""
    lines: int = 0
    points: int = 0

    def enrol(self) -> "Agent":
        body = {
            "protocol": 1,
            "order_id": self.order.id,
            "machine_id": self.machine.id,
            "agent_id": f"agent-{self.machine.id}",
            "boot_id": "b",
            "agent_version": "test",
            "address": "127.0.0.1",
            "rendezvous_port": 29500,
        }
        reply = self.server.call("POST", "/agent/v1/enrol", self.boot.enrolment_token, json_body=body)
        while reply.status == 429:  # the seller's answer is on its way into the database
            reply = self.server.call("POST", "/agent/v1/enrol", self.boot.enrolment_token, json_body=body)
        assert reply.status == 200, reply.text
        self.key = reply.json["node_key"]
        return self

    def begin(self) -> "Agent":
        """Enrol, wait for work, and say that it has started."""
        self.enrol()
        seen = ""
        while not self.launch:
            reply = self.server.call("GET", f"/agent/v1/work?seen={seen}&wait=10", self.key)
            assert reply.status == 200, reply.text
            seen = reply.json["version"]
            for rank in reply.json["ranks"]:
                self.launch, self.token = rank["launch"], rank["token"]
        self.report(state="started")
        return self

    def report(
        self,
        *texts: str,
        state: str | None = None,
        exit_code: int | None = None,
        losses: tuple[float, ...] = (),
        **more: Any,
    ) -> Any:
        attempt = {"attempt_id": self.launch["attempt_id"], "rank": 0}
        log = [{"n": self.lines + i, "t": 1_000 + i, "s": "out", "x": text} for i, text in enumerate(texts)]
        metrics = [
            {"n": self.points + i, "t": 1, "step": self.points + i, "v": {"loss": v}} for i, v in enumerate(losses)
        ]
        self.lines += len(log)
        self.points += len(metrics)
        rank = {**attempt, "generation": self.launch["generation"], "state": state, "exit_code": exit_code}
        report = {
            "boot_id": "b",
            "ranks": [{**rank, "log_lines": self.lines}] if state else [],
            "streams": [{**attempt, "number": self.launch["number"], "log": log, "metrics": metrics}]
            if log or metrics
            else [],
            **more,
        }
        reply = self.server.call("POST", "/agent/v1/report", self.key, json_body=report)
        assert reply.status == 200, reply.text
        return reply.json

    def finish(self, exit_code: int = 0) -> None:
        self.report(state="exited", exit_code=exit_code)
        wanted = "completed" if exit_code == 0 else "failed"
        eventually(
            lambda: self.server.call("GET", f"/v1/jobs/{self.launch['job_id']}", "admin").json["status"] == wanted
        )


def eventually(look: Callable[[], T], seconds: float = 20.0) -> T:
    """What `look` returns once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    page = small_page(tmp_path_factory.mktemp("page"))
    settings = ApiSettings(version="9.9.9", allowed_hosts=("crucible.example",), providers=("fake",), page=page)
    running = Server(folder=tmp_path_factory.mktemp("server"), settings=replace(settings, rate_limits=NO_LIMITS))
    running.start()
    yield running
    running.stop()


def small_page(folder: Path) -> Path:
    """As a build leaves the page: everything packed but the one file that is written anew for each request."""
    head = '<base href="./" /><meta name="csp-nonce" content="" /><script src="./assets/index-a1.js"></script>'
    (folder / "index.html").write_text(f"<!doctype html><html><head>{head}</head></html>")
    (folder / "assets").mkdir()
    for name, text in (("assets/index-a1.js", "go()"), ("assets/index-b2.css", "a {}"), ("icon.svg", "<svg />")):
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    return folder


def resident() -> int:
    """Bytes of memory of this process, the server's included."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
