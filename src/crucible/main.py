"""The composition root, the only place that knows every adapter. `python -m crucible.main server` runs a server."""

import asyncio
import contextlib
import gc
import hashlib
import logging
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# Imports make a hundred thousand objects, and none of them is garbage: looking for it is a sixth of the start.
gc.disable()

import click
import uvloop

from crucible import __version__, catalog, templates
from crucible.agent import bundle
from crucible.api.app import ApiSettings, Deps, create_app
from crucible.api.serve import serve
from crucible.blobs.file_door import FileDoor
from crucible.blobs.files import FileBlobs
from crucible.blobs.storage import ObjectStorage
from crucible.catalog.benchmarks import architectures, benchmarks
from crucible.catalog.price_file import PriceFile
from crucible.client.package import pack
from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook, make_book
from crucible.engine.context import CLAIM_TTL, Context
from crucible.engine.engine import Engine
from crucible.engine.failpoints import Failpoints
from crucible.engine.hub import Hub
from crucible.engine.keys import Keys
from crucible.engine.service import digest_of
from crucible.engine.wakes import Wakes
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
from crucible.model.dataset import PLACE
from crucible.model.errors import Conflict, InvalidRequest, PlatformError
from crucible.model.ids import Digest, TokenId, UserId
from crucible.model.policy import Policy
from crucible.model.record import Role, Token, User
from crucible.model.storage import Address, parse
from crucible.model.units import GIB
from crucible.ports.provider import Provider, Surroundings
from crucible.ports.seller import Examines
from crucible.ports.store import Store
from crucible.ports.templates import ShippedTemplate
from crucible.search.optuna_search import OptunaSampler
from crucible.sellers import open_providers
from crucible.store import open_store
from crucible.streams.files import FileStreams
from crucible.system import SystemClock, SystemIds, SystemRandom

gc.enable()

log = logging.getLogger("crucible")

ADMIN = UserId("admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    data_dir: Path
    host: str = "127.0.0.1"
    port: int = 0
    database: str | None = None
    public_url: str | None = None
    local_gpus: int | None = None
    local_gpu_memory: float = 80.0
    allowed_hosts: tuple[str, ...] = ()
    price_files: tuple[Path, ...] = ()
    providers: tuple[str, ...] = ("local",)
    storage: str | None = None
    storage_endpoints: tuple[str, ...] = ()
    region_storages: tuple[str, ...] = ()
    max_output_gib: float = Policy().output_bytes / GIB
    claim_ttl: timedelta = CLAIM_TTL
    silence: timedelta = Policy().silence

    @property
    def storage_root(self) -> Address:
        """Raises InvalidRequest."""
        return parse(self.storage or (self.data_dir / "objects").as_uri())

    @property
    def region_storage(self) -> Mapping[str, Address]:
        """Raises InvalidRequest."""
        found = {}
        for text in self.region_storages:
            place, _, uri = text.partition("=")
            if not re.fullmatch(PLACE, place):
                raise InvalidRequest(f"{text} names no region; write --region-storage aws/us-east-1=s3://bucket/prefix")
            found[place] = parse(uri)
        return found

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.data_dir / 'crucible.db'}"


Examination = Callable[[], Awaitable[Mapping[str, Any]]]


