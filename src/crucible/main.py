"""The composition root, the only place that knows every adapter: what is opened, in which order, and wired to what.
`python -m crucible.main server` runs a server; what it may be told is in `server_options.py` and `settings.py`."""

import asyncio
import contextlib
import gc
import hashlib
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

# Imports make a hundred thousand objects, and none of them is garbage: looking for it is a sixth of the start.
gc.disable()

import click
import uvloop

from crucible import __version__, catalog, logs, templates
from crucible.agent import bundle
from crucible.agent.handover import forbid_core
from crucible.api.app import ApiSettings, Deps, create_app
from crucible.api.serve import serve
from crucible.blobs.file_door import FileDoor
from crucible.blobs.files import FileBlobs
from crucible.blobs.storage import ObjectStorage
from crucible.catalog.benchmarks import architectures, benchmarks
from crucible.catalog.price_file import PriceFile
from crucible.client.endpoint import is_loopback
from crucible.client.package import pack
from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook, make_book
from crucible.core.retention import settings as keep_days_of
from crucible.engine.commit_meter import CommitMeter
from crucible.engine.context import Context
from crucible.engine.engine import Engine
from crucible.engine.failpoints import Failpoints
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.metered_seller import metered
from crucible.engine.people import digest_of
from crucible.engine.sign_in import SignIn
from crucible.engine.wakes import Wakes
from crucible.exporting.json_logs import JsonFormatter
from crucible.exporting.prometheus import PrometheusMeter
from crucible.home import (
    agent_file,
    last_port,
    prepare,
    publish,
    published,
    secret_key,
    unpublish,
    write_private,
)
from crucible.identity.opening import opened_identity
from crucible.model.account import Role, Token, User
from crucible.model.errors import Conflict, InvalidRequest, PlatformError, SecretsKeyMissing
from crucible.model.ids import Digest, TokenId, UserId
from crucible.notify.opening import open_notifiers
from crucible.ports.lab import LabDoor
from crucible.ports.notifier import Outlets
from crucible.ports.provider import Provider, Surroundings
from crucible.ports.seller import Examines
from crucible.ports.store import Store
from crucible.ports.templates import ShippedTemplate
from crucible.ports.traces import SpanSink
from crucible.seal import KeyRing
from crucible.search.optuna_search import OptunaSampler
from crucible.sellers import open_providers
from crucible.server_options import server_options, settings_from
from crucible.settings import Settings, allowed_hosts, policy_of, smtp_settings
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.system import SystemClock, SystemIds, SystemRandom

# Nor is it ever looked at again: a look at all of it would hold up every request for a tenth of a second.
gc.freeze()
# What a thousand agents and a thousand readers hold lives long: a look at all of it takes a third of a second, in which
# nobody is answered. With the usual figures there is one every few seconds; most garbage goes without any.
gc.set_threshold(20_000, 20, 20)
gc.enable()

log = logging.getLogger("crucible")

ADMIN = UserId("admin")
TRACE_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

Examination = Callable[[], Awaitable[Mapping[str, Any]]]


# --- the command -----------------------------------------------------------------------------------


@click.command("server", context_settings={"auto_envvar_prefix": "CRUCIBLE"})
@server_options
def server_command(log_format: str, **given: Any) -> None:
    """Run a Crucible server in the foreground.

    \b
    crucible server                          on this machine, SQLite
    crucible server --local-gpus 8           try GPU jobs on a machine without GPUs
    crucible server --provider local,aws     buy machines in AWS too: `crucible doctor aws` says what is missing
    crucible server --database postgresql://… --host 0.0.0.0 --public-url https://crucible.example
    """
    logs.to_stderr(JsonFormatter() if log_format == "json" else None)
    for talkative in ("botocore", "asyncssh"):  # they tell of every client they make, every command they send
        logging.getLogger(talkative).setLevel(logging.WARNING)
    settings = settings_from(**given)
    try:
        run(settings)
    except PlatformError as error:
        click.echo(f"error: {error.message}", err=True)
        sys.exit(1)
    except OSError as error:
        where = error.filename or settings.data_dir
        click.echo(f"error: cannot use {where}: {error.strerror or error}; check disk space and rights", err=True)
        sys.exit(1)


