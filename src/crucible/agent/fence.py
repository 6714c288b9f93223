"""The fence: a node that hears no server for so long ends its ranks by itself. So a server that cannot reach it knows,
without asking, that nothing runs there any more.

The agent notes when it last heard a server; supervisors read the note, so that a rank ends in time even if its agent is
dead or stands still. Clocks that may be set are not used: the note holds the seconds since this host was started."""

from __future__ import annotations

import os
import time

from . import disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Optional

_NEVER = float("inf")
# The most that is granted between SIGTERM and SIGKILL: whoever waits for the fence reckons with it.
GRACE_S = 30.0
_FILE = "heard.json"


def _note_every_s(after_s: float) -> float:
    return min(5.0, after_s / 10.0)


def of(folder: str, boot: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """For the supervisor of a rank; None where there is no fence."""
    after_s = boot.get("fence_s")
    return {"file": os.path.join(folder, _FILE), "after_s": float(after_s)} if after_s else None


class Fence:
    """The agent's side."""

    def __init__(self, folder: str, boot: Dict[str, Any]) -> None:
        self.after_s = float(boot.get("fence_s") or _NEVER)
        self._path = os.path.join(folder, _FILE)
        self._noted = -_NEVER

    def is_passed(self, heard_at: float, now: float) -> bool:
        return now - heard_at >= self.after_s

    def note(self, heard_at: float) -> None:
        """A full disk makes supervisors stop too early, never too late."""
        if self.after_s == _NEVER or heard_at - self._noted < _note_every_s(self.after_s):
            return
        try:
            disk.write_json(self._path, {"at": heard_at})
            self._noted = heard_at
        except OSError:
            pass


class Watch:
    """The supervisor's side."""

    def __init__(self, given: Optional[Dict[str, Any]]) -> None:
        self._file = given["file"] if given else None
        self._after_s = given["after_s"] + _note_every_s(given["after_s"]) if given else _NEVER
        self.reason = "no server was heard for %g s" % (given["after_s"] if given else 0.0)
        self._heard_at = time.monotonic()

    def look_at(self) -> float:
        """When it is worth a look."""
        return self._heard_at + self._after_s

    def is_passed(self) -> bool:
        now = time.monotonic()
        if self._file is None or now < self.look_at():
            return False
        at = (disk.read_json(self._file) or {}).get("at")
        # A note from the future was written before this host was started anew: nobody was heard since.
        if isinstance(at, float) and at <= now:
            self._heard_at = max(self._heard_at, at)
        return now >= self.look_at()
