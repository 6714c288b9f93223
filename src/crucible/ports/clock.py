"""Time, names and chance come from outside, so that the whole engine can run on a virtual clock."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from typing import Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> datetime:
        """UTC. Never steps: an adapter anchors it to monotonic time."""
        ...

    def monotonic(self) -> float: ...

    def cpu(self) -> float:
        """Seconds of CPU this process has used: to be told, never to decide by."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        """Raises TimeoutError."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        """True if the event was set within the time."""
        ...


class Ids(Protocol):
    def new(self, kind: str) -> str:
        """A fresh name: a UUID for jobs (seed 000), `kind-…` for the rest; sorts by time of making."""
        ...


class Random(Protocol):
    def token(self) -> str:
        """At least 160 bits for secrets, from the system."""
        ...