def run(settings: Settings) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_server(settings))


async def run_server(settings: Settings) -> None:
    """Until SIGTERM or SIGINT; a second signal, like kill -9, is equally safe."""
    stopping = asyncio.Event()
    forbid_core()  # it would hold keys and secrets
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    prepare(settings.data_dir)
    with listening(settings) as listener:
        port = listener.getsockname()[1]
        url = settings.public_url or f"http://{settings.host}:{port}"
        async with engine_of(settings, url) as (engine, deps):
            await nothing_left_behind(deps.store, engine.context.enabled)
            await engine.secret_keys.settle()
            await engine.start()
            staying = asyncio.create_task(stay_published(settings, deps.store, url, port))
            await serve(create_app(deps), listener, stopping, on_ready=lambda: publish(settings.data_dir, url, port))
            staying.cancel()
            unpublish(settings.data_dir)


# --- putting it together ------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def engine_of(settings: Settings, url: str) -> AsyncIterator[tuple[Engine, Deps]]:
    """Everything between the database and the routes, stopped in the reverse order."""
    data, clock = settings.data_dir, SystemClock()
    keys, hub = Keys(secret_key(data)), Hub(clock)
    door = FileDoor(url, keys.address, keys.right_of, clock.now)
    storage = object_storage(settings, door)
    failpoint = Failpoints(os.environ.get("CRUCIBLE_FAILPOINTS", ""))
    counted = CommitMeter(PrometheusMeter())
    store = await open_store(settings.database_url, failpoint=failpoint, watch=counted)
    streams = FileStreams(data / "streams", add_segment=store.add_segment, segments=store.segments)
    blobs = FileBlobs(data / "packages")
    agents, agent_sha256 = await agents_elsewhere(data)
    around = replace(surroundings(settings, url, keys.deployment, clock), hosts=store)
    providers = open_providers(settings.providers, around)
    sellers = {
        (seller.name, seller.region): metered(seller, counted.meter, clock)
        for one in providers.values()
        for seller in one.sellers
    }
    context = Context(
        store=store,
        streams=streams,
        sellers=sellers,
        clock=clock,
        ids=SystemIds(),
        random=SystemRandom(),
        keys=keys,
        hub=hub,
        wakes=Wakes(),
        policy=policy_of(settings),
        server_id=f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}",
        url=url,
        agent_sha256=agent_sha256,
        checkpoint_root=(data / "checkpoints").as_uri(),
        storage=storage,
        storage_root=settings.storage_root,
        region_storage=settings.region_storage,
        failpoint=failpoint,
        sampler=OptunaSampler(),
        counted=counted,
        sealer=await sealer_of(data, store),
        spans=span_sink(os.environ),
        claim_ttl=settings.claim_ttl,
        keep_days=keep_days_of(settings.retention),
    )
    lab = lab_door(settings, os.environ)
    told = [price_list for one in providers.values() for price_list in one.prices]
    price_files = [PriceFile(path, clock.now) for path in dict.fromkeys(settings.price_files)]
    engine = Engine(
        context, blobs, Shipped(), [*price_files, *told], shipped_templates(), outlets(settings, keys.deployment)
    )
    await first_admin(store, clock, data)
    deps = Deps(
        store=store,
        streams=streams,
        blobs=blobs,
        agents=agents,
        service=engine.service,
        people=engine.people,
        teams=engine.teams,
        audits=engine.audits,
        sign_in=SignIn(context, *opened_identity(os.environ, clock.now)),
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
        hub=hub,
        clock=clock,
        settings=ApiSettings(
            version=__version__,
            allowed_hosts=allowed_hosts(settings),
            providers=tuple(sorted(context.providers)),
            is_https=url.startswith("https://"),
            page=Path(__file__).parent / "web",
            label=settings.label,
            rate_limits=settings.rate_limits,
        ),
        signed=door.opened,
        prices=engine.prices,
        table=engine.planner.table,
        recommender=engine.recommender,
        costs=engine.costs,
        savings=engine.savings,
        enabled=context.providers,
        enabled_places=context.enabled,
        healths=examined(providers),
        alerts=engine.alerts,
        hosts=next((one.hosts for one in providers.values() if one.hosts is not None), None),
        hosts_changed=engine.look_for_room,
        lab=lab,
    )
    try:
        yield engine, deps
    finally:
        await engine.stop()
        for one in providers.values():
            if one.close is not None:
                await one.close()
        if lab is not None:
            await lab.close()
        if context.spans is not None:
            await context.spans.close()
        await streams.close()
        await store.close()


