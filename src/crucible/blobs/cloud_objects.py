"""Objects in a bucket of S3, Google Cloud Storage, Azure or MinIO, by obstore. It repeats what may be repeated; here is
only what the port asks for besides."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from crucible.blobs.azure_sas import PUT_HEADERS
from crucible.blobs.cloud_buckets import Bucket
from crucible.blobs.cloud_trouble import status_of, translated
from crucible.blobs.keys import whole_key
from crucible.model.errors import NotFound, StorageRefused
from crucible.model.storage import Address, Scheme
from crucible.ports.objects import Method, ObjectFacts, Signed

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, PutMode

# One request of a stream: small enough to be repeated, and to end in time on a slow line.
PART_BYTES = 16 << 20
PARTS_AT_ONCE = 4
DELETES_AT_ONCE = 8


class CloudObjects:
    def __init__(self, address: Address, bucket: Bucket) -> None:
        self.address = address
        self._bucket = bucket
        self._prefix = address.prefix
        self._is_google = address.scheme is Scheme.GS

    async def put(self, key: str, body: bytes, *, only_if_absent: bool = False, only_if_etag: str | None = None) -> str:
        import obstore

        whole, mode = self._whole(key), self._mode(only_if_absent, only_if_etag)
        async with self._errors(key, is_write=True):
            store = await self._bucket.store()
            done = await obstore.put_async(store, whole, body, mode=mode, use_multipart=False)
            return self._etag(done["e_tag"], done["version"]) or ""

    async def put_stream(self, key: str, body: AsyncIterator[bytes]) -> int:
        import obstore

        counted = _Counted(body)
        first = await counted.up_to(PART_BYTES)
        if len(first) < PART_BYTES:  # the whole of it
            await self.put(key, first)
            return len(first)
        whole = self._whole(key)
        async with self._errors(key, is_write=True):
            store, parts = await self._bucket.store(), counted.parts(first)
            try:
                await obstore.put_async(store, whole, parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
            except Exception:
                if counted.error is not None:  # whoever sends broke off, not the cloud
                    raise counted.error from None
                raise
        return counted.size

    async def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        body, _ = await self._read(key, start, length)
        return body

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        body, facts = await self._read(key, 0, PART_BYTES)
        seen = 0
        while body:
            yield body
            seen += len(body)
            if seen >= facts["size"]:
                return
            body, _ = await self._read(key, seen, PART_BYTES, facts["e_tag"])

    async def head(self, key: str) -> ObjectFacts | None:
        import obstore

        whole = self._whole(key)
        try:
            async with self._errors(key):
                return self._facts(await obstore.head_async(await self._bucket.store(), whole))
        except NotFound:
            return None

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectFacts]:
        folder = prefix.rpartition("/")[0]  # the library knows whole names only
        base = self._whole(folder) if folder else self._prefix
        beyond = self._whole(after) if after else None
        async with self._errors(""):
            async for facts in self._ordered(base, beyond):
                if facts.key.startswith(prefix) and facts.key.encode() > after.encode():
                    yield facts
                elif facts.key.encode() > prefix.encode() and not facts.key.startswith(prefix):
                    return

    async def delete(self, keys: Sequence[str]) -> None:
        import obstore

        wholes = [self._whole(key) for key in keys]
        if not wholes:
            return
        try:
            async with self._errors("of several"):
                await obstore.delete_async(await self._bucket.store(), wholes)
        except NotFound:  # one of them; others may not have been looked at
            await self._delete_each(wholes)

    async def sign(self, method: Method, keys: Sequence[str], expires_in: timedelta) -> Sequence[Signed]:
        import obstore

        wholes = [self._whole(key) for key in keys]
        if self._bucket.key is not None:
            until = datetime.now(UTC) + expires_in
            return [self._bucket.key.sign(method, whole, until) for whole in wholes]
        if self.address.scheme is Scheme.AZ:
            self._check_signable(wholes)
        async with self._errors(""):
            store: Any = await self._bucket.store()
            # For Google it signs names as if they were written for an address already.
            names = [quote(whole) for whole in wholes] if self._is_google else wholes
            urls = await obstore.sign_async(store, method, names, expires_in)
        headers = PUT_HEADERS if self.address.scheme is Scheme.AZ and method == "PUT" else {}
        return [Signed(method, url, headers) for url in urls]

    async def _ordered(self, base: str, beyond: str | None) -> AsyncIterator[ObjectFacts]:
        """Not everything that speaks S3 keeps its order, or starts where it was told to; those are listed whole."""
        import obstore

        store, is_exact = await self._bucket.store(), self._bucket.lists_exactly
        found: list[ObjectFacts] = []
        async for batch in obstore.list(store, base or None, offset=beyond if is_exact else None):
            if not is_exact:
                found.extend(map(self._facts, batch))
                continue
            for one in batch:
                yield self._facts(one)
        for facts in sorted(found, key=lambda one: one.key.encode()):
            yield facts

    async def _read(
        self, key: str, start: int, length: int | None, etag: str | None = None
    ) -> "tuple[bytes, ObjectMeta]":
        import obstore

        if length == 0:
            return b"", await self._found(key)
        whole = self._whole(key)
        options: GetOptions = {}
        if length is not None:
            options["range"] = (start, start + length)
        elif start:
            options["range"] = {"offset": start}
        if etag is not None:
            options["if_match"] = etag
        try:
            async with self._errors(key):
                got = await obstore.get_async(await self._bucket.store(), whole, options=options)
                return bytes(await got.bytes_async()), got.meta
        except _PastTheEnd:
            return b"", await self._found(key)

    async def _found(self, key: str) -> "ObjectMeta":
        import obstore

        whole = self._whole(key)
        async with self._errors(key):
            return await obstore.head_async(await self._bucket.store(), whole)

    async def _delete_each(self, wholes: Sequence[str]) -> None:
        import obstore

        store, places = await self._bucket.store(), asyncio.Semaphore(DELETES_AT_ONCE)

        async def delete(whole: str) -> None:
            async with places:
                try:
                    async with self._errors(whole):
                        await obstore.delete_async(store, [whole])
                except NotFound:
                    pass

        async with asyncio.TaskGroup() as group:
            for whole in wholes:
                group.create_task(delete(whole))

    def _check_signable(self, wholes: Sequence[str]) -> None:
        """See azure_sas: what the library signs for such keys is refused by Azure, when it is too late."""
        odd = next((whole for whole in wholes if quote(whole) != whole), None)
        if odd is not None:
            raise StorageRefused(
                f"{self.address.uri}: requests for {odd!a} can only be signed with the account's key; set "
                "AZURE_STORAGE_ACCOUNT_KEY, or use plain letters"
            )

    @asynccontextmanager
    async def _errors(self, key: str, *, is_write: bool = False) -> AsyncIterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            if not is_write and _is_past_the_end(error):
                raise _PastTheEnd from None
            raise translated(error, self.address, key, is_write=is_write) from None

    def _mode(self, only_if_absent: bool, only_if_etag: str | None) -> "PutMode":
        if only_if_absent:
            return "create"
        if only_if_etag is None:
            return "overwrite"
        return {"version": only_if_etag} if self._is_google else {"e_tag": only_if_etag}

    def _etag(self, e_tag: str | None, version: str | None) -> str | None:
        """What a condition is about: Google compares generations."""
        return version if self._is_google else e_tag

    def _facts(self, found: "ObjectMeta") -> ObjectFacts:
        key = found["path"][len(self._prefix) + 1 :] if self._prefix else found["path"]
        etag = self._etag(found["e_tag"], found["version"])
        return ObjectFacts(key, found["size"], etag, found["last_modified"])

    def _whole(self, key: str) -> str:
        return whole_key(self._prefix, key)


class _PastTheEnd(Exception):
    """A range that starts where the object has ended."""


def _is_past_the_end(error: Exception) -> bool:
    text = str(error)
    return status_of(text) == 416 or "StartTooLarge" in text


class _Counted:
    """A body that is read in parts: its size so far, and what broke it off."""

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self._body = body
        self.size = 0
        self.error: Exception | None = None

    async def up_to(self, size: int) -> bytes:
        read = bytearray()
        async for chunk in self._body:
            read += chunk
            if len(read) >= size:
                break
        self.size += len(read)
        return bytes(read)

    async def parts(self, first: bytes) -> AsyncIterator[bytes]:
        part = first
        while part:
            yield part
            try:
                part = await self.up_to(PART_BYTES)
            except Exception as error:
                self.error = error
                raise
