"""The way from a training script to its agent: JSON lines appended to $CRUCIBLE_RUN_DIR/events.jsonl, each with one
write. Nothing here raises into the training loop."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, Dict

from .run_info import RUN_DIR
from .stderr import warn_once

# Longer than any honest event; the agent reads whole lines.
MAX_LINE_BYTES = 256 << 10


class EventFile:
    """Appends whole lines. Threads and forked workers may share it: every write goes to the end."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._is_torn = False
        self._turn = threading.Lock()

    def append(self, event: Dict[str, Any]) -> None:
        line = json.dumps(event, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise ValueError("an event of {} bytes is too long".format(len(line)))
        with self._turn:
            if self._file < 0:
                self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._write(line)

    def _write(self, line: bytes) -> None:
        # After a short write the reader must not glue the next event to the torn one.
        data = b"\n" + line if self._is_torn else line
        self._is_torn = True
        written = os.write(self._file, data)
        self._is_torn = written != len(data)
        if self._is_torn:
            raise OSError("only {} of {} bytes were written".format(written, len(data)))


_files: Dict[str, EventFile] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_files.clear)  # a thread that held the lock is not there any more


def emit(kind: str, **fields: Any) -> None:
    """Tell the agent, if there is one."""
    folder = os.environ.get(RUN_DIR)
    if not folder:
        return
    path = os.path.join(folder, "events.jsonl")
    event = dict(type=kind, t=int(time.time() * 1000), **fields)
    try:
        _files.setdefault(path, EventFile(path)).append(event)
    except (OSError, ValueError, TypeError) as error:
        warn_once("events", "cannot report to {}: {}; training goes on unreported".format(path, error))
