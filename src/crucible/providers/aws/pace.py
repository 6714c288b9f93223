"""How fast one kind of call may be made: a bucket of tokens below what Amazon allows an account by default. Whoever
finds it empty waits for a turn; a call that was throttled all the same makes everybody of its kind wait."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    per_s: float
    burst: int


# Of EC2's API, per account and region; RunInstances is what the operator has been granted.
LOOKS = Allowance(10.0, 50)
ENDS = Allowance(5.0, 100)
PURCHASES_BURST = 5


class Pace:
    """Not for threads: all of it runs on the event loop."""

    def __init__(
        self,
        allowance: Allowance,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._allowance = allowance
        self._monotonic = monotonic
        self._sleep = sleep
        self._tokens = float(allowance.burst)  # below nothing: turns that are promised already
        self._counted_at = monotonic()

    async def turn(self) -> None:
        """In the order of asking."""
        self._count()
        self._tokens -= 1
        if self._tokens < 0:
            await self._sleep(-self._tokens / self._allowance.per_s)

    def throttled(self, retry_after_s: float) -> None:
        """Amazon counts otherwise than we do: nobody gets a turn for so long."""
        self._count()
        self._tokens = min(self._tokens, -retry_after_s * self._allowance.per_s)

    def _count(self) -> None:
        now = self._monotonic()
        gained = (now - self._counted_at) * self._allowance.per_s
        self._tokens = min(self._tokens + gained, float(self._allowance.burst))
        self._counted_at = now
