"""Object storage in memory, for the engine on a virtual clock. It keeps the contract of ports/objects.py, signs
addresses that only its own `send` understands, and can be told to fail."""

import hashlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from crucible.blobs.keys import whole_key
from crucible.model.errors import Conflict, Forbidden, NotFound, StorageRefused
from crucible.model.storage import Address
from crucible.ports.objects import Method, ObjectFacts, Signed

# What a real store gives at once; a reader must not count on more.
CHUNK_BYTES = 1 << 20

Place = tuple[str, str, str]  # scheme, host, bucket


@dataclass(frozen=True, slots=True)
class Kept:
    body: bytes
    etag: str
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Right:
    method: Method
    place: Place
    key: str
    until: datetime


@dataclass(kw_only=True)
class FakeStorage:
    """`buckets` None: every bucket exists. `trouble` hears of each call, with verb and key, and may raise."""

    now: Callable[[], datetime]
    buckets: frozenset[str] | None = None
    trouble: Callable[[str, str], None] = field(default=lambda verb, key: None)
    kept: dict[Place, dict[str, Kept]] = field(default_factory=dict)
    rights: dict[str, Right] = field(default_factory=dict)
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def open(self, address: Address) -> "FakeObjects":
        return FakeObjects(self, address)

    def send(self, signed: Signed, body: bytes = b"") -> bytes:
        """The request that `signed` allows, as somebody without credentials would make it."""
        right = self.rights.get(signed.url)
        if right is None or right.method != signed.method:
            raise Forbidden("nobody signed this request")
        if self.now() >= right.until:
            raise Forbidden("the address has expired; ask for a new one")
        self.trouble(signed.method, right.key)
        if right.method == "PUT":
            self.keep(right.place, right.key, body)
            return b""
        return self.found(right.place, right.key).body

    def keep(self, place: Place, key: str, body: bytes) -> str:
        etag = f"{next(self._numbers)}-{hashlib.sha256(body).hexdigest()[:16]}"
        self.held(place)[key] = Kept(bytes(body), etag, self.now())
        return etag

    def found(self, place: Place, key: str) -> Kept:
        kept = self.held(place).get(key)
        if kept is None:
            raise NotFound(f"there is no object {key}")
        return kept

    def held(self, place: Place) -> dict[str, Kept]:
        if self.buckets is not None and place[2] not in self.buckets:
            raise StorageRefused(f"there is no bucket {place[2]}; name one that exists")
        return self.kept.setdefault(place, {})

    def sign(self, method: Method, place: Place, key: str, until: datetime) -> Signed:
        signed = Signed(method, f"memory://{next(self._numbers)}", {"content-type": "application/octet-stream"})
        self.rights[signed.url] = Right(method, place, key, until)
        return signed


class FakeObjects:
    def __init__(self, storage: FakeStorage, address: Address) -> None:
        self.address = address
        self._storage = storage
        self._place: Place = (str(address.scheme), address.host, address.bucket)

    async def put(self, key: str, body: bytes, *, only_if_absent: bool = False, only_if_etag: str | None = None) -> str:
        self._storage.trouble("put", key)
        held = self._storage.held(self._place).get(self._whole(key))
        if only_if_absent and held is not None:
            raise Conflict(f"{key} exists already")
        if only_if_etag is not None and (held is None or held.etag != only_if_etag):
            raise Conflict(f"{key} has changed")
        return self._storage.keep(self._place, self._whole(key), body)

    async def put_stream(self, key: str, body: AsyncIterator[bytes]) -> int:
        self._whole(key)
        whole = b"".join([piece async for piece in body])
        await self.put(key, whole)
        return len(whole)

    async def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        self._storage.trouble("get", key)
        body = self._storage.found(self._place, self._whole(key)).body
        return body[start:] if length is None else body[start : start + length]

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        body = await self.get(key)
        for start in range(0, len(body), CHUNK_BYTES):
            yield body[start : start + CHUNK_BYTES]

    async def head(self, key: str) -> ObjectFacts | None:
        self._storage.trouble("head", key)
        kept = self._storage.held(self._place).get(self._whole(key))
        return None if kept is None else ObjectFacts(key, len(kept.body), kept.etag, kept.modified_at)

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectFacts]:
        self._storage.trouble("list", prefix)
        held, root = dict(self._storage.held(self._place)), self._root
        for whole in sorted((key for key in held if key.startswith(root + prefix)), key=str.encode):
            key = whole[len(root) :]
            if key.encode() > after.encode():
                yield ObjectFacts(key, len(held[whole].body), held[whole].etag, held[whole].modified_at)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._storage.trouble("delete", key)
            self._storage.held(self._place).pop(self._whole(key), None)

    async def sign(self, method: Method, keys: Sequence[str], expires_in: timedelta) -> Sequence[Signed]:
        self._storage.trouble("sign", "")
        until = self._storage.now() + expires_in
        return [self._storage.sign(method, self._place, self._whole(key), until) for key in keys]

    def _whole(self, key: str) -> str:
        return self._root + whole_key("", key)

    @property
    def _root(self) -> str:
        prefix = self.address.prefix.rstrip("/")
        return f"{prefix}/" if self.address.prefix else ""
