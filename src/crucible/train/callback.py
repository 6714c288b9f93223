"""What a model plugin calls while it trains; the same object inside Crucible and outside it."""

from __future__ import annotations

from typing import Any, Mapping

from .checkpoint_store import Checkpoint
from .reporting import send_metrics
from .saving import save_checkpoint


class Callbacks:
    def on_epoch_end(self, epoch: int, metrics: Mapping[str, Any]) -> None:
        print("Epoch {}: {}".format(epoch, dict(metrics)), flush=True)
        send_metrics(epoch, metrics)

    def on_checkpoint_save(self, epoch: int, path: str) -> Checkpoint:
        """`path` is the file or folder that the model wrote; the epoch is the checkpoint's step."""
        return save_checkpoint(path, epoch)


def callbacks() -> Callbacks:
    return Callbacks()
