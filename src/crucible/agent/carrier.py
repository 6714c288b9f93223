"""The node's side of checkpoints that the agent carries: where ranks save, what is brought there before they start, and
what takes it from there to storage.

DIR/checkpoints/<task>         what the ranks of a task save and resume from; stays for its next attempt
DIR/uploads/<attempt>-<rank>   a checkpoint on its way
"""

from __future__ import annotations

import os
import threading

from . import disk, keep
from .cargo import Cargo
from .hold import Hold
from .link import Link
from .outputs import Outputs
from .restore import Restore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, Optional, Set

    from .link import Servers
    from .meter import Meter
    from .words import Words

_GONE = ".gone-"


class Carrier:
    def __init__(self, folder: str, servers: Servers, key: str, meter: Meter, words: Words) -> None:
        self._checkpoints = os.path.join(folder, "checkpoints")
        self._uploads = os.path.join(folder, "uploads")
        self._servers = servers
        self._key = key
        self._meter = meter
        self._words = words
        self._holds: Dict[str, Hold] = {}
        self._lock = threading.Lock()
        for name in _names(self._checkpoints):
            if name.startswith(_GONE):
                self._throw_away(os.path.join(self._checkpoints, name))

    def own_place(self, launch: Dict[str, Any]) -> Dict[str, Any]:
        """The launch as its rank sees it: it saves into a folder of the node."""
        if not launch["carries_checkpoints"]:
            return launch
        return dict(launch, checkpoints=self._hold(launch).folder)

    def cargo(self, folder: str, launch: Dict[str, Any]) -> Optional[Cargo]:
        """Of the rank whose folder this is; None if it saves by itself."""
        if not launch["carries_checkpoints"]:
            return None
        events = os.path.join(folder, "events.jsonl")
        uploads = os.path.join(self._uploads, "%s-%d" % (launch["attempt_id"], launch["rank"]))
        return Cargo(launch, events, uploads, self._hold(launch), self._meter, self._new_link, self._words)

    def outputs(self, folder: str, launch: Dict[str, Any]) -> Outputs:
        """What the rank whose folder this is leaves behind."""
        return Outputs(folder, launch, self._servers, self._new_link, self._words)

    def restore(self, attempt: str, launch: Dict[str, Any], link: Link, cancelled: threading.Event) -> List[str]:
        """Once for an attempt on this node; returns what the log should say. Raises Cancelled, NoRoom, OSError."""
        done = os.path.join(attempt, "restored.json")
        with self._lock:
            if os.path.exists(done):
                return []
            restore = Restore(self._hold(launch), launch, link, cancelled, self._meter, self._words)
            restore.run()
            keep.lay_out(self._hold(launch))
            disk.write_json(done, {"notes": restore.notes})
        return restore.notes

    def forget(self, tasks: Set[str]) -> None:
        """Removes what belongs to none of these tasks: their attempts run elsewhere now."""
        for name in _names(self._checkpoints):
            if name not in tasks and not name.startswith(_GONE):
                self._holds.pop(name, None)
                self._throw_away(os.path.join(self._checkpoints, name))

    def _throw_away(self, folder: str) -> None:
        """Out of sight at once, off the disk soon: it may be large."""
        gone = os.path.join(self._checkpoints, _GONE + os.urandom(8).hex())
        os.rename(folder, gone)
        threading.Thread(target=disk.remove, args=(gone,), daemon=True, name="trash").start()

    def discard(self, attempt_id: str) -> None:
        for name in _names(self._uploads):
            if name.rpartition("-")[0] == attempt_id:
                disk.remove(os.path.join(self._uploads, name))

    def _hold(self, launch: Dict[str, Any]) -> Hold:
        task_id = launch["task_id"]
        if task_id not in self._holds:
            self._holds[task_id] = Hold(os.path.join(self._checkpoints, task_id))
        return self._holds[task_id]

    def _new_link(self) -> Link:
        return Link(self._servers, self._key)


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
