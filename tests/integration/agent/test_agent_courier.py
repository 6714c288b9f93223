"""The agent's signed requests against real storage of each kind: what it sends arrives, and answers mean the same
everywhere."""

import asyncio
import os
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from crucible.agent.bodies import Bytes, Files
from crucible.agent.courier import Courier, Declined, Unreachable
from crucible.agent.protocol import Signed
from crucible.blobs.file_door import FileDoor
from crucible.blobs.storage import ObjectStorage
from crucible.engine.keys import Keys
from crucible.model.storage import Address, Scheme
from lab_process import RunningLab

DOOR = FileDoor("http://127.0.0.1:1", Keys(b"secret").address, Keys(b"secret").right_of, lambda: datetime.now(UTC))
BODY = os.urandom(1 << 20) * 9 + b"end"


class Bucket:
    def __init__(self, scheme: Scheme, bucket: str, environ: dict[str, str]) -> None:
        self._root = Address(scheme, "", bucket, f"te st/{secrets.token_hex(8)}")
        self._storage = ObjectStorage(DOOR, environ, own=self._root)

    def sign(self, method: Any, key: str, life: timedelta = timedelta(hours=1)) -> Signed:
        async def signed() -> Any:
            return await self._storage.open(self._root).sign(method, [key], life)

        (one,) = asyncio.run(signed())
        return Signed({"method": one.method, "url": one.url, "headers": dict(one.headers)}, method)


@pytest.fixture(params=[Scheme.S3, Scheme.AZ, Scheme.GS])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param is Scheme.GS:
        with RunningLab(tmp_path, regions="us-east-1") as lab:
            yield Bucket(Scheme.GS, "lab-bucket", lab.control.storage())
        return
    engine = request.getfixturevalue("seaweedfs" if request.param is Scheme.S3 else "azurite")
    yield Bucket(request.param, engine.bucket, engine.environ)


def test_every_kind_of_storage_takes_and_gives_and_refuses_alike(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before" + BODY)
    courier, moved = Courier(), []
    put = bucket.sign("PUT", "parts/a b/00000")
    for _ in range(2):  # a request whose answer was lost is made again
        courier.put(put, Files([(str(tmp_path / "file"), 6, len(BODY))]), moved.append)
    assert sum(moved) == 2 * len(BODY)
    get = bucket.sign("GET", "parts/a b/00000")
    for start in (0, 1000, len(BODY) - 1):
        download = courier.get(get, start)
        assert (download.start, download.total) == (start, len(BODY))
        assert read(download) == BODY[start:]
    with pytest.raises(Declined) as caught:
        courier.get(bucket.sign("GET", "parts/nobody"), 0)
    assert caught.value.is_absent
    brief = bucket.sign("PUT", "late", timedelta(seconds=1))
    with pytest.raises(Declined) as caught:
        until_declined(lambda: courier.put(brief, Bytes(b"late"), moved.append))
    assert caught.value.is_expired and "http" not in str(caught.value)
    courier.close()


def until_declined(ask: Callable[[], None]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        ask()
        time.sleep(0.2)


def read(download: Any) -> bytes:
    found, buffer = bytearray(), memoryview(bytearray(1 << 18))
    while count := download.read_into(buffer):
        found += buffer[:count]
    return bytes(found)


def test_nobody_there_is_no_refusal() -> None:
    with pytest.raises(Unreachable, match="refused"):
        Courier().get(Signed({"method": "GET", "url": "http://127.0.0.1:1/x?signature=s3cret"}, "GET"), 0)