async def sealer_of(data: Path, store: Store) -> KeyRing:
    """Raises SecretsKeyMissing: a server that could not open what is sealed does not start. The first key is made where
    nothing is sealed yet."""
    given = os.environ.get("CRUCIBLE_SECRETS_KEY_FILE")
    path, needed = Path(given) if given else data / "secrets-keys", sorted(await store.secret_keys())
    if needed and not path.exists():
        raise keys_missing(f"there is no {path}", needed)
    ring = KeyRing(path) if path.exists() else KeyRing.made_in(path)
    lacking = [key_id for key_id in needed if not ring.knows(key_id)]
    if lacking:
        raise keys_missing(f"{path} lacks them", lacking)
    return ring


def keys_missing(problem: str, keys: Sequence[str]) -> SecretsKeyMissing:
    return SecretsKeyMissing(
        f"secrets of this database are sealed with keys that this server does not have ({', '.join(keys)}): {problem}. "
        "Give it the file that they were set with, as secrets-keys in the data folder or by CRUCIBLE_SECRETS_KEY_FILE"
    )


async def nothing_left_behind(store: Store, enabled: Collection[str]) -> None:
    """Machines can only be given back where they were bought: a server that cannot reach them does not start."""
    left = [
        f"{provider} {region}"
        for provider, region in await store.open_places()
        if f"{provider}/{region}" not in enabled
    ]
    if left:
        raise Conflict(
            f"machines are held or being bought in {', '.join(left)}, which this server is not to use: enable it "
            "(--provider, CRUCIBLE_AWS_REGIONS) until they are given back; cancel their jobs to give them back now"
        )


def shipped_templates() -> Mapping[str, ShippedTemplate]:
    return {name: ShippedTemplate(templates.text(name), partial(template_package, name)) for name in templates.names()}


@cache
def template_package(name: str) -> tuple[Digest, bytes]:
    """What a client would send of its folder: a job that names the template brings no code itself."""
    with pack(templates.folder(name)) as package:
        return package.digest, package.path.read_bytes()


def object_storage(settings: Settings, door: FileDoor) -> ObjectStorage:
    """Raises InvalidRequest or StorageRefused: a place that can never work is better told now. Nobody is asked yet."""
    root = settings.storage_root
    regions = tuple(settings.region_storage.values())
    storage = ObjectStorage(door, os.environ, endpoints=settings.storage_endpoints, own=root, regions=regions)
    for address in (root, *regions):
        storage.open(address)
    return storage


def outlets(settings: Settings, deployment: str) -> Outlets:
    """Raises InvalidRequest."""
    notifiers = open_notifiers(
        smtp=smtp_settings(settings),
        endpoints=settings.alert_endpoints,
        deployment=deployment,
        now=SystemClock().now,
    )
    return Outlets(notifiers)


def surroundings(settings: Settings, url: str, deployment: str, clock: SystemClock) -> Surroundings:
    data = settings.data_dir
    return Surroundings(
        deployment=deployment,
        url=url,
        data_dir=data,
        agent=agent_file(data),
        server_file=data / "server.json",
        now=clock.now,
        environ=os.environ,
        options={"local_gpus": settings.local_gpus, "local_gpu_memory": settings.local_gpu_memory},
    )


