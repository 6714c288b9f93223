"""The shards that this process has: leased one after another, renewed while they are worked on, sent when every item of
one has its result."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import uuid
from typing import Dict, Iterator, Optional

from .shard_link import Link, Over, Patience
from .shard_sender import Sender
from .shard_work import LeasedWork, lease_work
from .stopping import should_stop

# Shards with items that have no result yet: a batch may reach into the next shard, but not much further.
MOST_OPEN = 4
# A lease is renewed when a third of it has passed.
RENEWALS = 3.0
LEAST_RENEWAL_S = 0.2


class UntilStop(Patience):
    """Of whoever waits for work."""

    def is_over(self) -> bool:
        return should_stop()


class Desk:
    def __init__(self) -> None:
        self._link = Link(UntilStop())
        self._sender = Sender(self._forget)
        self._held: Dict[int, LeasedWork] = {}  # until they are committed
        self._open: Dict[int, LeasedWork] = {}  # until every item has its result
        self._lock = threading.Lock()
        self._is_over = False
        self._has_ended = False
        self._renewing: Optional[threading.Thread] = None
        self._pid = os.getpid()
        atexit.register(self._at_exit)

    def works(self) -> Iterator[LeasedWork]:
        """Until nothing is left, or this process is to stop."""
        asked = uuid.uuid4().hex
        while not self._is_over and not should_stop():
            try:
                self._sender.check()
                self._bound_open()
                found = lease_work(self._link, asked, self._whole)
            except Over:
                return
            if found is None:
                return
            if isinstance(found, float):
                if self._open:
                    return  # they wait for results, and others may wait for them
                self._link.patience.wait(found)
                continue
            asked = uuid.uuid4().hex
            self._hold(found)
            yield found
            if not found.is_wanted:
                self.drop(found)

    def drop(self, work: LeasedWork) -> None:
        """Somebody else was quicker."""
        work.results.drop()
        self._forget(work)
        work.close()

    def finished(self, work: LeasedWork) -> None:
        """Of a command, which settles all items at once."""
        self._whole(work)

    def end(self) -> None:
        """No further item is handed out. What is finished is committed when this returns."""
        self._has_ended = True
        self._link.close()
        self._flush()

    # --- details ------------------------------------------------------------------------------------------------

    def _hold(self, work: LeasedWork) -> None:
        with self._lock:
            self._held[work.number] = self._open[work.number] = work
            if self._renewing is None:
                self._renewing = threading.Thread(target=self._renew, daemon=True, name="shard-renewal")
                self._renewing.start()

    def _whole(self, work: LeasedWork) -> None:
        """In the thread that settled its last item."""
        with self._lock:
            self._open.pop(work.number, None)
            is_last = self._has_ended and not self._open
        self._sender.take(work)
        if is_last:
            self._flush()

    def _flush(self) -> None:
        """Of an attempt that is over nothing counts."""
        with contextlib.suppress(Over):
            self._sender.flush()
        if self._has_ended and not self._held:
            self._sender.close()
            atexit.unregister(self._at_exit)

    def _forget(self, work: LeasedWork) -> None:
        with self._lock:
            for kept in (self._held, self._open):
                if kept.get(work.number) is work:
                    del kept[work.number]

    def _bound_open(self) -> None:
        while len(self._open) >= MOST_OPEN:
            next(iter(self._open.values())).give_up_open()

    def _renew(self) -> None:
        link = Link(Patience())
        while not self._is_over and not (self._has_ended and not self._held):
            with self._lock:
                held = list(self._held.values())
            spans = [float(work.lease["lease_s"]) for work in held] or [LEAST_RENEWAL_S * RENEWALS]
            time.sleep(max(LEAST_RENEWAL_S, min(spans) / RENEWALS))
            try:
                for work in held:
                    if self._held.get(work.number) is work:
                        work.renew(link)
            except Over:
                self._is_over = True
        link.close()

    def _at_exit(self) -> None:
        """A program that ends by itself may have left items without a result: they have failed. One that was stopped or
        broke has not said anything about them."""
        if os.getpid() != self._pid:
            return  # a child that was forked off
        if not should_stop() and not hasattr(sys, "last_value"):
            for work in list(self._open.values()):
                work.give_up_open()
        self._flush()
