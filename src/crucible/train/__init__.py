"""What a training script imports. Inside a Crucible job it reports metrics, progress and checkpoints and hears of
stops; anywhere else it reports nothing and breaks nothing. Standard library only, Python 3.8 and later.

    from crucible import train

    start = train.latest_checkpoint()
    for step in range(start.step if start else 0, 1000):
        ...
        train.log(step, loss=loss)
        is_stopping = train.should_stop()
        if train.should_checkpoint():
            train.save_checkpoint("model.npz", step)
        if is_stopping:
            break
"""

from __future__ import annotations

from . import plugins
from .background import Saving
from .callback import Callbacks, callbacks
from .checkpoint_request import CheckpointError
from .checkpoint_store import Checkpoint
from .item import Item
from .items import batches, items
from .pace import should_checkpoint
from .reporting import log, progress
from .run_info import Run, init
from .saving import checkpoint_at, checkpoints, latest_checkpoint, save_checkpoint
from .stopping import should_stop

__all__ = [
    "Callbacks",
    "Checkpoint",
    "CheckpointError",
    "Item",
    "Run",
    "Saving",
    "batches",
    "callbacks",
    "checkpoint_at",
    "checkpoints",
    "init",
    "items",
    "latest_checkpoint",
    "log",
    "plugins",
    "progress",
    "save_checkpoint",
    "should_checkpoint",
    "should_stop",
]
