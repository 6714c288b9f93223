"""How many checkpoints stay. The newest `keep` valid ones do, and never fewer than two: the newest may turn out bad
when it is needed. What may still be a save in progress is removed by age only."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import Iterator, List, Set

from .checkpoint_manifest import InvalidManifest, decode
from .checkpoint_store import DRAFT, MANIFEST, PARTS, TMP, CheckpointStore

MIN_KEEP = 2
# A save that has written nothing for so long is dead.
STALE_S = 3600.0


def retain(store: CheckpointStore, keep: int) -> List[int]:
    """Remove what is older than the newest `keep` valid checkpoints; returns the steps removed, newest first."""
    wanted, seen = max(keep, MIN_KEEP), 0
    steps = store.steps()
    for place, step in enumerate(steps):
        seen += store.is_valid(step)
        if seen == wanted:
            old = [step for step in steps[place + 1 :] if _has_manifest(store, step)]
            for step in old:
                store.discard(step)
            return old
    return []


def sweep(store: CheckpointStore, stale_s: float = STALE_S) -> None:
    """Remove what dead savers left: drafts and parts that no manifest names."""
    oldest = time.time() - stale_s
    for step in store.steps():
        folder = store.folder(step)
        used = _used_names(folder)
        for path in _leftovers(folder, used):
            if _newest_change(path) < oldest:
                _remove(path)
        if not used and _newest_change(folder) < oldest:
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _has_manifest(store: CheckpointStore, step: int) -> bool:
    return os.path.exists(os.path.join(store.folder(step), MANIFEST))


def _used_names(folder: str) -> Set[str]:
    """Empty if nothing was committed. An unreadable manifest protects everything: it may be read again one day."""
    try:
        with open(os.path.join(folder, MANIFEST), "rb") as file:
            return {MANIFEST, decode(file.read()).root}
    except FileNotFoundError:
        return set()
    except (OSError, InvalidManifest):
        return set(os.listdir(folder))


def _leftovers(folder: str, used: Set[str]) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.startswith((TMP, PARTS, DRAFT)) and name not in used:
                yield os.path.join(folder, name)


def _newest_change(path: str) -> float:
    """Of the whole tree: a long copy changes only the file that it writes."""
    newest = _changed_at(path)
    for folder, names, files in os.walk(path):
        for name in names + files:
            newest = max(newest, _changed_at(os.path.join(folder, name)))
    return newest


def _changed_at(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)
