"""Google Cloud Storage, as the Lab speaks it: the contract, and what goes wrong with buckets, keys and tokens."""

import asyncio
import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crucible.blobs.file_door import FileDoor
from crucible.blobs.storage import ObjectStorage
from crucible.engine.keys import Keys
from crucible.lab.gcs import pem, rsa
from crucible.model.errors import StorageFailed, StorageRefused
from crucible.model.storage import Address, Scheme, parse
from crucible.testing.objects_contract import HOUR, ObjectsContract, keys, pieces
from lab_process import RunningLab

DOOR = FileDoor("http://127.0.0.1:1", Keys(b"secret").address, Keys(b"secret").right_of, lambda: datetime.now(UTC))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    with RunningLab(tmp_path_factory.mktemp("gcs"), regions="us-east-1") as running:
        yield running


@pytest.fixture(scope="module")
def environ(lab: RunningLab) -> dict[str, str]:
    return lab.control.storage()


@pytest.fixture
def root() -> Address:
    return Address(Scheme.GS, "", "lab-bucket", f"te st/{secrets.token_hex(8)}")


@pytest.fixture
def storage(environ: dict[str, str], root: Address) -> ObjectStorage:
    return ObjectStorage(DOOR, environ, own=root)


class TestGcs(ObjectsContract):
    async def test_pages_of_a_listing_join_without_a_gap(self, storage: ObjectStorage, root: Address) -> None:
        objects = storage.open(root)
        names = [f"k{number:04}" for number in range(1010)]
        for start in range(0, len(names), 50):
            await asyncio.gather(*(objects.put(name, b"") for name in names[start : start + 50]))
        assert await keys(objects) == names
        assert await keys(objects, after="k1003") == names[1004:]
        await objects.delete(names)
        assert await keys(objects) == []


class TestTrouble:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    async def refused(self, environ: dict[str, str], root: Address, words: str) -> None:
        """Every verb says so, and none of them shows a signature."""
        objects = ObjectStorage(DOOR, environ, own=root).open(root)
        for call in (
            objects.put("k", b"x"),
            objects.put_stream("k", pieces(b"x")),
            keys(objects),
            objects.delete(["k"]),
        ):
            with pytest.raises(StorageRefused, match=words) as caught:
                await call
            assert root.uri in caught.value.message
            assert "Bearer" not in caught.value.message and "Signature=" not in caught.value.message

    async def test_a_bucket_that_is_not_there(self, environ: dict[str, str]) -> None:
        await self.refused(environ, parse("gs://no-such-bucket/x"), "there is no bucket no-such-bucket")

    async def test_a_key_file_of_somebody_else(self, environ: dict[str, str], root: Address, tmp_path: Path) -> None:
        other = with_another_key(environ["GOOGLE_APPLICATION_CREDENTIALS"], tmp_path)
        words = r"refuses this server's credentials \(AuthenticationRequired\)"
        await self.refused({**environ, "GOOGLE_APPLICATION_CREDENTIALS": other}, root, words)

    async def test_a_key_file_that_is_not_there(self, environ: dict[str, str], root: Address, tmp_path: Path) -> None:
        storage = ObjectStorage(DOOR, {**environ, "GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "no")}, own=root)
        with pytest.raises(StorageRefused, match="GOOGLE_APPLICATION_CREDENTIALS"):
            storage.open(root)

    async def test_an_endpoint_that_the_operator_did_not_list(self, environ: dict[str, str], root: Address) -> None:
        with pytest.raises(StorageRefused, match="--storage-endpoint"):
            ObjectStorage(DOOR, environ).open(root)

    async def test_a_moment_of_trouble_is_lived_through(
        self, lab: RunningLab, storage: ObjectStorage, root: Address
    ) -> None:
        objects = storage.open(root)
        for kind in ("throttle", "server-error", "error-before-effect", "lost-reply"):
            rule = lab.control.fail(kind, count=1)
            await objects.put("k", kind.encode())
            assert await objects.get("k") == kind.encode()
            assert lab.control.clear_faults(rule["id"]) == 1

    async def test_trouble_without_end_is_a_failure_and_no_refusal(
        self, lab: RunningLab, storage: ObjectStorage, root: Address
    ) -> None:
        objects = storage.open(root)
        rule = lab.control.fail("server-error", operation="GetObject")
        try:
            with pytest.raises(StorageFailed, match="try again later"):
                await objects.get("k")
        finally:
            lab.control.clear_faults(rule["id"])
        assert len(await objects.sign("GET", ["k"], HOUR)) == 1


def with_another_key(key_file: str, folder: Path) -> str:
    other = folder / "other.json"
    other.write_text(json.dumps({**json.loads(Path(key_file).read_text()), "private_key": pem.pem(rsa.make())}))
    return str(other)
