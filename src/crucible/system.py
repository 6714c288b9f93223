"""The system's own clock, names and chance, behind the ports."""

import asyncio
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

T = TypeVar("T")


class SystemClock:
    """UTC anchored to monotonic time at the start: a step of the machine's clock moves no deadline of ours."""

    def __init__(
        self,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._anchor = wall()
        self._anchored_at = monotonic()

    def now(self) -> datetime:
        return self._anchor + timedelta(seconds=self._monotonic() - self._anchored_at)

    def monotonic(self) -> float:
        return self._monotonic()

    def cpu(self) -> float:
        return time.process_time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        if event.is_set() or seconds <= 0:
            return event.is_set()
        try:
            async with asyncio.timeout(seconds):
                return await event.wait()
        except TimeoutError:
            return False


class SystemIds:
    """Names that sort by time of making."""

    def new(self, kind: str) -> str:
        moment = time.time_ns() // 1_000_000
        if kind == "job":
            return str(uuid7(moment, secrets.randbits(74)))
        return f"{kind}-{moment:011x}{secrets.token_hex(6)}"


def uuid7(milliseconds: int, chance: int) -> uuid.UUID:
    """RFC 9562: time first, so that keys are inserted in order."""
    high, low = chance >> 62, chance & ((1 << 62) - 1)
    return uuid.UUID(int=(milliseconds & ((1 << 48) - 1)) << 80 | 7 << 76 | (high & 0xFFF) << 64 | 2 << 62 | low)


class SystemRandom:
    def token(self) -> str:
        return secrets.token_urlsafe(24)
