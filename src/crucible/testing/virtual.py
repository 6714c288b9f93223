"""A virtual event loop: time passes only when nobody has anything left to do, so days of waiting cost nothing and every
run with the same seed is the same run."""

import asyncio
import random
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from crucible.system import SystemClock

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class _PatientSelector(selectors.DefaultSelector):
    """Instead of sleeping it tells the loop how long it would have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits for ever: nothing is scheduled on the virtual loop")
        if not ready and timeout:
            self.passed += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._patience = _PatientSelector()
        super().__init__(self._patience)

    def time(self) -> float:
        return self._patience.passed


def virtual_clock(loop: asyncio.AbstractEventLoop) -> SystemClock:
    """The production clock, on the loop's time."""
    return SystemClock(wall=lambda: EPOCH, monotonic=loop.time)


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class SeededIds:
    """Names that are the same in every run."""

    def __init__(self) -> None:
        self._next = 0

    def new(self, kind: str) -> str:
        self._next += 1
        return f"{kind}-{self._next:08d}"


class SeededRandom:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- reproducible chance is the point

    def token(self) -> str:
        return f"{self._random.getrandbits(192):048x}"
