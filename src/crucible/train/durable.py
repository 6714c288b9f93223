"""Files that survive a crash: copied with their hash, flushed, and put in place without overwriting. Knows nothing of
checkpoints."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import Tuple

CHUNK = 1 << 20

# What file systems without hard links answer to link(2).
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


def copy_hashed(source: str, target: str) -> Tuple[int, str]:
    """Copy a regular file durably; returns the size and SHA-256 of the bytes that were written."""
    # O_NONBLOCK: opening a pipe would otherwise wait for a writer for ever.
    reader = os.open(source, os.O_RDONLY | os.O_NONBLOCK)
    with open(reader, "rb", buffering=0) as old:
        if not stat.S_ISREG(os.fstat(old.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", source)
        with open(target, "xb", buffering=0) as new:
            digest, size = hashlib.sha256(), 0
            for chunk in iter(lambda: old.read(CHUNK), b""):
                digest.update(chunk)
                write_all(new.fileno(), chunk)
                size += len(chunk)
            os.fsync(new.fileno())
    return size, digest.hexdigest()


def file_sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        for chunk in iter(lambda: file.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


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
