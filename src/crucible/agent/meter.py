"""How many bytes of checkpoints have moved, for the node's report, for whoever waits, and for the next notice."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List


class Transfer:
    """One checkpoint on its way. Threads add to it."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.done_bytes = 0
        self.began_at = self.moved_at = time.monotonic()
        self._lock = threading.Lock()

    def moved(self, count: int) -> None:
        """A negative count takes back what has to be sent again."""
        with self._lock:
            self.done_bytes += count
            if count > 0:
                self.moved_at = time.monotonic()


class Meter:
    """All transfers of the node that are under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Dict[str, List[Transfer]] = {"upload": [], "download": []}

    def begin(self, way: str, total_bytes: int) -> Transfer:
        transfer = Transfer(total_bytes)
        with self._lock:
            self._running[way].append(transfer)
        return transfer

    def end(self, way: str, transfer: Transfer) -> None:
        with self._lock:
            self._running[way].remove(transfer)

    def figures(self) -> Dict[str, float]:
        """`checkpoint_upload_bytes`, `checkpoint_upload_total_bytes`, and the same of downloads, while one runs."""
        figures: Dict[str, float] = {}
        with self._lock:
            for way, running in self._running.items():
                if running:
                    total = sum(each.total_bytes for each in running)
                    figures["checkpoint_%s_total_bytes" % way] = float(total)
                    # Manifests move too, and are not counted before.
                    figures["checkpoint_%s_bytes" % way] = float(min(total, sum(each.done_bytes for each in running)))
        return figures
