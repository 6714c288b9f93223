"""S3, as SeaweedFS speaks it: the contract, and what goes wrong with buckets, credentials and endpoints."""

import asyncio
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crucible.blobs.file_door import FileDoor
from crucible.blobs.storage import ObjectStorage
from crucible.engine.keys import Keys
from crucible.model.errors import StorageFailed, StorageRefused
from crucible.model.storage import Address, Scheme, parse
from crucible.testing.objects_contract import HOUR, ObjectsContract, keys, pieces
from storage_engines import StorageEngine, free_ports

DOOR = FileDoor("http://127.0.0.1:1", Keys(b"secret").address, Keys(b"secret").right_of, lambda: datetime.now(UTC))


@pytest.fixture
def root(seaweedfs: StorageEngine) -> Address:
    return Address(Scheme.S3, "", seaweedfs.bucket, f"te st/{secrets.token_hex(8)}")


class TestS3(ObjectsContract):
    @pytest.fixture
    def storage(self, seaweedfs: StorageEngine, root: Address) -> ObjectStorage:
        return ObjectStorage(DOOR, seaweedfs.environ, own=root)

    async def test_pages_of_a_listing_join_without_a_gap(self, storage: ObjectStorage, root: Address) -> None:
        objects = storage.open(root)
        names = [f"k{number:04}" for number in range(1010)]
        for start in range(0, len(names), 50):
            await asyncio.gather(*(objects.put(name, b"") for name in names[start : start + 50]))
        assert await keys(objects) == names
        assert await keys(objects, after="k1003") == names[1004:]
        await objects.delete(names)
        assert await keys(objects) == []


class TestMinio(ObjectsContract):
    """The same protocol, named by its host; on the loop that a server runs on."""

    @pytest.fixture
    def anyio_backend(self) -> Any:
        return "asyncio", {"use_uvloop": True}

    @pytest.fixture
    def root(self, seaweedfs: StorageEngine) -> Address:
        host = seaweedfs.endpoint.removeprefix("http://")
        return Address(Scheme.MINIO, host, seaweedfs.bucket, secrets.token_hex(8))

    @pytest.fixture
    def storage(self, seaweedfs: StorageEngine) -> ObjectStorage:
        environ = {"MINIO_ACCESS_KEY": "crucible", "MINIO_SECRET_KEY": "secret-of-the-test"}
        return ObjectStorage(DOOR, environ, endpoints=[seaweedfs.endpoint])


class TestTrouble:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def refused(self, engine: StorageEngine, root: Address, words: str, **environ: str) -> None:
        """Every verb says so, and none of them shows the secret."""
        objects = ObjectStorage(DOOR, engine.environ | environ, own=root).open(root)
        for call in (
            objects.put("k", b"x"),
            objects.put_stream("k", pieces(b"x")),
            keys(objects),
            objects.delete(["k"]),
        ):
            with pytest.raises(StorageRefused, match=words) as caught:
                await call
            assert root.uri in caught.value.message
            assert "secret" not in caught.value.message and "Signature=" not in caught.value.message

    async def test_a_bucket_that_is_not_there(self, seaweedfs: StorageEngine) -> None:
        await self.refused(seaweedfs, parse("s3://no-such-bucket/x"), "there is no bucket no-such-bucket")

    async def test_a_secret_that_is_wrong(self, seaweedfs: StorageEngine, root: Address) -> None:
        words = r"refuses this server's credentials \(SignatureDoesNotMatch\)"
        await self.refused(seaweedfs, root, words, AWS_SECRET_ACCESS_KEY="wrong-secret")

    async def test_a_key_that_nobody_has(self, seaweedfs: StorageEngine, root: Address) -> None:
        await self.refused(seaweedfs, root, r"credentials \(InvalidAccessKeyId\)", AWS_ACCESS_KEY_ID="nobody")

    async def test_a_reader_cannot_write_and_nothing_is_half_there(
        self, seaweedfs: StorageEngine, root: Address
    ) -> None:
        environ = seaweedfs.environ | {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "reader-secret"}
        objects = ObjectStorage(DOOR, environ, own=root).open(root)
        for body in (b"x", b"x" * (17 << 20)):
            with pytest.raises(StorageRefused, match="AccessDenied"):
                await objects.put_stream("k", pieces(body))
        assert await keys(objects) == []

    async def test_an_endpoint_where_nobody_answers(self, seaweedfs: StorageEngine, root: Address) -> None:
        (port,) = free_ports(1)
        environ = seaweedfs.environ | {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}"}
        objects = ObjectStorage(DOOR, environ, own=root).open(root)
        for call in (objects.put("k", b"x"), objects.get("k"), objects.head("k")):
            with pytest.raises(StorageFailed, match="cannot be reached"):
                await asyncio.wait_for(call, 30)

    async def test_without_credentials_it_says_which_to_set(
        self, seaweedfs: StorageEngine, root: Address, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            monkeypatch.setenv(name, str(tmp_path / "none"))
        environ = {"AWS_ENDPOINT_URL": seaweedfs.endpoint}
        objects = ObjectStorage(DOOR, environ, own=root).open(root)
        with pytest.raises(StorageRefused, match="set AWS_ACCESS_KEY_ID"):
            await objects.get("k")

    async def test_a_profile_is_found_as_boto3_finds_it(
        self, seaweedfs: StorageEngine, root: Address, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        profile = "[lab]\naws_access_key_id = crucible\naws_secret_access_key = secret-of-the-test\n"
        (tmp_path / "credentials").write_text(profile)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
        monkeypatch.setenv("AWS_PROFILE", "lab")
        objects = ObjectStorage(DOOR, {"AWS_ENDPOINT_URL": seaweedfs.endpoint}, own=root).open(root)
        await objects.put("k", b"x")
        assert await objects.get("k") == b"x"
        assert len(await objects.sign("GET", ["k"], HOUR)) == 1
