"""The names in a store of checkpoints, and which manifests belong together. Pure; touches no file.

step-000000300/
    parts-5f0c…/                            the files, renamed from .tmp-5f0c… when all were flushed
    manifest.json                           of a checkpoint that one process saved; or, where every rank saved
    manifest-00002-00000-of-00002.json      its part, one manifest each: attempt, shard, shards
    manifest-00002-00001-of-00002.json
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

MANIFEST = "manifest.json"
DRAFT = ".manifest-"
TMP = ".tmp-"
PARTS = "parts-"

MAX_STEP = 10**18 - 1

_STEP = re.compile(r"step-([0-9]{9,18})\Z")
_SHARD = re.compile(r"manifest-([0-9]{5,9})-([0-9]{5})-of-([0-9]{5})\.json\Z")


class Edition(NamedTuple):
    """What may be the checkpoint of a step: manifest.json, or the shards of one attempt."""

    attempt: Optional[int]  # None: manifest.json, whoever saved it
    shards: int
    present: int

    @property
    def is_complete(self) -> bool:
        return self.present == self.shards

    @property
    def names(self) -> List[str]:
        if self.attempt is None:
            return [MANIFEST]
        return [shard_name(self.attempt, shard, self.shards) for shard in range(self.shards)]


def editions(names: Iterable[str]) -> List[Edition]:
    """Those that a step's folder has anything of, the newest attempt first, manifest.json last."""
    found: Dict[Tuple[int, int], Set[int]] = {}
    has_single = False
    for name in names:
        has_single = has_single or name == MANIFEST
        place = _shard_of(name)
        if place is not None:
            attempt, shard, shards = place
            found.setdefault((attempt, shards), set()).add(shard)
    sharded = [Edition(attempt, shards, len(found[attempt, shards])) for attempt, shards in sorted(found, reverse=True)]
    return sharded + ([Edition(None, 1, 1)] if has_single else [])


def is_manifest(name: str) -> bool:
    return name == MANIFEST or _shard_of(name) is not None


def shard_name(attempt: int, shard: int, shards: int) -> str:
    return "manifest-{:05d}-{:05d}-of-{:05d}.json".format(attempt, shard, shards)


def folder_name(step: int) -> str:
    return "step-{:09d}".format(step)


def step_of(name: str) -> Optional[int]:
    match = _STEP.match(name)
    step = int(match.group(1)) if match else -1
    return step if folder_name(step) == name else None


def _shard_of(name: str) -> Optional[Tuple[int, int, int]]:
    match = _SHARD.match(name)
    if match is None:
        return None
    attempt, shard, shards = (int(group) for group in match.groups())
    return (attempt, shard, shards) if shard < shards and shard_name(attempt, shard, shards) == name else None
