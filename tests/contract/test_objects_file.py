"""Objects on a folder: the contract, and what a disk can suffer."""

import asyncio
import os
import resource
import stat
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from crucible.blobs.file_door import FileDoor
from crucible.blobs.storage import ObjectStorage
from crucible.engine.keys import Keys
from crucible.model.errors import AddressExpired, Forbidden, NotFound, StorageFailed, StorageRefused
from crucible.model.storage import Address, parse
from crucible.ports.objects import Objects, Signed
from crucible.testing.objects_contract import HOUR, ObjectsContract, Send, keys

KEYS = Keys(b"secret")


class Clock:
    """The server's; a machine's own does not count."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock: Clock) -> FileDoor:
    return FileDoor("http://127.0.0.1:1/", KEYS.address, KEYS.right_of, clock.now)


@pytest.fixture
def root(tmp_path: Path) -> Address:
    return parse((tmp_path / "ob jects").as_uri())


class TestFile(ObjectsContract):
    @pytest.fixture
    def storage(self, door: FileDoor) -> ObjectStorage:
        return ObjectStorage(door, {})

    @pytest.fixture
    def send(self, door: FileDoor) -> Send:
        async def send(signed: Signed, body: bytes | None) -> tuple[int, bytes]:
            """As the routes do it; they themselves are tested over HTTP elsewhere."""
            try:
                objects, key = door.opened(signed.method, signed.url.rpartition("/")[2])
                if signed.method == "PUT":
                    await objects.put(key, body or b"")
                    return 200, b""
                return 200, await objects.get(key)
            except (Forbidden, NotFound) as error:
                return error.status, error.message.encode()

        return send


class TestDisk:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def objects(self, door: FileDoor, root: Address) -> Objects:
        return door.objects(root)

    async def test_a_key_is_a_path_and_folders_go_with_their_last_object(
        self, objects: Objects, tmp_path: Path
    ) -> None:
        folder = tmp_path / "ob jects"
        await objects.put("a/b/c", b"x")
        await objects.put("a/d", b"y")
        assert (folder / "a/b/c").read_bytes() == b"x"
        assert stat.S_IMODE((folder / "a/b/c").stat().st_mode) == 0o600
        await objects.delete(["a/b/c"])
        assert not (folder / "a/b").exists() and (folder / "a/d").exists()
        await objects.delete(["a/d"])
        assert list(folder.iterdir()) == []

    async def test_files_of_others_are_objects_too(self, objects: Objects, tmp_path: Path) -> None:
        folder = tmp_path / "ob jects" / "step-1"
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(b"{}")
        assert await keys(objects, "step-") == ["step-1/manifest.json"]
        assert await objects.get("step-1/manifest.json") == b"{}"

    async def test_links_pipes_and_names_that_are_no_text_are_none(self, objects: Objects, tmp_path: Path) -> None:
        folder = tmp_path / "ob jects"
        await objects.put("k", b"x")
        (tmp_path / "secret").write_bytes(b"secret")
        (folder / "link").symlink_to(tmp_path / "secret")
        (folder / "folder-link").symlink_to(tmp_path)
        os.mkfifo(folder / "pipe")
        (folder / os.fsdecode(b"\xff")).write_bytes(b"")
        assert await keys(objects) == ["k"]
        assert await objects.head("link") is None
        with pytest.raises(NotFound):
            await asyncio.wait_for(objects.get("pipe"), 10)
        with pytest.raises((NotFound, StorageRefused)):
            await objects.get("link")

    async def test_a_file_is_no_folder(self, objects: Objects) -> None:
        await objects.put("a", b"x")
        await objects.put("b/c", b"x")
        for key in ("a/b", "a/b/c", "b"):
            with pytest.raises(StorageRefused, match="a file is no folder"):
                await objects.put(key, b"y")
        with pytest.raises(StorageRefused):
            await objects.put("n" * 300, b"y")
        assert await keys(objects) == ["a", "b/c"]

    async def test_what_a_crash_left_is_no_object_and_goes_after_a_day(self, objects: Objects, tmp_path: Path) -> None:
        await objects.put("parts/k", b"x")
        fresh, old = (tmp_path / "ob jects/parts" / f".unfinished-{digit * 16}" for digit in "01")
        for path in (fresh, old):
            path.write_bytes(b"half")
        os.utime(old, (time.time() - 90_000,) * 2)
        assert await keys(objects) == ["parts/k"]
        assert fresh.exists() and not old.exists()

    async def test_a_full_disk_is_told_and_leaves_what_was_there(self, objects: Objects, tmp_path: Path) -> None:
        await objects.put("k", b"old")

        async def body() -> AsyncIterator[bytes]:
            for _ in range(4):
                yield b"x" * (1 << 20)

        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        try:
            with pytest.raises(StorageFailed, match="check the disk"):
                await objects.put("k", b"x" * (2 << 20))
            with pytest.raises(StorageFailed, match="check the disk"):
                await objects.put_stream("k", body())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert await objects.get("k") == b"old"
        assert [path.name for path in (tmp_path / "ob jects").iterdir()] == ["k"]

    async def test_writers_and_deleters_of_one_folder_do_not_lose_anything(self, objects: Objects) -> None:
        async def once(number: int) -> None:
            for _ in range(10):
                await objects.put(f"a/b/{number}", b"x")
                assert await objects.get(f"a/b/{number}") == b"x"
                await objects.delete([f"a/b/{number}"])

        await asyncio.gather(*(once(number) for number in range(6)))
        assert await keys(objects) == []

    async def test_a_folder_that_may_not_be_written_is_named(self, door: FileDoor) -> None:
        with pytest.raises(StorageRefused, match="file:///proc/objects"):
            await door.objects(parse("file:///proc/objects")).put("k", b"x")

    async def test_addresses_follow_the_servers_clock(self, objects: Objects, door: FileDoor, clock: Clock) -> None:
        await objects.put("k", b"x")
        (signed,) = await objects.sign("GET", ["k"], HOUR)
        token = signed.url.rpartition("/")[2]
        clock.ahead = timedelta(minutes=59)
        assert door.opened("GET", token)[1] == "k"
        clock.ahead = timedelta(hours=1, seconds=1)
        with pytest.raises(AddressExpired, match="ask for a new one"):
            door.opened("GET", token)

    async def test_forged_addresses_are_refused(self, objects: Objects, door: FileDoor) -> None:
        (signed,) = await objects.sign("GET", ["k"], HOUR)
        token = signed.url.rpartition("/")[2]
        others = Keys(b"another").address('["GET",9999999999,"/etc","passwd"]')
        for forged in ("", "x", token[:-1], token + "0", others, token.upper(), "cro..", "crn.x.y", "é", token + "é"):
            with pytest.raises(Forbidden, match="nobody signed"):
                door.opened("GET", forged)
        with pytest.raises(Forbidden, match="signed for GET"):
            door.opened("PUT", token)
