"""Whether the script was asked to stop: by the agent's `stop` file or by SIGTERM. Takes over SIGTERM only inside
Crucible, only for a script that asks, and only where nobody else handles it."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

from .run_info import RUN_DIR

# Scripts ask every step; the file is looked at this often.
LOOK_EVERY_S = 0.1


class StopNotice:
    def __init__(self) -> None:
        self._has_come = False
        self._is_listening = False
        self._next_look = 0.0

    def has_come(self, run_dir: str) -> bool:
        """Once true, always true."""
        if not self._is_listening:
            self._listen()
        now = time.monotonic()
        if not self._has_come and now >= self._next_look:
            self._next_look = now + LOOK_EVERY_S
            self._has_come = os.path.exists(os.path.join(run_dir, "stop"))
        return self._has_come

    def _listen(self) -> None:
        """Only the main thread may set a handler; a call from another thread leaves it to a later one."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._is_listening = True
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, number: int, frame: Any) -> None:
        self._has_come = True


_notice = StopNotice()


def should_stop() -> bool:
    """True once a stop or an interruption notice came: save a checkpoint and end. Cheap enough for every step."""
    run_dir = os.environ.get(RUN_DIR)
    return bool(run_dir) and _notice.has_come(str(run_dir))