def named(context: click.Context, option: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(word.strip() for word in value.split(",") if word.strip())
    if not names:
        raise click.BadParameter("name at least one provider: local, onprem, slurm, aws")
    return names


# --- the command -----------------------------------------------------------------------------------


@click.command("server", context_settings={"auto_envvar_prefix": "CRUCIBLE"})
@click.option(
    "--data-dir",
    envvar="CRUCIBLE_HOME",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path.home() / ".crucible",
    show_default="~/.crucible",
    help="Database, logs, code, checkpoints and machines of the embedded default.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, help="0 takes the port used last time, or a free one.", show_default=True)
@click.option("--database", help="postgresql://… for several servers; default: SQLite in the data folder.")
@click.option("--public-url", help="Where agents and people reach this server, if not at host:port.")
@click.option("--local-gpus", type=click.IntRange(0, 64), help="Declare so many GPU slots on this machine.")
@click.option("--local-gpu-memory", type=float, default=80.0, show_default=True, help="GB of each declared slot.")
@click.option("--allowed-host", "allowed_hosts", multiple=True, help="Host names that requests may use.")
@click.option(
    "--price-file",
    "price_files",
    envvar="CRUCIBLE_PRICE_FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="A list of your own prices (CSV); may be given again. They go before those of providers.",
)
@click.option(
    "--provider",
    "providers",
    envvar="CRUCIBLE_PROVIDERS",
    callback=named,
    metavar="NAMES",
    default="local",
    show_default=True,
    help="Where machines may be bought, with commas: local,onprem,slurm,aws.",
)
@click.option(
    "--storage",
    metavar="URI",
    help="Where checkpoints go that machines cannot keep: s3://, gs://, az://, minio://, file:///.",
    show_default="the data folder",
)
@click.option(
    "--storage-endpoint",
    "storage_endpoints",
    envvar="CRUCIBLE_STORAGE_ENDPOINTS",
    metavar="URL",
    multiple=True,
    help="Object storage in a private network that jobs may name, as https://host:port; may be given again.",
)
@click.option(
    "--region-storage",
    "region_storages",
    envvar="CRUCIBLE_REGION_STORAGE",
    metavar="PLACE=URI",
    multiple=True,
    help="Where copies of datasets go for the machines of a region: aws/us-east-1=s3://bucket; may be given again.",
)
@click.option(
    "--max-output",
    "max_output_gib",
    envvar="CRUCIBLE_MAX_OUTPUT",
    type=click.FloatRange(0, 1 << 20),
    default=Policy().output_bytes / GIB,
    metavar="GIB",
    show_default=True,
    help="What one task may leave in $CRUCIBLE_OUTPUT; a task that leaves more has failed.",
)
@click.option("--claim-ttl", type=click.FloatRange(1, 600), default=CLAIM_TTL.total_seconds(), hidden=True)
@click.option("--silence", type=click.FloatRange(1, 600), default=Policy().silence.total_seconds(), hidden=True)
def server_command(
    data_dir: Path,
    host: str,
    port: int,
    database: str | None,
    public_url: str | None,
    local_gpus: int | None,
    local_gpu_memory: float,
    allowed_hosts: tuple[str, ...],
    price_files: tuple[Path, ...],
    providers: tuple[str, ...],
    storage: str | None,
    storage_endpoints: tuple[str, ...],
    region_storages: tuple[str, ...],
    max_output_gib: float,
    claim_ttl: float,
    silence: float,
) -> None:
    """Run a Crucible server in the foreground.

    \b
    crucible server                          on this machine, SQLite
    crucible server --local-gpus 8           try GPU jobs on a machine without GPUs
    crucible server --provider local,aws     buy machines in AWS too: `crucible doctor aws` says what is missing
    crucible server --database postgresql://… --host 0.0.0.0 --public-url https://crucible.example
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for talkative in ("botocore", "asyncssh"):  # they tell of every client they make, every command they send
        logging.getLogger(talkative).setLevel(logging.WARNING)
    settings = Settings(
        data_dir=data_dir.absolute(),
        host=host,
        port=port,
        database=database,
        public_url=public_url,
        local_gpus=local_gpus,
        local_gpu_memory=local_gpu_memory,
        allowed_hosts=allowed_hosts,
        price_files=price_files,
        providers=providers,
        storage=storage,
        storage_endpoints=storage_endpoints,
        region_storages=region_storages,
        max_output_gib=max_output_gib,
        claim_ttl=timedelta(seconds=claim_ttl),
        silence=timedelta(seconds=silence),
    )
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
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)
    prepare(settings.data_dir)
    with listening(settings) as listener:
        port = listener.getsockname()[1]
        url = settings.public_url or f"http://{settings.host}:{port}"
        async with engine_of(settings, url) as (engine, deps):
            await nothing_left_behind(deps.store, engine.context.enabled)
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
    store = await open_store(settings.database_url, failpoint=failpoint)
    streams = FileStreams(data / "streams", add_segment=store.add_segment, segments=store.segments)
    blobs = FileBlobs(data / "packages")
    agents, agent_sha256 = await agents_elsewhere(data)
    around = replace(surroundings(settings, url, keys.deployment, clock), hosts=store)
    providers = open_providers(settings.providers, around)
    sellers = {(seller.name, seller.region): seller for one in providers.values() for seller in one.sellers}
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
        claim_ttl=settings.claim_ttl,
    )
    told = [price_list for one in providers.values() for price_list in one.prices]
    price_files = [PriceFile(path, clock.now) for path in dict.fromkeys(settings.price_files)]
    engine = Engine(context, blobs, Shipped(), [*price_files, *told], shipped_templates())
    await first_admin(store, clock, data)
    deps = Deps(
        store=store,
        streams=streams,
        blobs=blobs,
        agents=agents,
        service=engine.service,
        gateway=engine.gateway,
        channels=engine.channels,
        checkpoints=engine.checkpoint_desk,
        datasets=engine.datasets,
        templates=engine.templates,
        trials=engine.trials,
        outputs=engine.outputs,
        shards=engine.shards,
        shard_outputs=engine.shard_outputs,
        hub=hub,
        clock=clock,
        settings=ApiSettings(
            version=__version__, allowed_hosts=allowed_hosts(settings), providers=tuple(sorted(context.providers))
        ),
        signed=door.opened,
        prices=engine.prices,
        table=engine.planner.table,
        recommender=engine.recommender,
        enabled=context.providers,
        enabled_places=context.enabled,
        healths=examined(providers),
        hosts=next((one.hosts for one in providers.values() if one.hosts is not None), None),
        hosts_changed=engine.look_for_room,
    )
    try:
        yield engine, deps
    finally:
        await engine.stop()
        for one in providers.values():
            if one.close is not None:
                await one.close()
        await streams.close()
        await store.close()


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


def policy_of(settings: Settings) -> Policy:
    """Nodes report ten times before their silence means anything."""
    usual = Policy()
    margin = usual.fence_margin * (settings.silence / usual.silence)
    return Policy(
        silence=settings.silence,
        report_every=settings.silence / 10,
        fence_margin=margin,
        output_bytes=round(settings.max_output_gib * GIB),
    )


def object_storage(settings: Settings, door: FileDoor) -> ObjectStorage:
    """Raises InvalidRequest or StorageRefused: a place that can never work is better told now. Nobody is asked yet."""
    root = settings.storage_root
    regions = tuple(settings.region_storage.values())
    storage = ObjectStorage(door, os.environ, endpoints=settings.storage_endpoints, own=root, regions=regions)
    for address in (root, *regions):
        storage.open(address)
    return storage


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


def allowed_hosts(settings: Settings) -> tuple[str, ...]:
    """Names a request may carry: what the operator lists, and the one this server is known by."""
    own = urlsplit(settings.public_url or "").hostname
    return (*settings.allowed_hosts, own) if own else settings.allowed_hosts


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
