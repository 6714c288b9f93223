"""Processes that a launcher starts, each in a session of its own: a stop is passed on once, in whatever way it came."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, Optional

# Whoever is left behind when another has failed: asked to end, and killed after this time.
GRACE_S = 5.0
_LOOK_EVERY_S = 0.05
_PYTHON = ("python", "python3")


def say(words: str) -> None:
    print("crucible: %s" % words, file=sys.stderr, flush=True)


def own(name: str, *options: str) -> List[str]:
    """Another program of this archive, by the same Python."""
    return [sys.executable, sys.argv[0], "--launch", name, *options]


class Children:
    """SIGTERM and SIGINT reach all of them."""

    def __init__(self) -> None:
        self._running: Dict[Any, subprocess.Popen[bytes]] = {}
        self.is_stopping = False
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._on_signal)

    def start(self, key: Any, argv: List[str], more: Mapping[str, str]) -> None:
        """`python` means the one that runs us."""
        argv = [sys.executable, *argv[1:]] if argv[0] in _PYTHON else argv
        self._running[key] = subprocess.Popen(
            argv, env=dict(os.environ, **more), stdin=subprocess.DEVNULL, start_new_session=True
        )

    def ended(self) -> Dict[Any, int]:
        """Those that ended since the last look, with their exit codes; as a shell says it, if by a signal."""
        found: Dict[Any, int] = {}
        for key, process in list(self._running.items()):
            status = process.poll()
            if status is not None:
                del self._running[key]
                found[key] = status if status >= 0 else 128 - status
        return found

    def wait(self, key: Any, on_other: Callable[[Any, int], None]) -> int:
        """Until this one ends. Others that end before are told of."""
        while True:
            codes = self.ended()
            if key in codes:
                return codes[key]
            for other, code in codes.items():
                on_other(other, code)
            time.sleep(_LOOK_EVERY_S)

    def linger(self, key: Any, timeout_s: float) -> None:
        """Lets this one end by itself."""
        give_up_at = time.monotonic() + timeout_s
        while key in self._running and time.monotonic() < give_up_at:
            self.ended()
            time.sleep(_LOOK_EVERY_S)

    def wait_for_all(self) -> int:
        """0 if all succeed. The first that fails ends the others, and its code is told."""
        failed: Optional[int] = None
        while self._running:
            for key, code in self.ended().items():
                if code and failed is None:
                    failed = code
                    say("worker %s ended with %d" % (key, code))
            if failed is not None:
                self.stop()
                break
            time.sleep(_LOOK_EVERY_S)
        return failed or 0

    def signal(self, key: Any, signum: int) -> None:
        process = self._running.get(key)
        if process is not None:
            try:
                os.killpg(process.pid, signum)
            except OSError:
                pass

    def stop(self) -> None:
        """All of them, with a little grace."""
        self._pass_on(signal.SIGTERM)
        give_up_at = time.monotonic() + GRACE_S
        while self._running and time.monotonic() < give_up_at:
            self.ended()
            time.sleep(_LOOK_EVERY_S)
        self._pass_on(signal.SIGKILL)
        for process in self._running.values():
            process.wait()
        self._running.clear()

    def _pass_on(self, signum: int) -> None:
        for key in list(self._running):
            self.signal(key, signum)

    def _on_signal(self, signum: int, frame: Any) -> None:
        """The grace is whoever's who asked for it: he kills what does not end."""
        if not self.is_stopping:
            self.is_stopping = True
            self._pass_on(signal.SIGTERM)
