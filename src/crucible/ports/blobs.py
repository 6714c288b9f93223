"""Packages of user code: immutable, named by their content."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from crucible.model.ids import Digest


class Blobs(Protocol):
    async def has(self, digest: Digest) -> bool:
        """Whoever asks is about to use it: it is not removed for a while."""
        ...

    async def put(self, digest: Digest, body: AsyncIterator[bytes], limit_bytes: int) -> int:
        """Whole or not at all. Raises InvalidRequest if the content has another digest, TooLarge past the limit."""
        ...

    async def unused(self, since: datetime) -> Sequence[Digest]:
        """Those that nobody has stored or asked for since then; some thousands at most, the rest another time."""
        ...

    async def remove(self, digest: Digest, since: datetime) -> int:
        """Unless somebody has asked for it since; how many bytes."""
        ...

    def get(self, digest: Digest) -> AsyncIterator[bytes]:
        """Raises NotFound."""
        ...
