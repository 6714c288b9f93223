"""The pipes of a rank's programs, and the way of what comes out of them into the journal."""

from __future__ import annotations

import os
import select
import time

from .cutter import MAX_LINE_BYTES, Cutter
from .journal import SYS, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Deque, Dict, List, Optional, Tuple

    from .redact import Redactor

# Reads of one pipe before the others have their turn: what a pipe holds.
_READS_PER_TURN = 16
# Of a payload, so much is kept for those who look for the reason of a failure.
_TAIL_BYTES = 1 << 14
_NEVER = float("inf")


class Output:
    def __init__(self, folder: str, poll: select.poll, hidden: List[bytes]) -> None:
        """`hidden` are secrets: the journal gets none of them."""
        self._journal = Writer(folder)
        self._poll = poll
        self._hidden = hidden
        self._redactors: Dict[int, Redactor] = {}
        self._pipes: Dict[int, Tuple[Optional[bytes], Cutter]] = {}
        self._tails: Dict[int, Deque[str]] = {}

    def add(self, descriptor: int, stream: Optional[bytes], tail: Optional[Deque[str]] = None) -> None:
        """A pipe that does not block. Without a stream nothing of it is in the log; `tail` takes its last lines."""
        self._pipes[descriptor] = (stream, Cutter())
        if self._hidden:
            # Here, because most ranks have no secrets and start without it.
            from .redact import Redactor

            self._redactors[descriptor] = Redactor(self._hidden)
        if tail is not None:
            self._tails[descriptor] = tail
        self._poll.register(descriptor, select.POLLIN)

    def read(self, descriptor: int) -> None:
        """Takes what is there."""
        for _ in range(_READS_PER_TURN):
            if descriptor not in self._pipes or not self._read(descriptor):
                return

    def flush_at(self) -> float:
        """When the next unfinished line becomes due."""
        return min([cutter.flush_at() for _, cutter in self._pipes.values()] or [_NEVER])

    def flush(self) -> None:
        now = time.monotonic()
        for descriptor, (_, cutter) in self._pipes.items():
            if cutter.flush_at() <= now:
                self._write(descriptor, cutter.flush(now))

    def say(self, text: str) -> None:
        """A line of our own in the log of the rank."""
        line = text.replace("\n", " ").encode("utf-8", "replace")
        self._journal.append(SYS, line[:MAX_LINE_BYTES] + b"\n", False, now_ms())

    def finish(self) -> None:
        """Nobody is left to write: takes the rest and closes everything."""
        for descriptor in list(self._pipes):
            while self._read(descriptor):
                pass
            if descriptor in self._pipes:
                self._close(descriptor)
        self._journal.close(now_ms())

    def _read(self, descriptor: int) -> bool:
        """Takes one piece; False if there was none. At its end the pipe is closed."""
        try:
            data = os.read(descriptor, MAX_LINE_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close(descriptor)
            return False
        redactor = self._redactors.get(descriptor)
        self._cut(descriptor, data if redactor is None else redactor.feed(data))
        return True

    def _cut(self, descriptor: int, data: bytes) -> None:
        for start in range(0, len(data), MAX_LINE_BYTES):
            piece = data[start : start + MAX_LINE_BYTES]
            self._write(descriptor, self._pipes[descriptor][1].feed(piece, time.monotonic()))

    def _close(self, descriptor: int) -> None:
        redactor = self._redactors.pop(descriptor, None)
        if redactor is not None:
            self._cut(descriptor, redactor.end())
        self._write(descriptor, self._pipes[descriptor][1].end())
        self._pipes.pop(descriptor)
        self._tails.pop(descriptor, None)
        self._poll.unregister(descriptor)
        os.close(descriptor)

    def _write(self, descriptor: int, payloads: List[Tuple[bytes, bool]]) -> None:
        stream, tail = self._pipes[descriptor][0], self._tails.get(descriptor)
        for payload, is_piece in payloads:
            if stream is not None:
                self._journal.append(stream, payload, is_piece, now_ms())
            if tail is not None:
                tail += payload[-_TAIL_BYTES:].decode("utf-8", "replace").splitlines()


def now_ms() -> int:
    return int(time.time() * 1000)
