"""Saves beside the training: one thread at a time hashes, flushes and commits what was taken. The process does not end
before it has, unless it is killed."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Callable, Iterator, Optional

from .checkpoint_request import CheckpointError
from .checkpoint_store import Checkpoint
from .stderr import warn


class Saving:
    """A checkpoint on its way. What it was made from may change already."""

    def __init__(self, step: int) -> None:
        self.step = step
        self._is_over = threading.Event()
        self._saved: Optional[Checkpoint] = None
        self._error: Optional[CheckpointError] = None
        self._is_error_told = False

    @property
    def done(self) -> bool:
        """Committed, or failed."""
        return self._is_over.is_set()

    def wait(self, timeout: Optional[float] = None) -> Checkpoint:
        """Raises CheckpointError if it was not saved, TimeoutError if that is not known after `timeout` seconds."""
        if not self._is_over.wait(timeout):
            raise TimeoutError("the checkpoint of step {} is still being saved".format(self.step))
        if self._saved is None:
            self._is_error_told = True
            raise self._error or CheckpointError("step {} was not saved".format(self.step))
        return self._saved

    def raise_untold(self) -> None:
        """What went wrong, if the script has not heard of it."""
        if self._error is not None and not self._is_error_told:
            self.wait()

    def carry_out(self, work: Callable[[], Checkpoint]) -> None:
        try:
            self._saved = work()
        except CheckpointError as error:
            self._error = error
        except Exception as error:  # whatever it is, somebody may wait for it
            self._error = CheckpointError("step {} was not saved: {!r}".format(self.step, error))
        finally:
            self._is_over.set()
        if self._error is not None:
            warn(str(self._error))


class Saves:
    """One at a time: who comes second waits for the first. No step is skipped, because the shards of a step come
    together only if every rank saves the same steps."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        # Not a plain lock: a script may save in a signal handler, in the middle of another save.
        self._turn = threading.RLock()
        self._last: Optional[Saving] = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[Optional[Saving]]:
        """Gives the background save before this one, once it is over."""
        with self._turn:
            before, self._last = self._last, None
            if before is not None:
                before._is_over.wait()
            yield before

    def start(self, step: int, work: Callable[[], Checkpoint]) -> Saving:
        saving = self._last = Saving(step)
        # Not a daemon: the interpreter waits for it at its end.
        thread = threading.Thread(target=saving.carry_out, args=(work,), name="crucible-checkpoint", daemon=False)
        try:
            thread.start()
        except RuntimeError:  # no more threads here, or the interpreter is about to end
            saving.carry_out(work)
        return saving


saves = Saves()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=saves.reset)  # the thread is not there any more
