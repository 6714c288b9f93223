"""Datasets on the disk of a node, found again by every later attempt. They are kept as long as there is room: then the
one goes that was longest not used, and never one that an attempt uses.

CACHE/datasets/<digest>/tree        the files; a whole one only
CACHE/datasets/<digest>/manifest
CACHE/datasets/.part-<digest>       one on its way
CACHE/datasets/.lock-<digest>       held by the agent that brings it: several agents of a host share the cache
CACHE/datasets/.uses/<digest>/…     a file for each attempt that uses it, with the folder of the attempt: a use ends
                                    when that folder is gone, whoever died meanwhile
"""

from __future__ import annotations

import hashlib
import os

from . import dataset_tree, disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List

# Of the disk, this much stays free for what jobs write.
RESERVE_BYTES = 256 << 20
_PART, _GONE = ".part-", ".gone-"


class Cache:
    def __init__(self, folder: str) -> None:
        self.folder = os.path.join(folder, "datasets")

    def entry(self, digest: str) -> str:
        return os.path.join(self.folder, digest)

    def part(self, digest: str) -> str:
        return os.path.join(self.folder, _PART + digest)

    def lock(self, digest: str) -> str:
        return os.path.join(self.folder, ".lock-" + digest)

    def use(self, digest: str, attempt: str) -> None:
        """Until the folder of the attempt is gone. Raises OSError."""
        uses = self._uses(digest)
        os.makedirs(uses, mode=0o755, exist_ok=True)
        path = os.path.join(uses, hashlib.sha256(attempt.encode()).hexdigest()[:32])
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(attempt)
        os.replace(path + ".tmp", path)

    def touch(self, digest: str) -> None:
        os.utime(self.entry(digest))

    def is_used(self, digest: str) -> bool:
        used = False
        for name in _names(self._uses(digest)):
            path = os.path.join(self._uses(digest), name)
            try:
                with open(path, encoding="utf-8") as file:
                    used = os.path.isdir(file.read()) or used
            except OSError:
                continue
        return used

    def make_room(self, size: int, digest: str) -> bool:
        """Whether `size` bytes more fit, once what nobody uses has gone."""
        for other in [*self._oldest_first(digest), None]:
            if size + RESERVE_BYTES <= free_bytes(self.folder):
                return True
            if other is not None:
                self._evict(other)
        return False

    def _oldest_first(self, but: str) -> List[str]:
        """Half of one before whole ones."""
        names = [name for name in _names(self.folder) if len(name[-64:]) == 64 and name[-64:] != but]
        parts = [name for name in names if name.startswith(_PART)]
        wholes = [name for name in names if len(name) == 64]
        return parts + sorted(wholes, key=lambda name: _changed_at(self.entry(name)))

    def _evict(self, name: str) -> None:
        """Out of sight first: nobody must find half of it. Whoever has its lock is about to use it."""
        digest = name[-64:]
        lock = disk.take_lock(self.lock(digest))
        if lock is None:
            return
        gone = os.path.join(self.folder, _GONE + os.urandom(8).hex())
        try:
            if name.startswith(_PART) or not self.is_used(digest):
                os.rename(os.path.join(self.folder, name), gone)
        except OSError:
            return
        finally:
            os.close(lock)
        dataset_tree.remove(gone)

    def tidy(self) -> None:
        """What an agent that died was removing."""
        for name in _names(self.folder):
            if name.startswith(_GONE):
                dataset_tree.remove(os.path.join(self.folder, name))

    def _uses(self, digest: str) -> str:
        return os.path.join(self.folder, ".uses", digest)


def free_bytes(folder: str) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _names(folder: str) -> List[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
