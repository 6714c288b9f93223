"""How a file becomes an object: written beside its place, flushed, and moved there under the lock of its folder. So of
several writers, also in other processes, each sees what the one before it did."""

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crucible.model.errors import Conflict

_UNFINISHED = re.compile(r"\.unfinished-[0-9a-f]{16}\Z")
# What a crash cut off: no write takes that long, even of a server that shares the folder.
_ABANDONED_AFTER_S = 24 * 3600
# Somebody may remove the folder, being empty, between making it and writing into it.
_TRIES = 10


@dataclass(frozen=True, slots=True)
class Condition:
    only_if_absent: bool = False
    only_if_etag: str | None = None


ALWAYS = Condition()


class Part:
    """An object that nobody sees yet."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._path: Path | None = None
        self._handle = -1

    def open(self) -> None:
        for _ in range(_TRIES - 1):
            with suppress(FileNotFoundError):
                return self._open()
        return self._open()

    def append(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._handle, view) :]

    def publish(self, condition: Condition) -> str:
        """Returns the etag. Raises Conflict."""
        assert self._path is not None
        os.fsync(self._handle)
        with _locked(self._target.parent):
            _check(self._target, condition)
            self._path.rename(self._target)
        self._path = None
        return etag_of(os.fstat(self._handle))

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _open(self) -> None:
        _make(self._target.parent)
        path = self._target.with_name(f".unfinished-{secrets.token_hex(8)}")
        self._handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        self._path = path


def write(target: Path, body: bytes, condition: Condition) -> str:
    part = Part(target)
    try:
        part.open()
        part.append(body)
        return part.publish(condition)
    finally:
        part.close()


def remove(root: Path, paths: Sequence[Path]) -> None:
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            path.unlink()
    for folder in {path.parent for path in paths}:
        with suppress(FileNotFoundError, NotADirectoryError):
            _flush(folder)
            _remove_empty(root, folder)


def remove_abandoned(path: Path) -> None:
    with suppress(FileNotFoundError):
        if path.lstat().st_mtime < time.time() - _ABANDONED_AFTER_S:
            path.unlink()


def is_unfinished(name: str) -> bool:
    return _UNFINISHED.match(name) is not None


def etag_of(found: os.stat_result) -> str:
    """Every put makes a new file, so these three change."""
    return f"{found.st_ino:x}-{found.st_mtime_ns:x}-{found.st_size:x}"


def _make(folder: Path) -> None:
    """With the folders above; each is on disk before something is in it."""
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _flush(folder.parent)


def _check(target: Path, condition: Condition) -> None:
    try:
        etag = etag_of(target.lstat())
    except FileNotFoundError:
        etag = None
    if condition.only_if_absent and etag is not None:
        raise Conflict(f"there is an object {target.name} already")
    if condition.only_if_etag is not None and etag != condition.only_if_etag:
        raise Conflict(f"the object {target.name} has changed since it was read")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """And on disk, when it is let go."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_empty(root: Path, folder: Path) -> None:
    with suppress(OSError):  # something is in it, or somebody else was quicker
        while folder != root and root in folder.parents:
            folder.rmdir()
            folder = folder.parent
