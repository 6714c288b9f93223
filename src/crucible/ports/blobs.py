"""Packages of user code: immutable, named by their content."""

from collections.abc import AsyncIterator
from typing import Protocol

from crucible.model.ids import Digest


class Blobs(Protocol):
    async def has(self, digest: Digest) -> bool: ...

    async def put(self, digest: Digest, body: AsyncIterator[bytes], limit_bytes: int) -> int:
        """Whole or not at all. Raises InvalidRequest if the content has another digest, TooLarge past the limit."""
        ...

    def get(self, digest: Digest) -> AsyncIterator[bytes]:
        """Raises NotFound."""
        ...
