"""Checkpoints of this run: where they are, how many stay, and that the agent hears of them."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any, Dict, Iterator, List, Literal, Mapping, Optional, Tuple, Union, overload

from .background import Saving, saves
from .checkpoint_manifest import Origin
from .checkpoint_request import CheckpointError, CorruptCheckpoint, FilePath, valid_step
from .checkpoint_retention import MIN_KEEP, retain, sweep
from .checkpoint_store import Checkpoint, CheckpointStore, Taken
from .events import emit
from .pace import pace
from .run_info import init
from .stderr import warn, warn_once

LOCATION = "CRUCIBLE_CHECKPOINTS"
KEEP = "CRUCIBLE_CHECKPOINT_KEEP"
DEFAULT_LOCATION = "checkpoints"

_stores: Dict[Tuple[str, Origin], CheckpointStore] = {}


@overload
def save_checkpoint(
    path: FilePath,
    step: int,
    metadata: Optional[Mapping[str, Any]] = None,
    *,
    sharded: bool = False,
    background: Literal[False] = False,
) -> Checkpoint: ...


@overload
def save_checkpoint(
    path: FilePath,
    step: int,
    metadata: Optional[Mapping[str, Any]] = None,
    *,
    sharded: bool = False,
    background: Literal[True],
) -> Saving: ...


def save_checkpoint(
    path: FilePath,
    step: int,
    metadata: Optional[Mapping[str, Any]] = None,
    *,
    sharded: bool = False,
    background: bool = False,
) -> Union[Checkpoint, Saving]:
    """Commit the file or folder `path` as the checkpoint of `step`; `path` is copied and stays yours. One checkpoint
    per step: the first commit wins, and every later caller gets that one. Raises CheckpointError.

    `sharded`: every rank saves its part, and the checkpoint is there when all have. `background`: returns when the
    content is copied; the rest is done beside the training, one save at a time. The next call raises what went wrong
    with the one before, after it has taken its own content."""
    began, at = time.monotonic(), valid_step(step)
    with saves.turn() as before, _told(at):
        emit("checkpoint_began", step=at)
        store = _store()
        if sharded:
            _check_attempt(store.origin)
        if background:
            taken = store.take(path, at, metadata, is_sharded=sharded)
            saved: Union[Checkpoint, Saving] = saves.start(at, lambda: _finish(store, taken, began))
        else:
            saved = _done(store, store.commit(path, at, metadata, is_sharded=sharded), began, sharded)
    pace.saved(began, time.monotonic())
    if background and before is not None:
        before.raise_untold()
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
    run = init()
    origin = Origin(world_size=run.world_size, rank=run.rank, job_id=run.job_id, attempt=run.attempt)
    if (location, origin) not in _stores:
        _stores[location, origin] = CheckpointStore(location, origin)
    return _stores[location, origin]


def _check_attempt(origin: Origin) -> None:
    if origin.attempt == 0 and origin.world_size > 1:
        warn_once(
            "attempt",
            "shards are told apart by the attempt, and nobody counts attempts here: set CRUCIBLE_ATTEMPT to a number "
            "that grows with every start, or what two runs saved of one step may be taken for one checkpoint",
        )


@contextlib.contextmanager
def _told(step: int) -> Iterator[None]:
    """The agent hears of a failure; `_done` tells it of success."""
    try:
        yield
    except CheckpointError as error:
        emit("checkpoint_failed", step=step, reason=str(error)[:1000])
        raise


def _finish(store: CheckpointStore, taken: Taken, began: float) -> Checkpoint:
    with _told(taken.save.step):
        return _done(store, store.finish(taken), began, taken.save.is_sharded)


def _done(store: CheckpointStore, saved: Checkpoint, began: float, is_sharded: bool) -> Checkpoint:
    emit(
        "checkpoint",
        step=saved.step,
        uri=saved.uri,
        size_bytes=saved.size_bytes,
        manifest_sha256=saved.manifest_sha256,
        metadata=saved.metadata,
        shard=saved.shard,
        shards=saved.shard_count,
        rank=store.origin.rank,
    )
    pace.committed(time.monotonic() - began)
    # Of ranks that save together one for each machine cleans up.
    if not is_sharded or init().local_rank == 0:
        _tidy(store)
    return saved


def _tidy(store: CheckpointStore) -> None:
    """Keeps everything unless a number is set. Failing to clean up is no reason to stop training."""
    keep = os.environ.get(KEEP, "")
    try:
        if keep.isdigit():
            retain(store, max(int(keep), MIN_KEEP))
        sweep(store)
    except (OSError, CheckpointError) as error:
        warn("old checkpoints could not be removed: {}".format(error))


def _say_skipped(problem: CorruptCheckpoint) -> None:
    warn("{}; an older one is looked for".format(problem))
