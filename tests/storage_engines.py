"""Real object storage for tests: SeaweedFS for S3, from its wheel, and azurite for Azure, which npm brings into a cache
folder once. One of each for the session, on free ports of loopback and in its own folder."""

import base64
import fcntl
import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

START_LIMIT_S = 60.0
AZURITE = "3.37.0"
# The one account of every azurite, which its documentation names.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
BUCKET = "crucible-test"


@dataclass(frozen=True, slots=True)
class StorageEngine:
    """Where it is, and the environment of a server that may use it."""

    endpoint: str
    bucket: str
    environ: dict[str, str]


@pytest.fixture(scope="session")
def seaweedfs() -> Iterator[StorageEngine]:
    """S3 with a bucket; `reader` with the secret `reader-secret` may only read."""
    with tempfile.TemporaryDirectory(prefix="crucible-s3-", ignore_cleanup_errors=True) as folder:
        port, process = start_seaweedfs(Path(folder))
        try:
            engine = s3_engine(port)
            wait_until(lambda: make_bucket(engine), process, Path(folder))
            yield engine
        finally:
            stop(process)


@pytest.fixture(scope="session")
def azurite() -> Iterator[StorageEngine]:
    program = azurite_program()
    with tempfile.TemporaryDirectory(prefix="crucible-az-", ignore_cleanup_errors=True) as folder:
        (port,) = free_ports(1)
        options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", folder, "--silent"]
        more = ["--disableTelemetry", "--skipApiVersionCheck", "--disableProductStyleUrl"]
        process = start(["node", str(program), *options, *more], Path(folder))
        try:
            wait_until(lambda: make_container(port), process, Path(folder))
            yield azure_engine(port)
        finally:
            stop(process)


# --- SeaweedFS ----------------------------------------------------------------------------------------


def start_seaweedfs(folder: Path) -> tuple[int, subprocess.Popen[bytes]]:
    master, master_grpc, volume, volume_grpc, filer, filer_grpc, port, grpc = free_ports(8)
    people = [
        identity("crucible", "secret-of-the-test", ["Admin", "Read", "Write", "List"]),
        identity("reader", "reader-secret", ["Read", "List"]),
    ]
    (folder / "s3.json").write_text(json.dumps({"identities": people}))
    options = {
        "dir": folder,
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "master.port": master,
        "master.port.grpc": master_grpc,
        "master.volumeSizeLimitMB": 256,
        "volume.port": volume,
        "volume.port.grpc": volume_grpc,
        "filer.port": filer,
        "filer.port.grpc": filer_grpc,
        "filer.localSocket": folder / "filer.sock",
        "s3.port": port,
        "s3.port.grpc": grpc,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.localSocket": folder / "s3.sock",
        "s3.config": folder / "s3.json",
        "s3.autoCreateBucket": "false",
    }
    weed = Path(sys.executable).with_name("weed")
    return port, start([str(weed), "server", "-filer", "-s3", *(f"-{k}={v}" for k, v in options.items())], folder)


def identity(key: str, secret: str, actions: list[str]) -> dict[str, object]:
    return {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}


def s3_engine(port: int) -> StorageEngine:
    endpoint = f"http://127.0.0.1:{port}"
    environ = {
        "AWS_ACCESS_KEY_ID": "crucible",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL_S3": endpoint,
    }
    return StorageEngine(endpoint, BUCKET, environ)


def make_bucket(engine: StorageEngine) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=engine.endpoint,
        aws_access_key_id=engine.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=engine.environ["AWS_SECRET_ACCESS_KEY"],
        region_name="us-east-1",
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=10),
    )
    try:
        with suppress(client.exceptions.BucketAlreadyOwnedByYou):  # by the try before this one
            client.create_bucket(Bucket=engine.bucket)
        client.put_object(Bucket=engine.bucket, Key="ready", Body=b"")  # it takes nothing before its volumes are there
        client.delete_object(Bucket=engine.bucket, Key="ready")
    finally:
        client.close()


# --- azurite --------------------------------------------------------------------------------------------


def azurite_program() -> Path:
    """Installed once for all who share the cache; whoever comes second waits."""
    cache = Path(os.environ.get("CRUCIBLE_CACHE") or Path.home() / ".cache" / "crucible")
    folder = cache / f"azurite-{AZURITE}"
    program = folder / "node_modules/azurite/dist/src/blob/main.js"
    if not program.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "azurite.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.is_file():
                install_azurite(folder)
    return program


def install_azurite(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        if os.environ.get("CI"):
            pytest.fail("azurite needs npm: install Node.js 20 or newer")
        pytest.skip("azurite needs npm: install Node.js 20 or newer")
    beside = folder.with_name(f"{folder.name}.{os.getpid()}")
    options = ["--prefix", str(beside), "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run([npm, "install", *options, f"azurite@{AZURITE}"], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(folder, ignore_errors=True)
    beside.rename(folder)


def azure_engine(port: int) -> StorageEngine:
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    environ = {
        "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": ACCOUNT_KEY,
        "AZURE_STORAGE_ENDPOINT": endpoint,
    }
    return StorageEngine(endpoint, BUCKET, environ)


def make_container(port: int) -> None:
    """By a request of our own: the library under test cannot, and Azure's is large."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    text = f"PUT{chr(10) * 12}{signed}/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    mac = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}", "Content-Length": "0"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("PUT", f"/{ACCOUNT}/{BUCKET}?restype=container", headers=headers)
        reply = connection.getresponse()
        assert reply.status in (201, 409), reply.read()
    finally:
        connection.close()


# --- both -------------------------------------------------------------------------------------------------


def start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # its data go with it
    process.wait(30)


def wait_until(is_ready: Callable[[], None], process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        try:
            return is_ready()
        except Exception:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((folder / "log").read_text(errors="replace")[-4000:]) from None
        time.sleep(0.1)


def free_ports(count: int) -> list[int]:
    """Held all at once, so that they differ, and below those that the system itself gives out: it would give them to
    somebody else before they are bound again."""
    held: list[socket.socket] = []
    while len(held) < count:
        with suppress(OSError):
            held.append(socket.create_server(("127.0.0.1", random.randrange(20_000, 32_000))))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
