"""Packages on a folder: named by their content, whole or not at all."""

import hashlib
import os
import resource
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from crucible.blobs.files import FileBlobs
from crucible.model.errors import InvalidRequest, NotFound, StorageFailed, TooLarge
from crucible.model.ids import Digest
from crucible.ports.blobs import Blobs

pytestmark = pytest.mark.anyio

BODY = os.urandom(700_000)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["threads", "inline"])
def blobs(tmp_path: Path, request: pytest.FixtureRequest) -> Blobs:
    return FileBlobs(tmp_path / "blobs", inline=request.param == "inline")


def digest_of(body: bytes) -> Digest:
    return Digest(hashlib.sha256(body).hexdigest())


async def pieces(body: bytes, size: int = 64 << 10) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def content(blobs: Blobs, digest: Digest) -> bytes:
    return b"".join([chunk async for chunk in blobs.get(digest)])


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


async def test_a_package_comes_back_as_it_was_sent(blobs: Blobs) -> None:
    digest = digest_of(BODY)
    assert not await blobs.has(digest)
    assert await blobs.put(digest, pieces(BODY), 1 << 20) == len(BODY)
    assert await blobs.has(digest)
    assert await content(blobs, digest) == BODY


async def test_sending_a_package_again_changes_nothing(blobs: Blobs) -> None:
    digest = digest_of(b"")
    for _ in range(2):
        assert await blobs.put(digest, pieces(b""), 0) == 0
    assert await content(blobs, digest) == b""


async def test_content_of_another_digest_is_refused_and_not_kept(blobs: Blobs, tmp_path: Path) -> None:
    digest = digest_of(BODY)
    with pytest.raises(InvalidRequest, match="digest"):
        await blobs.put(digest, pieces(BODY[:-1]), 1 << 20)
    assert not await blobs.has(digest)
    assert not files(tmp_path)


async def test_a_package_over_the_limit_is_refused_before_its_end(blobs: Blobs, tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1000
            yield b"x" * 1000

    with pytest.raises(TooLarge):
        await blobs.put(digest_of(BODY), endless(), 10_000)
    assert sent <= 11_000
    assert not files(tmp_path)


async def test_an_upload_that_breaks_off_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield BODY[:1000]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await blobs.put(digest_of(BODY), broken(), 1 << 20)
    assert not files(tmp_path)


async def test_a_package_nobody_sent_is_not_found(blobs: Blobs) -> None:
    with pytest.raises(NotFound):
        blobs.get(digest_of(b"nobody"))


async def test_names_that_are_not_digests_never_reach_the_disk(blobs: Blobs) -> None:
    for name in (
        "",
        "..",
        "../../etc/passwd",
        "A" * 64,
        "a" * 63,
        "a" * 65,
        "a" * 63 + "\n",
        "a" * 32 + "/" + "a" * 31,
    ):
        with pytest.raises(InvalidRequest):
            await blobs.has(Digest(name))
        with pytest.raises(InvalidRequest):
            await blobs.put(Digest(name), pieces(b""), 10)
        with pytest.raises(InvalidRequest):
            blobs.get(Digest(name))


async def test_a_full_disk_is_said_and_nothing_is_kept(blobs: Blobs, tmp_path: Path) -> None:
    digest = digest_of(BODY)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(StorageFailed):
            await blobs.put(digest, pieces(BODY), 1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not files(tmp_path)
    await blobs.put(digest, pieces(BODY), 1 << 20)
    assert await content(blobs, digest) == BODY


def test_what_a_crash_left_behind_is_removed_once_it_is_old(tmp_path: Path) -> None:
    FileBlobs(tmp_path)
    for name, mtime in (("old", 0), ("new", None)):
        path = tmp_path / "unfinished" / name
        path.write_bytes(b"half")
        if mtime is not None:
            os.utime(path, (mtime, mtime))
    FileBlobs(tmp_path)
    assert [path.name for path in files(tmp_path)] == ["new"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed):
        FileBlobs(tmp_path / "file" / "blobs")
