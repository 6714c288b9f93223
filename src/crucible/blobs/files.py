"""Blobs on a folder: `<root>/<first two letters>/<digest>`. A blob is written beside, checked, and moved into place; it
is never changed. Nothing here unpacks anything."""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import mkstemp
from typing import Any, TypeVar

from crucible.model.errors import InvalidRequest, NotFound, StorageFailed, TooLarge
from crucible.model.ids import Digest

T = TypeVar("T")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 256 << 10
# An upload that a crash cut off: no upload takes that long, even from a server that shares the folder.
_ABANDONED_AFTER_S = 24 * 3600
# Found by one look.
_MOST_UNUSED = 5000


class FileBlobs:
    def __init__(self, root: Path, *, inline: bool = False) -> None:
        """`inline` does all file work in the caller's thread, for an event loop whose time is simulated."""
        self._root = root
        self._inline = inline
        self._unfinished = root / "unfinished"
        _guard(self._prepare)

    async def has(self, digest: Digest) -> bool:
        path = self._path(digest)
        try:
            os.utime(path)
        except FileNotFoundError:
            return False
        except OSError:
            return path.is_file()  # a folder that may only be read: nothing is removed there either
        return True

    async def unused(self, since: datetime) -> Sequence[Digest]:
        return await self._run(_unused, self._root, since.timestamp())

    async def remove(self, digest: Digest, since: datetime) -> int:
        return await self._run(_remove, self._path(digest), since.timestamp())

    async def put(self, digest: Digest, body: AsyncIterator[bytes], limit_bytes: int) -> int:
        target = self._path(digest)
        handle, name = _guard(mkstemp, dir=self._unfinished)
        try:
            size = await self._receive(handle, digest, body, limit_bytes)
            await self._run(_publish, name, target)
            return size
        except BaseException:
            _guard(os.unlink, name)
            raise
        finally:
            os.close(handle)

    def get(self, digest: Digest) -> AsyncIterator[bytes]:
        path = self._path(digest)
        if not path.is_file():
            raise NotFound(f"no package {digest}; upload it with PUT /v1/packages/{digest}")
        return self._chunks(path)

    async def _receive(self, handle: int, digest: Digest, body: AsyncIterator[bytes], limit_bytes: int) -> int:
        hashed = hashlib.sha256()
        size = 0
        async for chunk in body:
            size += len(chunk)
            if size > limit_bytes:
                raise TooLarge(f"the package is larger than {limit_bytes} bytes; ship less", limit_bytes=limit_bytes)
            hashed.update(chunk)
            _guard(_write, handle, chunk)
        if hashed.hexdigest() != digest:
            raise InvalidRequest(f"the content has the digest {hashed.hexdigest()}, not {digest}; send it again")
        await self._run(os.fsync, handle)
        return size

    async def _chunks(self, path: Path) -> AsyncIterator[bytes]:
        handle = _guard(os.open, path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while chunk := await self._run(os.read, handle, _CHUNK_BYTES):
                yield chunk
        finally:
            os.close(handle)

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        if self._inline:
            return _guard(work, *args)
        return await asyncio.to_thread(_guard, work, *args)

    def _path(self, digest: Digest) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise InvalidRequest("a package is named by its sha256 in lower-case hex", field="digest")
        return self._root / digest[:2] / digest

    def _prepare(self) -> None:
        self._unfinished.mkdir(parents=True, exist_ok=True)
        oldest = time.time() - _ABANDONED_AFTER_S
        for path in self._unfinished.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)


def _guard(work: Callable[..., T], *args: Any, **options: Any) -> T:
    try:
        return work(*args, **options)
    except OSError as error:
        raise StorageFailed(f"cannot store packages: {error}; check disk space and rights") from error


def _write(handle: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(handle, view) :]


def _unused(root: Path, since: float) -> list[Digest]:
    found = (path for path in root.glob("??/*") if _DIGEST.fullmatch(path.name) and path.stat().st_mtime < since)
    return [Digest(path.name) for path in islice(found, _MOST_UNUSED)]


def _remove(path: Path, since: float) -> int:
    """Looked at and removed in one go: whoever asked for it a moment ago has it."""
    try:
        found = path.stat()
        if found.st_mtime >= since:
            return 0
        path.unlink()
    except FileNotFoundError:
        return 0
    return found.st_size


def _publish(name: str, target: Path) -> None:
    """Whole or not at all, also after a power cut: the name appears only once the content is on disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    Path(name).replace(target)
    for folder in (target.parent, target.parent.parent):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
