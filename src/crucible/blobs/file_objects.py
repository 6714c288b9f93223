"""Objects on a folder: a key is a path below it. What is put is on disk before anybody sees it, and is whole or not
there, also after a power cut. Other programs may write files below the folder too: they are objects like the rest."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeVar

from crucible.blobs import file_writing as writing
from crucible.blobs.keys import whole_key
from crucible.model.errors import InvalidRequest, NotFound, StorageFailed, StorageRefused
from crucible.model.storage import Address
from crucible.ports.objects import Method, ObjectFacts, Signed

T = TypeVar("T")

# Read, and written, by one call to a thread.
CHUNK_BYTES = 1 << 20

# A request of this method for this key of this folder, for so long.
Sign = Callable[[Method, Address, str, timedelta], Signed]


class FileObjects:
    def __init__(self, address: Address, sign: Sign) -> None:
        self.address = address
        self._root = Path(address.prefix)
        self._sign = sign

    async def put(self, key: str, body: bytes, *, only_if_absent: bool = False, only_if_etag: str | None = None) -> str:
        condition = writing.Condition(only_if_absent, only_if_etag)
        return await self._change(writing.write, self._path(key), body, condition)

    async def put_stream(self, key: str, body: AsyncIterator[bytes]) -> int:
        part, size = writing.Part(self._path(key)), 0
        try:
            await self._change(part.open)
            async for chunk in _gathered(body):
                await self._run(part.append, chunk)
                size += len(chunk)
            await self._run(part.publish, writing.ALWAYS)
            return size
        finally:
            await self._run(part.close)

    async def get(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        return await self._run(_read, self._path(key), start, length)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        handle = _guarded(self.address, _opened, self._path(key))
        try:
            while chunk := await self._run(os.read, handle, CHUNK_BYTES):
                yield chunk
        finally:
            os.close(handle)

    async def head(self, key: str) -> ObjectFacts | None:
        try:
            return await self._run(_facts, key, self._path(key))
        except NotFound:
            return None

    async def list(self, prefix: str = "", *, after: str = "") -> AsyncIterator[ObjectFacts]:
        base = prefix.rpartition("/")[0]
        if base:
            self._path(base)  # nothing outside is listed either
        found = _below(self._root, base, prefix, after)
        while batch := await self._run(_some, found):
            for facts in batch:
                yield facts

    async def delete(self, keys: Sequence[str]) -> None:
        await self._run(writing.remove, self._root, [self._path(key) for key in keys])

    async def sign(self, method: Method, keys: Sequence[str], expires_in: timedelta) -> Sequence[Signed]:
        for key in keys:
            self._path(key)
        return [self._sign(method, self.address, key, expires_in) for key in keys]

    def _path(self, key: str) -> Path:
        path = self._root / whole_key("", key)
        if writing.is_unfinished(path.name):
            raise InvalidRequest(f"{path.name} cannot name an object here: files of that name are unfinished ones")
        return path

    async def _change(self, work: Callable[..., T], *args: Any) -> T:
        try:
            return await self._run(work, *args)
        except NotFound:
            raise StorageRefused(f"{self.address.uri} cannot be made; name a folder that the server may make") from None

    async def _run(self, work: Callable[..., T], *args: Any) -> T:
        """Whoever is cancelled waits for the thread: a handle must not be closed, and used again, under its hands."""
        working = asyncio.ensure_future(asyncio.to_thread(_guarded, self.address, work, *args))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            while not working.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([working])
            working.exception()  # nobody else will look at it
            raise


def _guarded(address: Address, work: Callable[..., T], *args: Any) -> T:
    try:
        return work(*args)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no such object in {address.uri}") from error
    except OSError as error:
        raise _trouble(address, error) from error


def _trouble(address: Address, error: OSError) -> StorageFailed | StorageRefused:
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StorageRefused(f"{address.uri} may not be used: {error.strerror}; give the server the right to it")
    if error.errno in (errno.EEXIST, errno.EISDIR, errno.ENOTEMPTY, errno.ENAMETOOLONG, errno.ELOOP):
        return StorageRefused(
            f"{address.uri} cannot hold that key ({error.strerror}); a file is no folder: choose another"
        )
    return StorageFailed(f"{address.uri} failed: {error.strerror or error}; check the disk and its space")


def _opened(path: Path) -> int:
    """Never waits, as a pipe would, and follows no link to somewhere else."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    if S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise FileNotFoundError(path)


def _read(path: Path, start: int, length: int | None) -> bytes:
    handle = _opened(path)
    try:
        left = max(0, os.fstat(handle).st_size - start)
        left = left if length is None else min(left, length)
        pieces = []
        while left > 0 and (piece := os.pread(handle, left, start)):
            pieces.append(piece)
            start, left = start + len(piece), left - len(piece)
        return b"".join(pieces)
    finally:
        os.close(handle)


def _facts(key: str, path: Path) -> ObjectFacts:
    found = path.lstat()
    if not S_ISREG(found.st_mode):
        raise FileNotFoundError(path)
    return ObjectFacts(key, found.st_size, writing.etag_of(found), datetime.fromtimestamp(found.st_mtime, UTC))


# Files looked at by one call to a thread.
_BATCH = 500


def _some(found: Iterator[ObjectFacts]) -> list[ObjectFacts]:
    return list(islice(found, _BATCH))


def _below(root: Path, folder: str, prefix: str, after: str) -> Iterator[ObjectFacts]:
    """In the order of keys, which is not that of file names: `a.b` comes before `a/b`, and `a/b` before `a0`."""
    for key, is_folder in _entries(root, folder):
        inside = key + "/" if is_folder else key
        if is_folder and (inside.startswith(prefix) or prefix.startswith(inside)):
            if not inside.encode() < after.encode() or after.startswith(inside):
                yield from _below(root, key, prefix, after)
        elif not is_folder and key.startswith(prefix) and key.encode() > after.encode():
            try:
                yield _facts(key, root / key)
            except FileNotFoundError:
                pass  # removed while we looked


def _entries(root: Path, folder: str) -> list[tuple[str, bool]]:
    """What lies in a folder, as keys. A name that is no text is nobody's object."""
    found = []
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if writing.is_unfinished(entry.name):
                    writing.remove_abandoned(Path(entry.path))
                elif (is_folder or entry.is_file(follow_symlinks=False)) and _is_text(entry.name):
                    found.append((f"{folder}/{entry.name}" if folder else entry.name, is_folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda one: (one[0] + "/" if one[1] else one[0]).encode())


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _gathered(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A network gives little at a time; a thread is worth its while for more."""
    pending = bytearray()
    async for chunk in body:
        pending += chunk
        if len(pending) >= CHUNK_BYTES:
            yield bytes(pending)
            pending.clear()
    if pending:
        yield bytes(pending)
