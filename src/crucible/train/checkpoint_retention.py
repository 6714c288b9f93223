"""How many checkpoints stay. The newest `keep` valid ones do, and never fewer than two: the newest may turn out bad
when it is needed. What may still be a save in progress is removed by age only."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from typing import Iterator, List, Set

from .checkpoint_layout import DRAFT, PARTS, TMP, editions, is_manifest
from .checkpoint_manifest import InvalidManifest
from .checkpoint_shards import list_names, read_manifest
from .checkpoint_store import CheckpointStore

MIN_KEEP = 2
# A save that has written nothing for so long is dead.
STALE_S = 3600.0


def retain(store: CheckpointStore, keep: int) -> List[int]:
    """Remove what is older than the newest `keep` valid checkpoints; returns the steps removed, newest first. Of steps
    that lack shards the newest `keep` stay: here the others may never come, where ranks of other machines save them."""
    wanted = max(keep, MIN_KEEP)
    valid, pending, old = 0, 0, []
    for step in store.steps():
        found = editions(list_names(store.folder(step)))
        is_pending = not any(edition.is_complete for edition in found)
        if found and (valid == wanted or (is_pending and pending == wanted)):
            old.append(step)
        elif found and is_pending:
            pending += 1
        elif valid < wanted:
            valid += store.is_valid(step)
    for step in old:
        store.discard(step)
    return old


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


def _used_names(folder: str) -> Set[str]:
    """Empty if nothing was committed. An unreadable manifest protects everything: it may be read again one day."""
    names = list_names(folder)
    manifests = [name for name in names if is_manifest(name)]
    try:
        return {read_manifest(folder, name).manifest.root for name in manifests} | set(manifests)
    except (OSError, InvalidManifest):
        return set(names)


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
