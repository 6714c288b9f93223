"""Object storage: one bucket and prefix as a flat map of keys to bytes, the same for every kind. Adapters translate
addresses, conditions and errors; who may read what, and what is kept, is decided elsewhere.

Errors: NotFound (no such key), Conflict (a condition did not hold), StorageRefused (wrong bucket, no rights, an
endpoint that the operator did not allow: somebody must change something), StorageFailed (try again later)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from crucible.model.storage import Address

Method = Literal["GET", "PUT"]


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    key: str
    size: int
    etag: str | None
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Signed:
    """One request that anybody may make until it expires, with exactly these headers."""

    method: Method
    url: str
    headers: Mapping[str, str]


class Objects(Protocol):
    """Keys are relative to `address`, with forward slashes; they never start or end with one."""

    address: Address

    async def put(self, key: str, body: bytes, *, only_if_absent: bool = False, only_if_etag: str | None = None) -> str:
        """Whole or not at all. Returns the new etag. Raises Conflict."""
        ...

    async def put_stream(self, key: str, body: AsyncIterator[bytes]) -> int:
        """Of any size, in parts where the store has them; whole or not at all. Returns the bytes."""
        ...

    async def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        """`length` None: to the end. Raises NotFound."""
        ...

    def stream(self, key: str) -> AsyncIterator[bytes]: ...

    async def head(self, key: str) -> ObjectFacts | None:
        """None: no such key."""
        ...

    def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectFacts]:
        """In the order of their keys, those above `after`. `prefix` is text: "parts/" lists what is below parts."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Absent is success."""
        ...

    async def sign(self, method: Method, keys: Sequence[str], expires_in: timedelta) -> Sequence[Signed]:
        """In the order of `keys`. Whoever has the answer needs no credentials."""
        ...


class Storage(Protocol):
    def open(self, address: Address) -> Objects:
        """Cheap, and without any request: what is wrong shows at the first use. Raises StorageRefused for an endpoint
        that the operator did not allow, or a kind whose credentials are missing."""
        ...
