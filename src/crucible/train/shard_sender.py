"""Sends what came of shards to storage and commits it, in a thread, while the next shard is worked on. A commit is
repeated until a server has answered it."""

from __future__ import annotations

import functools
import queue
import threading
from typing import Any, Callable, Dict, List, Optional

from .shard_link import Link, Patience, Refused, patiently
from .shard_work import LeasedWork

# Finished shards that wait for their turn; whoever is quicker than storage waits, too.
MOST_WAITING = 2
# Storage and the server may disagree about what has arrived.
TRIES = 3


class Sender:
    def __init__(self, on_sent: Callable[[LeasedWork], None]) -> None:
        self._on_sent = on_sent
        self._queue: queue.Queue[Optional[LeasedWork]] = queue.Queue(MOST_WAITING)
        self._trouble: Optional[BaseException] = None
        self._thread: Optional[threading.Thread] = None
        self._starting = threading.Lock()

    def take(self, work: LeasedWork) -> None:
        """Raises what went wrong with an earlier one, for good."""
        self.check()
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="shard-sender")
                self._thread.start()
        self._queue.put(work)

    def flush(self) -> None:
        """Until all are committed."""
        self._queue.join()
        self.check()

    def close(self) -> None:
        """When nothing more comes; a later one begins anew."""
        with self._starting:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def check(self) -> None:
        if self._trouble is not None:
            raise self._trouble

    def _run(self) -> None:
        link = Link(Patience())
        while True:
            work = self._queue.get()
            if work is None:
                link.close()
                self._queue.task_done()
                return
            try:
                if self._trouble is None:
                    Sending(link, work).run()
            except BaseException as error:  # told to whoever asks next: a thread has nobody to tell
                self._trouble = error
            finally:
                self._on_sent(work)
                work.close()
                self._queue.task_done()


class Sending:
    """One shard on its way."""

    def __init__(self, link: Link, work: LeasedWork) -> None:
        self._link = link
        self._work = work
        self._parts: List[Dict[str, Any]] = list(work.lease["parts"])
        self._errors: Dict[str, Any] = work.lease["errors"]

    def run(self) -> None:
        """Raises Over and Refused."""
        for left in range(TRIES - 1, -1, -1):
            if not self._upload():
                return  # somebody else was quicker: nobody wants it
            try:
                self._link.ask("/worker/v1/shards/commit", self._said())
                return
            except Refused as refused:
                if refused.code != "conflict" or not left:
                    raise

    def _said(self) -> Dict[str, Any]:
        results, work = self._work.results, self._work
        said = {"number": work.number, "fence": work.fence, "seconds": work.seconds()}
        if work.reason is not None:
            return dict(said, reason=work.reason)
        found = {"size": results.size, "sha256": results.sha256, "failed": results.failed, "errors": results.shown}
        return dict(said, **found)

    def _upload(self) -> bool:
        work = self._work
        if work.reason is not None:
            return True
        errors, part_bytes = work.results.close(), int(work.lease["part_bytes"])
        count = -(-work.results.size // part_bytes)
        if count > len(self._parts) and not self._sign(count):
            return False
        for part in range(count):
            start = part * part_bytes
            size = min(part_bytes, work.results.size - start)
            if not self._put(functools.partial(self._put_part, part, start, size), count):
                return False
        return not errors or self._put(lambda: self._link.put(self._errors, work.errors, 0, errors), count)

    def _put_part(self, part: int, start: int, size: int) -> None:
        self._link.put(self._parts[part], self._work.output, start, size)

    def _put(self, send: Callable[[], None], parts: int) -> bool:
        return patiently(self._link.patience, send, lambda: self._sign(parts))

    def _sign(self, parts: int) -> bool:
        """New addresses: the old ones have expired, or were too few, or the server is elsewhere now."""
        said = self._work.renew(self._link, parts)
        if not said["is_wanted"]:
            return False
        self._parts, self._errors = list(said["parts"]), said["errors"]
        return True
