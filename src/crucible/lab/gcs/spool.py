"""The body of a request on its way to disk: hashed while it is written, bounded, and gone afterwards unless somebody
made a link of it."""

import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from crucible.lab.gcs.errors import GcsError

# Google takes 5 TiB at once; what is larger here is a mistake of the client, or a part that should be several.
MOST_BYTES = (64 << 20) + (1 << 20)


@dataclass(frozen=True, slots=True)
class Spool:
    path: Path
    size: int
    md5: bytes

    @property
    def etag(self) -> str:
        return f'"{self.md5.hex()}"'

    def keep(self, folder: Path) -> Path:
        """The same bytes under a name of their own; as often as one likes."""
        kept = folder / secrets.token_hex(16)
        os.link(self.path, kept)
        return kept


@asynccontextmanager
async def spooled(folder: Path, chunks: AsyncIterator[bytes], said_bytes: str | None) -> AsyncIterator[Spool]:
    """`said_bytes` is what the request says of its length. Raises GcsError if there is too much, before it is read if
    it says so."""
    if said_bytes is not None and said_bytes.isdecimal() and int(said_bytes) > MOST_BYTES:
        raise _too_large()
    path = folder / f"incoming-{secrets.token_hex(16)}"
    digest, size = hashlib.md5(usedforsecurity=False), 0
    try:
        with path.open("xb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > MOST_BYTES:
                    raise _too_large()
                digest.update(chunk)
                file.write(chunk)
        yield Spool(path, size, digest.digest())
    finally:
        path.unlink(missing_ok=True)


async def drained(chunks: AsyncIterator[bytes]) -> None:
    """What is left of it is read, within the same bound, and forgotten."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > MOST_BYTES:
            return


def _too_large() -> GcsError:
    return GcsError(
        "EntityTooLarge", f"The Lab takes at most {MOST_BYTES} bytes in one request: send it in parts, of 64 MiB each."
    )
