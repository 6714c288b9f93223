"""What every implementation of ports.objects must do. A test file subclasses ObjectsContract and gives two fixtures:
`storage`, and `root`, an address of it that nobody else uses. A third, `send`, makes a signed request; the one here
does it over HTTP."""

import asyncio
import os
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from crucible.model.errors import Conflict, InvalidRequest, NotFound
from crucible.model.storage import Address
from crucible.ports.objects import Objects, Signed, Storage

HOUR = timedelta(hours=1)
EXPIRED = (400, 403)  # Google says 400
# More than one part of a large upload.
LARGE_BYTES = (33 << 20) + 7
ODD_KEYS = (
    "a b",
    "#hash",
    "what?now",
    "semi;colon",
    "100%",
    "%2e%2e/%2F",
    "plus+and&equals=",
    "q'uo\"te",
    "<tag>",
    "{brackets}[|]^`",
    "~tilde*star!",
    "ünï/cödé",
    "e\u0301 is not \u00e9",
    "日本/語",
    "emoji-😀",
    "...",
    ".hidden",
    "a:b@c,d$",
)
BAD_KEYS = ("", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\nb", "a\0b", "a\x7fb", "a\\b", "\ud800")

Send = Callable[[Signed, bytes | None], Awaitable[tuple[int, bytes]]]


async def send_by_http(signed: Signed, body: bytes | None = None) -> tuple[int, bytes]:
    """As somebody without credentials does it: status and answer."""

    def send() -> tuple[int, bytes]:
        request = urllib.request.Request(signed.url, data=body, method=signed.method)  # noqa: S310
        for name, value in {"Content-Type": "application/octet-stream", **signed.headers}.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:  # noqa: S310
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    return await asyncio.to_thread(send)


async def pieces(body: bytes, size: int = 1 << 20) -> AsyncIterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


async def keys(objects: Objects, prefix: str = "", after: str = "") -> list[str]:
    return [facts.key async for facts in objects.list(prefix, after=after)]


async def content(objects: Objects, key: str) -> bytes:
    return b"".join([chunk async for chunk in objects.stream(key)])


class ReadingContract:
    async def test_what_was_put_comes_back(self, objects: Objects) -> None:
        for body in (b"", b"x", bytes(range(256)) * 100):
            await objects.put("some/key", body)
            assert await objects.get("some/key") == body
            assert await content(objects, "some/key") == body

    async def test_what_it_knows_of_an_object(self, objects: Objects) -> None:
        before = datetime.now(UTC) - timedelta(minutes=1)
        etag = await objects.put("k", b"12345")
        facts = await objects.head("k")
        assert facts is not None
        assert (facts.key, facts.size, facts.etag) == ("k", 5, etag)
        assert before < facts.modified_at < before + timedelta(minutes=5)

    async def test_ranges_are_cut_like_bytes(self, objects: Objects) -> None:
        body = bytes(range(100))
        await objects.put("k", body)
        for start, length in (
            (0, None),
            (0, 10),
            (10, 10),
            (95, 10),
            (99, None),
            (0, 0),
            (50, 0),
            (100, 5),
            (200, None),
        ):
            end = None if length is None else start + length
            assert await objects.get("k", start=start, length=length) == body[start:end], (start, length)

    async def test_what_is_not_there_is_not_found(self, objects: Objects) -> None:
        await objects.put("folder/k", b"x")
        for key in ("k", "folder", "folder/k/l"):
            with pytest.raises(NotFound):
                await objects.get(key)
            with pytest.raises(NotFound):
                await content(objects, key)
            assert await objects.head(key) is None
            await objects.delete([key])
        assert await objects.get("folder/k") == b"x"

    async def test_odd_names_are_kept_apart_and_listed(self, objects: Objects) -> None:
        for key in ODD_KEYS:
            await objects.put(key, key.encode())
        assert await keys(objects) == sorted(ODD_KEYS, key=str.encode)
        for key in ODD_KEYS:
            assert await objects.get(key) == key.encode()
        await objects.delete(ODD_KEYS)
        assert await keys(objects) == []

    async def test_bad_names_are_refused_by_every_call(self, objects: Objects) -> None:
        for key in (*BAD_KEYS, "k" * 1025):
            for call in (objects.put(key, b""), objects.get(key), objects.head(key), objects.delete([key])):
                with pytest.raises(InvalidRequest):
                    await call
            with pytest.raises(InvalidRequest):
                await objects.sign("PUT", [key], HOUR)
            with pytest.raises(InvalidRequest):
                await objects.put_stream(key, pieces(b"x"))
        assert await keys(objects) == []


class WritingContract:
    async def test_only_one_of_many_creates_an_object(self, objects: Objects) -> None:
        bodies = [f"body {number}".encode() for number in range(8)]
        puts = (objects.put("k", body, only_if_absent=True) for body in bodies)
        done = await asyncio.gather(*puts, return_exceptions=True)
        won = [body for body, result in zip(bodies, done, strict=True) if isinstance(result, str)]
        assert len(won) == 1
        assert sum(isinstance(result, Conflict) for result in done) == 7
        assert await objects.get("k") == won[0]

    async def test_only_the_version_that_was_read_is_replaced(self, objects: Objects) -> None:
        with pytest.raises(Conflict):
            await objects.put("k", b"no", only_if_etag=await objects.put("other", b"x"))
        first = await objects.put("k", b"one")
        second = await objects.put("k", b"two", only_if_etag=first)
        assert second != first
        with pytest.raises(Conflict):
            await objects.put("k", b"three", only_if_etag=first)
        assert await objects.get("k") == b"two"

    async def test_a_large_body_is_streamed_both_ways(self, objects: Objects) -> None:
        body = os.urandom(1 << 20) * (LARGE_BYTES >> 20) + b"the end"
        assert await objects.put_stream("large", pieces(body)) == len(body)
        assert await content(objects, "large") == body

    async def test_small_and_empty_bodies_are_streamed(self, objects: Objects) -> None:
        for body in (b"", b"small"):
            assert await objects.put_stream("k", pieces(body)) == len(body)
            assert await objects.get("k") == body

    async def test_a_body_that_breaks_off_changes_nothing(self, objects: Objects) -> None:
        async def broken(size: int) -> AsyncIterator[bytes]:
            for _ in range(size >> 20):
                yield b"x" * (1 << 20)
            raise ConnectionResetError("gone")

        await objects.put("old", b"old")
        for size in (0, 1 << 20, LARGE_BYTES):
            for key in ("old", "new"):
                with pytest.raises(ConnectionResetError, match="gone"):
                    await objects.put_stream(key, broken(size))
        assert await keys(objects) == ["old"]
        assert await objects.get("old") == b"old"

    async def test_whoever_gives_up_leaves_nothing(self, objects: Objects) -> None:
        reached = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            yield b"x" * (1 << 20)
            reached.set()
            await asyncio.Event().wait()

        putting = asyncio.create_task(objects.put_stream("k", endless()))
        await asyncio.wait_for(reached.wait(), 30)
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        assert await keys(objects) == []


class ListingContract:
    async def test_keys_are_listed_in_their_order(self, objects: Objects) -> None:
        there = ["a", "a.b", "a-b/c", "b/c", "b/c.d/e", "b/c.e", "b0", "c/d/e/f", "é", "z"]
        for key in reversed(there):
            await objects.put(key, b"")
        assert await keys(objects) == sorted(there, key=str.encode)
        for after in ("a", "b", "b/c", "b/c.d/e", "c/d", "z", "zz"):
            expected = [key for key in sorted(there, key=str.encode) if key.encode() > after.encode()]
            assert await keys(objects, after=after) == expected, after

    async def test_a_prefix_is_text(self, objects: Objects) -> None:
        there = ["manifests/a-1", "manifests/a-2", "manifests/b-1", "manifests.old", "parts/a-1/0"]
        for key in there:
            await objects.put(key, b"12")
        for prefix in ("manifests/", "manifests/a", "manifests/a-2", "man", "parts/a-1/", "nothing", "manifests/c"):
            expected = sorted(key for key in there if key.startswith(prefix))
            assert await keys(objects, prefix) == expected, prefix
        assert await keys(objects, "manifests/", after="manifests/a-2") == ["manifests/b-1"]

    async def test_a_listing_says_size_and_time(self, objects: Objects) -> None:
        await objects.put("k", b"12345")
        (facts,) = [facts async for facts in objects.list()]
        assert (facts.key, facts.size) == ("k", 5)
        assert abs(datetime.now(UTC) - facts.modified_at) < timedelta(minutes=5)

    async def test_neighbours_do_not_see_each_other(self, storage: Storage, root: Address) -> None:
        one, two, above = (storage.open(address) for address in (root.below("x"), root.below("xy"), root))
        await one.put("k", b"one")
        await two.put("k", b"two")
        assert (await one.get("k"), await two.get("k")) == (b"one", b"two")
        assert await keys(one) == await keys(two) == ["k"]
        assert await keys(above) == ["x/k", "xy/k"]

    async def test_many_are_deleted_and_absent_ones_do_not_matter(self, objects: Objects) -> None:
        for number in range(20):
            await objects.put(f"parts/{number:02}", b"x")
        await objects.delete([f"parts/{number:02}" for number in range(1, 40)])
        assert await keys(objects) == ["parts/00"]
        await objects.delete([])
        await objects.delete(["parts/00"])
        assert await keys(objects) == []


class SigningContract:
    async def test_whoever_has_a_signed_request_needs_nothing_else(self, objects: Objects, send: Send) -> None:
        names = ["plain/key-1", *ODD_KEYS]
        puts, gets = await objects.sign("PUT", names, HOUR), await objects.sign("GET", names, HOUR)
        for key, put, get in zip(names, puts, gets, strict=True):
            assert (put.method, get.method) == ("PUT", "GET")
            status, _ = await send(put, key.encode())
            assert status in (200, 201), key
            assert await objects.get(key) == key.encode()
            assert await send(get, None) == (200, key.encode())

    async def test_a_signature_is_for_one_method_and_one_key(self, objects: Objects, send: Send) -> None:
        await objects.put("mine", b"mine")
        await objects.put("other", b"other")
        (get,) = await objects.sign("GET", ["mine"], HOUR)
        (put,) = await objects.sign("PUT", ["mine"], HOUR)
        (of_other,) = await objects.sign("GET", ["other"], HOUR)
        assert of_other.url != get.url
        status, _ = await send(Signed("PUT", get.url, put.headers), b"stolen")
        assert status == 403
        for url in (get.url.replace("mine", "other"), _tampered(get.url)):
            if url != get.url:
                assert (await send(Signed("GET", url, {}), None))[0] == 403
        assert await objects.get("mine") == b"mine"

    async def test_an_absent_object_is_not_found_by_its_address(self, objects: Objects, send: Send) -> None:
        (get,) = await objects.sign("GET", ["absent"], HOUR)
        assert (await send(get, None))[0] == 404

    async def test_an_address_expires(self, objects: Objects, send: Send) -> None:
        await objects.put("k", b"x")
        (get,) = await objects.sign("GET", ["k"], timedelta(seconds=1))
        (put,) = await objects.sign("PUT", ["k"], timedelta(seconds=1))
        deadline = time.monotonic() + 15
        while (await send(get, None))[0] not in EXPIRED:
            assert time.monotonic() < deadline, "it never expires"
            await asyncio.sleep(0.1)
        while (await send(put, b"x"))[0] not in EXPIRED:
            assert time.monotonic() < deadline, "it never expires"
            await asyncio.sleep(0.1)
        assert await objects.get("k") == b"x"


def _tampered(url: str) -> str:
    """Another last letter, which is one of a signature."""
    body, last = url.rstrip("%3D=")[:-1], url.rstrip("%3D=")[-1]
    return body + ("a" if last != "a" else "b") + url[len(body) + 1 :]


class ObjectsContract(ReadingContract, WritingContract, ListingContract, SigningContract):
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def objects(self, storage: Storage, root: Address) -> Objects:
        return storage.open(root)

    @pytest.fixture
    def send(self) -> Send:
        return send_by_http
