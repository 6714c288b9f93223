"""The environments that a machine keeps: so many, so large; the least recently used go, never one in use."""

from __future__ import annotations

import os

from . import disk
from .environment import COMPLETE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

# A machine serves few kinds of jobs; one environment with CUDA's libraries takes 5 to 10 GiB.
MOST = 16
MOST_BYTES = 64 << 30
# Marks and locks of what is gone are tiny; after so many the oldest go.
_MOST_MARKS = 1000
_GONE = ".gone-"


def prune(folder: str, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
    """Whole or not at all: out of sight by a rename, then off the disk. Raises OSError if the folder cannot be made."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    names = os.listdir(folder)
    for name in names:
        if name.startswith(_GONE):
            disk.remove(os.path.join(folder, name))
    kept = total = 0
    for path, size in _newest_first(folder, names):
        kept, total = kept + 1, total + size
        if (kept > most or total > most_bytes) and _remove(path):
            kept, total = kept - 1, total - size
    marks = sorted((os.path.join(folder, name) for name in names if name.endswith(".own")), key=_age)
    for path in marks[:-_MOST_MARKS]:
        os.unlink(path)


def _newest_first(folder: str, names: List[str]) -> List[Tuple[str, int]]:
    paths = [os.path.join(folder, name) for name in names if len(name) == 64]
    used = sorted(((_age(os.path.join(path, COMPLETE)), path) for path in paths), reverse=True)
    return [(path, _bytes(path)) for _, path in used]


def _age(path: str) -> float:
    """0 for what was never completed: it goes first."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _bytes(path: str) -> int:
    return int((disk.read_json(os.path.join(path, COMPLETE)) or {}).get("bytes") or 0)


def _remove(path: str) -> bool:
    """False if somebody uses it or makes it."""
    held = disk.take_lock(path + ".lock")
    if held is None:
        return False
    gone = os.path.join(os.path.dirname(path), _GONE + os.urandom(8).hex())
    try:
        os.rename(path, gone)
    except OSError:
        return False
    finally:
        os.close(held)
    disk.remove(gone)
    return True
