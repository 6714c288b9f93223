"""An answer that is dear to get, kept for a while: whoever asks gets the last one, one look is under way at a time, and
a look that takes long is followed by a longer rest. One that fails leaves the last answer as it is."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from crucible.engine.context import log
from crucible.model.errors import PlatformError
from crucible.ports.clock import Clock

T = TypeVar("T")


class Look(Generic[T]):
    def __init__(
        self, name: str, look: Callable[[], Awaitable[T]], clock: Clock, *, keep_s: float, rest_per_look: float
    ) -> None:
        self.name = name
        self._look = look
        self._clock = clock
        self._keep_s = keep_s
        self._rest_per_look = rest_per_look
        self._under_way: asyncio.Task[None] | None = None
        self.answer: T | None = None
        self.took_s = 0.0
        self._at: float | None = None

    @property
    def age_s(self) -> float:
        """Of the answer; infinite before the first."""
        return float("inf") if self._at is None else self._clock.monotonic() - self._at

    async def latest(self, patience_s: float) -> T | None:
        """The newest answer that can be had in that time; an old one is better than none."""
        if self._under_way is None or self._under_way.done():
            if self.age_s < max(self._keep_s, self._rest_per_look * self.took_s):
                return self.answer
            self._under_way = asyncio.create_task(self._again())
        done = asyncio.Event()
        self._under_way.add_done_callback(lambda _: done.set())
        await self._clock.wait(done, patience_s)
        return self.answer

    async def stop(self) -> None:
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.gather(self._under_way, return_exceptions=True)

    async def _again(self) -> None:
        began = self._clock.monotonic()
        try:
            self.answer = await self._look()
        except PlatformError as error:
            log.warning("%s cannot be added up now: %s", self.name, error)
            return
        self._at = self._clock.monotonic()
        self.took_s = self._at - began
