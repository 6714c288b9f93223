"""Who is waiting for news of what. News is only "look again": missing it costs a moment, never correctness."""

import asyncio

from crucible.ports.clock import Clock

# Names remembered; an older one that is dropped costs its followers one poll.
MAX_NAMES = 100_000


class Hub:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counters: dict[str, int] = {}
        self._waiters: dict[str, asyncio.Event] = {}

    def notify(self, name: str) -> None:
        self._counters[name] = self.counter(name) + 1
        if len(self._counters) > MAX_NAMES:
            del self._counters[next(iter(self._counters))]
        event = self._waiters.pop(name, None)
        if event is not None:
            event.set()

    def notify_all(self) -> None:
        """Everybody looks again: used when the server stops."""
        for name in list(self._waiters):
            self.notify(name)

    def counter(self, name: str) -> int:
        return self._counters.get(name, 0)

    async def wait(self, name: str, seen: int, seconds: float) -> int:
        """Returns the counter: at once if it is past `seen`, else after news or the time."""
        if self.counter(name) == seen:
            event = self._waiters.setdefault(name, asyncio.Event())
            await self._clock.wait(event, seconds)
        return self.counter(name)
