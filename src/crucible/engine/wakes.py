"""Which rows somebody should look at. One worker at a time per row; waking a row meanwhile means once more."""

import asyncio
from collections import deque
from typing import Literal, NamedTuple

Kind = Literal["task", "order", "job", "workflow"]

# Past this, wake-ups are dropped: polling finds the rows again.
MAX_WAITING = 100_000


class Key(NamedTuple):
    kind: Kind
    id: str


class Wakes:
    def __init__(self) -> None:
        self._waiting: deque[Key] = deque()
        self._queued: set[Key] = set()
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._news = asyncio.Event()

    def wake(self, kind: Kind, row_id: str) -> None:
        key = Key(kind, row_id)
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued and len(self._queued) < MAX_WAITING:
            self._queued.add(key)
            self._waiting.append(key)
            self._news.set()

    async def next(self) -> Key:
        while not self._waiting:
            self._news.clear()
            await self._news.wait()
        key = self._waiting.popleft()
        self._queued.discard(key)
        self._busy.add(key)
        return key

    def looking(self, kind: Kind, row_id: str) -> None:
        """A worker is about to read the row: what woke it until now will be seen, and need not wake it once more."""
        self._again.discard(Key(kind, row_id))

    def done(self, key: Key) -> None:
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.wake(key.kind, key.id)

    @property
    def waiting(self) -> int:
        return len(self._queued)

    @property
    def is_idle(self) -> bool:
        return not self._queued and not self._busy
