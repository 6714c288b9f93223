"""Opening a place asks nobody, and refuses what can never work."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crucible.blobs.file_door import FileDoor
from crucible.blobs.storage import ObjectStorage
from crucible.engine.keys import Keys
from crucible.model.errors import InvalidRequest, StorageRefused
from crucible.model.storage import parse

DOOR = FileDoor("http://127.0.0.1:1", Keys(b"secret").address, Keys(b"secret").right_of, lambda: datetime.now(UTC))
LOOPBACK = "http://127.0.0.1:9000"


@pytest.mark.parametrize(
    ("uri", "environ", "words"),
    [
        ("gs://bucket", {"HOME": "/nowhere"}, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("gs://bucket", {"GOOGLE_APPLICATION_CREDENTIALS": "/no/key.json"}, "/no/key.json is not there"),
        ("az://container", {}, "AZURE_STORAGE_ACCOUNT_NAME"),
        ("minio://127.0.0.1:9000/bucket", {}, f"--storage-endpoint {LOOPBACK}"),
        ("minio://minio.example/bucket", {}, "--storage-endpoint https://minio.example"),
        ("s3://bucket", {"AWS_ENDPOINT_URL": LOOPBACK}, f"--storage-endpoint {LOOPBACK}"),
        ("s3://bucket", {"AWS_ENDPOINT_URL_S3": "https://169.254.169.254"}, "private network"),
        ("gs://bucket", {"CRUCIBLE_GCS_ENDPOINT": LOOPBACK}, f"--storage-endpoint {LOOPBACK}"),
        ("az://container", {"AZURE_STORAGE_ENDPOINT": f"{LOOPBACK}/account"}, f"--storage-endpoint {LOOPBACK}"),
    ],
)
def test_a_place_that_can_never_work_is_refused_when_it_is_opened(
    uri: str, environ: dict[str, str], words: str
) -> None:
    with pytest.raises(StorageRefused, match=words):
        ObjectStorage(DOOR, environ).open(parse(uri))


def test_what_the_operator_lists_may_be_opened() -> None:
    environ = {"MINIO_ACCESS_KEY": "a", "MINIO_SECRET_KEY": "b", "AWS_ENDPOINT_URL": LOOPBACK}
    storage = ObjectStorage(DOOR, environ, endpoints=[LOOPBACK])
    for uri in ("minio://127.0.0.1:9000/bucket/x", "s3://bucket/x"):
        assert storage.open(parse(uri)).address.uri == uri


def test_the_place_of_the_server_itself_counts_as_listed() -> None:
    environ = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL": LOOPBACK}
    own = parse("minio://127.0.0.1:9000/bucket/x")
    assert ObjectStorage(DOOR, environ, own=own).open(own).address == own
    with pytest.raises(StorageRefused, match=r"127\.0\.0\.1:9001"):
        ObjectStorage(DOOR, environ, own=own).open(parse("minio://127.0.0.1:9001/bucket/x"))


def test_what_is_listed_says_whether_the_servers_own_place_has_a_certificate() -> None:
    own = parse("minio://minio.internal:9000/bucket")
    environ = {"MINIO_ACCESS_KEY": "a", "MINIO_SECRET_KEY": "b"}
    for listed, expected in (([], "https"), (["http://minio.internal:9000"], "http")):
        endpoints = ObjectStorage(DOOR, environ, endpoints=listed, own=own).endpoints
        assert endpoints.of_host(own.host) == f"{expected}://minio.internal:9000"


def test_minio_needs_credentials() -> None:
    with pytest.raises(StorageRefused, match="MINIO_ACCESS_KEY"):
        ObjectStorage(DOOR, {}, endpoints=[LOOPBACK]).open(parse("minio://127.0.0.1:9000/bucket"))


def test_a_key_file_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text("no json")
    with pytest.raises(StorageRefused, match=r"key\.json is no key file"):
        ObjectStorage(DOOR, {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}).open(parse("gs://bucket"))


def test_an_endpoint_that_is_none_is_said_at_once() -> None:
    with pytest.raises(InvalidRequest, match="write https://host:port"):
        ObjectStorage(DOOR, {}, endpoints=["minio:9000"])


def test_a_server_that_uses_no_cloud_does_not_load_its_library() -> None:
    program = "import sys, crucible.main; sys.exit('obstore' in sys.modules or 'boto3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
