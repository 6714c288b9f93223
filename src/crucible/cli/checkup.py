"""The checks of `crucible doctor`. Each looks at one thing and says what it saw; none of them may fail itself."""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from crucible import __version__
from crucible.cli.advice import advice
from crucible.cli.wording import plural, size
from crucible.client import config
from crucible.client.api import Client
from crucible.client.embedded import Embedded, check_installed
from crucible.client.endpoint import Endpoint
from crucible.client.transport import Transport
from crucible.model.errors import NotFound, PlatformError

# What the server reads where its database is from.
DATABASE = "CRUCIBLE_DATABASE"

OK, WARNING, BAD = "ok", "warning", "bad"

# Logs, packages and checkpoints of a few small jobs; below this the next one fails.
LEAST_FREE_BYTES = 1 << 30
ANSWER_TIMEOUT_S = 10.0
# nvidia-smi hangs on a sick driver.
GPU_TIMEOUT_S = 10.0


class Check(NamedTuple):
    name: str
    state: str
    said: str
    fix: str = ""


def checkup(environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    yield Check("python", OK, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Check("client", OK, f"crucible {__version__}")
    try:
        endpoint = config.resolve(environ)
    except PlatformError as error:
        yield Check("configuration", BAD, error.message, advice(error))
        return
    if endpoint is not None:
        yield Check("configuration", OK, f"{endpoint.url} from {endpoint.source}")
        yield from check_server(endpoint)
        return
    local = config.embedded(environ)
    yield Check("configuration", OK, f"the local server in {local.home}")
    yield from _local(local)
    if url := environ.get(DATABASE):
        yield check_database(url)


def check_server(endpoint: Endpoint) -> Iterator[Check]:
    transport = Transport(endpoint, timeout_s=ANSWER_TIMEOUT_S)
    began = time.monotonic()
    try:
        readiness = transport.probe("/readyz", ANSWER_TIMEOUT_S)
    except PlatformError as error:
        yield Check("server", BAD, error.message, advice(error))
        return
    took = f"answers in {1000 * (time.monotonic() - began):.0f} ms"
    if readiness != 200:
        yield Check("server", BAD, f"{took}, but is not ready (HTTP {readiness})", "its log says why")
    else:
        yield Check("server", OK, took)
    with Client(transport) as client:
        yield from _as_known_to(client)


def _as_known_to(client: Client) -> Iterator[Check]:
    """What the server tells only those with a token."""
    try:
        me, facts = client.me(), client.version()
    except PlatformError as error:
        yield Check("token", BAD, error.message, advice(error))
        return
    yield Check("token", OK, f"{me.get('name') or me.get('user_id')} ({me.get('role')})")
    said = str(facts.get("version"))
    if said != __version__:
        yield Check("version", WARNING, f"server {said}, client {__version__}", "install the same version of both")
    yield from check_prices(client)
    yield from check_system(client)


def check_system(client: Client) -> Iterator[Check]:
    """What is not all right with the server's own parts; prices have been told already."""
    try:
        told = client.health()
    except NotFound:
        return
    except PlatformError as error:
        yield Check("system", WARNING, error.message, advice(error))
        return
    if "system" not in told:  # an older server says nothing of it
        return
    wrong = [one for one in told["system"]["checks"] if one["status"] in ("warning", "critical")]
    for one in wrong:
        if one["name"] != "prices":
            state = BAD if one["status"] == "critical" else WARNING
            yield Check(f"{one['name']} {one['subject']}".strip(), state, one["words"], one["advice"])
    if not wrong:
        yield Check("system", OK, "providers, loops, queues, ledger and database are all right")


def check_prices(client: Client) -> Iterator[Check]:
    try:
        sources = client.price_sources()["items"]
    except NotFound:  # an older server has none
        return
    except PlatformError as error:
        yield Check("prices", WARNING, error.message, advice(error))
        return
    if not sources:
        yield Check("prices", OK, "those of the shipped catalog; no source is configured")
    for source in sources:
        if source["error"]:
            said = f"{source['name']}: {source['error']}"
            yield Check("prices", WARNING, said, "mend that, then crucible prices refresh")
        else:
            yield Check("prices", OK, f"{source['name']}: {plural(source['rows'], 'price')}")


def _local(local: Embedded) -> Iterator[Check]:
    try:
        check_installed()
    except PlatformError as error:
        yield Check("server", BAD, error.message)
        return
    yield check_folder(local.home)
    endpoint = local.endpoint()
    if endpoint is None:
        yield Check("server", OK, "not running; starts by itself when a command needs it")
    else:
        yield from check_server(endpoint)
    yield check_gpus()
    yield check_cgroups()


def check_folder(home: Path) -> Check:
    """Writable and roomy: the folder itself, or the nearest one above it that exists."""
    place = home
    while not place.exists() and place != place.parent:
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK) or not place.is_dir():
        return Check("data folder", BAD, f"{place} cannot be written", "set CRUCIBLE_HOME to a folder that can")
    free = shutil.disk_usage(place).free
    if free < LEAST_FREE_BYTES:
        return Check("data folder", BAD, f"{place} has {size(free)} left", "free space, or set CRUCIBLE_HOME")
    return Check("data folder", OK, f"{home}, {size(free)} free")


def check_database(url: str) -> Check:
    """Whether it lets us in. The address is shown without its password."""
    if not url.startswith(("postgresql://", "postgres://")):
        return Check("database", OK, "a file")
    where = urlsplit(url).hostname or "a local socket"
    try:
        import psycopg
    except ImportError:
        return Check("database", BAD, "the driver of PostgreSQL is missing", "pip install 'crucible[postgres]'")
    try:
        with psycopg.connect(url, connect_timeout=int(ANSWER_TIMEOUT_S)) as connection:
            return Check("database", OK, f"PostgreSQL {connection.info.server_version // 10000} at {where}")
    except psycopg.Error as error:
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Check("database", BAD, f"PostgreSQL at {where}: {said}", f"check {DATABASE}, and that it runs")


def check_gpus() -> Check:
    without = "none found; jobs run on declared slots: crucible server --local-gpus N"
    command = shutil.which("nvidia-smi")
    if command is None:
        return Check("GPUs", OK, without)
    try:
        query = [command, "--query-gpu=name,memory.total", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=GPU_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("GPUs", WARNING, f"nvidia-smi fails: {error}", "reinstall the driver, or reboot")
    names = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return Check("GPUs", OK, f"{plural(len(names), 'GPU')}: {'; '.join(sorted(set(names)))}" if names else without)


def check_cgroups(root: Path = Path("/sys/fs/cgroup")) -> Check:
    if (root / "cgroup.controllers").exists():
        return Check("cgroups", OK, "version 2: a job can be stopped whole, whatever it forks")
    return Check("cgroups", WARNING, "version 2 is not there: a job's processes are found by their marks")
