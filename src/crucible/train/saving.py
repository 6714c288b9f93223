"""Checkpoints of this run: where they are, how many stay, and that the agent hears of them."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional

from .checkpoint_manifest import Origin
from .checkpoint_retention import MIN_KEEP, retain, sweep
from .checkpoint_store import Checkpoint, CheckpointError, CheckpointStore, CorruptCheckpoint, FilePath, valid_step
from .events import emit
from .run_info import init
from .stderr import warn

LOCATION = "CRUCIBLE_CHECKPOINTS"
KEEP = "CRUCIBLE_CHECKPOINT_KEEP"
DEFAULT_LOCATION = "checkpoints"

_stores: Dict[str, CheckpointStore] = {}


def save_checkpoint(path: FilePath, step: int, metadata: Optional[Mapping[str, Any]] = None) -> Checkpoint:
    """Commit the file or folder `path` as the checkpoint of `step`; `path` is copied and stays yours. One checkpoint
    per step: the first commit wins, and every later caller gets that one. Raises CheckpointError."""
    at = valid_step(step)
    emit("checkpoint_began", step=at)
    try:
        saved = _store().commit(path, at, metadata, _origin())
    except CheckpointError as error:
        emit("checkpoint_failed", step=at, reason=str(error)[:1000])
        raise
    emit(
        "checkpoint",
        step=saved.step,
        uri=saved.uri,
        size_bytes=saved.size_bytes,
        manifest_sha256=saved.manifest_sha256,
        metadata=saved.metadata,
    )
    _tidy()
    return saved


def latest_checkpoint() -> Optional[Checkpoint]:
    """The newest checkpoint whose every byte is right; says on stderr which newer ones it passed over, and why."""
    return _store().latest(on_skip=_say_skipped)


def checkpoints() -> List[Checkpoint]:
    """Oldest first. Checked by manifest and sizes; `latest_checkpoint` and `checkpoint_at` check the content."""
    return _store().committed()[::-1]


def checkpoint_at(step: int) -> Optional[Checkpoint]:
    """The checkpoint of `step`, if there is one and every byte of it is right."""
    return _store().find(valid_step(step))


def _store() -> CheckpointStore:
    location = os.environ.get(LOCATION) or os.path.abspath(DEFAULT_LOCATION)
    if location not in _stores:
        _stores[location] = CheckpointStore(location)
    return _stores[location]


def _origin() -> Origin:
    run = init()
    return Origin(world_size=run.world_size, rank=run.rank, job_id=run.job_id, attempt=run.attempt)


def _tidy() -> None:
    """Keeps everything unless a number is set. Failing to clean up is no reason to stop training."""
    keep = os.environ.get(KEEP, "")
    try:
        if keep.isdigit():
            retain(_store(), max(int(keep), MIN_KEEP))
        sweep(_store())
    except (OSError, CheckpointError) as error:
        warn("old checkpoints could not be removed: {}".format(error))


def _say_skipped(problem: CorruptCheckpoint) -> None:
    warn("{}; an older one is looked for".format(problem))
