"""Files that survive a crash: copied with their hash, flushed, and put in place without overwriting. Knows nothing of
checkpoints."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import stat
import sys
from typing import Callable, Iterator, Optional, Tuple

CHUNK = 1 << 20
# In one call to the kernel: bounded, so that a signal is heard now and then.
COPY_BYTES = 256 << 20

# What file systems without hard links answer to link(2).
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


def copy_hashed(source: str, target: str, piece_bytes: int) -> Tuple[int, Tuple[str, ...]]:
    """Copy a regular file durably; returns the size of what was written and the SHA-256 of each of its pieces."""
    with open_plain(source) as old, open(target, "xb", buffering=0) as new:
        pieces = tuple(_hashed(old, piece_bytes, lambda chunk: write_all(new.fileno(), chunk)))
        os.fsync(new.fileno())
        return new.tell(), pieces


def copy_quickly(source: str, target: str) -> None:
    """Copy a regular file. Where the file system can, it shares the blocks or moves them by itself; not flushed."""
    with open_plain(source) as old, open(target, "xb", buffering=0) as new:
        _copy_in_kernel(old.fileno(), new.fileno())
        for chunk in iter(lambda: old.read(CHUNK), b""):
            write_all(new.fileno(), chunk)


def settle(path: str, piece_bytes: int) -> Tuple[int, Tuple[str, ...]]:
    """Flush a file; returns its size and the SHA-256 of each of its pieces."""
    with open(path, "rb", buffering=0) as file:
        pieces = tuple(_hashed(file, piece_bytes, lambda chunk: None))
        os.fsync(file.fileno())
        return file.tell(), pieces


def file_pieces(path: str, piece_bytes: Optional[int]) -> Tuple[str, ...]:
    """The SHA-256 of each piece of a file; None: it is one piece. An empty file has none."""
    with open(path, "rb", buffering=0) as file:
        return tuple(_hashed(file, piece_bytes or sys.maxsize, lambda chunk: None))


def open_plain(path: str) -> io.FileIO:
    """A regular file to read, or an OSError: opening a pipe would wait for a writer for ever."""
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def _copy_in_kernel(old: int, new: int) -> None:
    """As far as it gets; the offsets of both files say how far that is, and whoever goes on sees the real error."""
    with contextlib.suppress(AttributeError, OSError):  # not on this system, or not between these two
        while os.copy_file_range(old, new, COPY_BYTES):
            pass


def _hashed(file: io.FileIO, piece_bytes: int, take: Callable[[bytes], None]) -> Iterator[str]:
    left = 0
    while not left:
        digest, left = hashlib.sha256(), piece_bytes
        while left:
            chunk = file.read(min(CHUNK, left))
            if not chunk:
                break
            digest.update(chunk)
            take(chunk)
            left -= len(chunk)
        if left < piece_bytes:
            yield digest.hexdigest()


def write_new(path: str, data: bytes) -> None:
    """A new file with `data`, flushed; FileExistsError if the name is taken."""
    with open(path, "xb", buffering=0) as file:
        write_all(file.fileno(), data)
        os.fsync(file.fileno())


def publish(draft: str, target: str) -> bool:
    """Give the flushed file `draft` its final name; False if `target` exists. Never overwrites, never shows half a
    file, save where the file system has no links: there a crash may leave half of it, which its digest gives away."""
    try:
        os.link(draft, target)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return _publish_by_copy(draft, target)
    return True


def _publish_by_copy(draft: str, target: str) -> bool:
    with open(draft, "rb") as file:
        data = file.read()
    try:
        write_new(target, data)
    except FileExistsError:
        return False
    return True


def write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def sync_folder(path: str) -> None:
    """Make the names in a folder durable. Some network file systems cannot; they have no more to offer."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(folder)


def make_folder(path: str) -> None:
    """`path` and what is missing above it, durably."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_folder(parent)
    try:
        os.mkdir(path)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
    sync_folder(parent)
