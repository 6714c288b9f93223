"""The checkpoints of one task on this node, and what is known of those in storage. Shared by the ranks of the task."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque

from .manifests import MAX_NODE_BYTES
from .stowing import known, known_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, List, Optional

    from .manifests import NodeManifest, StoredManifest, Stowed
    from .stowing import Known

MANIFEST = "manifest.json"
# Manifests that are in storage, by digest. A rank that saves a step again means one of the last.
_REMEMBERED = 1000


class Hold:
    def __init__(self, folder: str) -> None:
        # Without links in it: files are taken only from where they seem to be.
        self.folder = os.path.realpath(folder)
        self._lock = threading.Lock()
        self._restored: List[Known] = []
        self._uploaded: Dict[int, List[Known]] = {}
        self._stored: Deque[str] = deque(maxlen=_REMEMBERED)

    def step_folder(self, step: int) -> str:
        return os.path.join(self.folder, "step-%09d" % step)

    def manifest_path(self, event: Dict[str, Any], attempt: int) -> str:
        """Of what a rank of that attempt saved: whole, or its own shard."""
        folder = self.step_folder(event["step"])
        own = os.path.join(folder, shard_name(attempt, event["shard"], event["shards"]))
        return own if _sha256(own) == event["manifest_sha256"] else os.path.join(folder, MANIFEST)

    def restored(self, stored: List[StoredManifest]) -> None:
        with self._lock:
            self._restored = known_of(stored)
            self._uploaded = {}
            self._stored.extend(each.node.sha256 for each in stored)

    def keep(self, rank: int, node: NodeManifest, objects: List[Stowed]) -> None:
        """This one is committed, and the newest of its rank."""
        with self._lock:
            self._uploaded[rank] = known(node, objects)
            self._stored.append(node.sha256)

    def known(self, rank: int) -> List[Known]:
        """Objects of the newest committed checkpoint."""
        with self._lock:
            return self._uploaded.get(rank, self._restored)

    def has(self, sha256: str) -> bool:
        """Whether a manifest of the node is in storage."""
        with self._lock:
            return sha256 in self._stored


def manifest_name(node: NodeManifest) -> str:
    return MANIFEST if node.shards == 1 else shard_name(node.attempt, node.shard, node.shards)


def shard_name(attempt: int, shard: int, shards: int) -> str:
    return "manifest-%05d-%05d-of-%05d.json" % (attempt, shard, shards)


def _sha256(path: str) -> Optional[str]:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(MAX_NODE_BYTES + 1)).hexdigest()
    except OSError:
        return None