def lab_door(settings: Settings, environ: Mapping[str, str]) -> LabDoor | None:
    """Whoever buys at another address of this computer than Amazon's may buy in a Lab: it is looked for when asked."""
    url = environ.get("AWS_ENDPOINT_URL_EC2") or environ.get("AWS_ENDPOINT_URL")
    if "aws" not in settings.providers or not url or not is_loopback(url):
        return None
    from crucible.lab.door import LocalDoor

    return LocalDoor(environ, url)


def span_sink(environ: Mapping[str, str]) -> SpanSink | None:
    """Where traces go, if OpenTelemetry's own variables say where. A server without the library runs without traces:
    such variables are often set for everything in a place."""
    if not any(environ.get(name) for name in TRACE_ENDPOINTS):
        return None
    try:
        from crucible.exporting.otlp import OtlpSink
    except InvalidRequest as error:
        log.warning("%s", error.message)
        return None
    return OtlpSink(__version__)


def examined(providers: Mapping[str, Provider]) -> dict[str, list[Examination]]:
    """For `crucible doctor`: of every provider what can be asked how it is."""
    return {
        name: [seller.health for seller in provider.sellers if isinstance(seller, Examines)]
        for name, provider in providers.items()
    }


class Shipped:
    """What comes with the package, read when it is first asked for: a server is ready before, and the first plan pays
    a tenth of a second."""

    @cached_property
    def _catalog(self) -> catalog.Catalog:
        return catalog.load()

    @property
    def table(self) -> OfferTable:
        return self._catalog.table

    @cached_property
    def book(self) -> SpeedBook:
        return make_book(benchmarks(), self._catalog.gpus.values(), architectures().values())


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """Bound before anything starts, so that agents can be told the address. The last port is taken again if it is free:
    agents that survived the server look for it there first."""
    ports = [settings.port] if settings.port else [last_port(settings.data_dir), 0]
    for port in ports:
        listener = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, port))
        except OSError as error:
            listener.close()
            if port == ports[-1]:
                raise InvalidRequest(f"cannot listen on {settings.host}:{port}: {error.strerror}") from error
            continue
        with listener:
            yield listener
        return


async def agents_elsewhere(data: Path) -> tuple[FileBlobs, Digest]:
    """The agents that machines in clouds fetch, and the digest of this server's own. Those of earlier versions stay:
    machines may have been ordered with them."""
    agents, content = FileBlobs(data / "agents"), bundle.portable()
    digest = Digest(hashlib.sha256(content).hexdigest())
    if not await agents.has(digest):
        await agents.put(digest, whole(content), len(content))
    return agents, digest


async def whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def first_admin(store: Store, clock: SystemClock, data: Path) -> None:
    """The first start makes an admin and its token, readable by the owner of the data folder only."""
    if await store.tokens():
        return
    now, secret = clock.now(), f"cru_{secrets.token_urlsafe(24)}"
    with contextlib.suppress(Conflict):  # a start that was killed here, or another server's first start, made it
        await store.add_user(User(id=ADMIN, name="admin", role=Role.ADMIN, created_at=now))
    token = Token(
        id=TokenId(SystemIds().new("token")),
        user_id=ADMIN,
        name="first start",
        digest=digest_of(secret),
        created_at=now,
    )
    write_private(data / "admin-token", secret)
    await store.add_token(token)


async def stay_published(settings: Settings, store: Store, url: str, port: int) -> None:
    """Of several servers that share the folder one is named there. When that one is dead or stands still, another takes
    its place: an agent that knows no other server finds it there."""
    while True:
        await asyncio.sleep(settings.claim_ttl.total_seconds())
        try:
            if published(settings.data_dir).get("url") not in await store.servers():
                publish(settings.data_dir, url, port)
        except (PlatformError, OSError) as error:
            log.warning("cannot see to it that %s names a live server: %s", settings.data_dir / "server.json", error)


@click.group()
def main() -> None:
    """Server-side commands."""


main.add_command(server_command)

if __name__ == "__main__":
    main()
