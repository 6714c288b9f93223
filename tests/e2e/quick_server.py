"""A server that lives in the time of an accelerated Lab: CRUCIBLE_LAB_CLOCK holds its speed, and what time it was there
at which moment of this computer. Agents and programs live as fast as ever, so what waits for them is given more."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from crucible import main
from crucible.model.policy import Policy

SPEED, LAB_NOW, THEN = (float(word) for word in os.environ["CRUCIBLE_LAB_CLOCK"].split())
T = TypeVar("T")
# Pauses so short are not made shorter: a server that looks around a thousand times a second does nothing else.
LEAST_S = 0.2
# Calls over the network take as long as ever.
CALL_S = 20.0


class LabClock:
    def now(self) -> datetime:
        return datetime.fromtimestamp(LAB_NOW, UTC) + timedelta(seconds=(time.monotonic() - THEN) * SPEED)

    def monotonic(self) -> float:
        return time.monotonic() * SPEED

    def cpu(self) -> float:
        return time.process_time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(real(seconds))

    async def wait_for(self, awaitable: Awaitable[T], seconds: float) -> T:
        async with asyncio.timeout(max(real(seconds), CALL_S)):
            return await awaitable

    async def wait(self, event: asyncio.Event, seconds: float) -> bool:
        if event.is_set() or seconds <= 0:
            return event.is_set()
        try:
            async with asyncio.timeout(real(seconds)):
                return await event.wait()
        except TimeoutError:
            return False


def real(seconds: float) -> float:
    return max(seconds / SPEED, min(seconds, LEAST_S), 0.0)


def patient(policy: Policy) -> Policy:
    """With those who live in real time. What a stop may take is what the test is about: twelve seconds in all."""
    return replace(
        policy,
        silence=policy.silence * SPEED,
        enrol_patience=policy.enrol_patience * SPEED,
        start_limit=policy.start_limit * SPEED,
        stop_margin=timedelta(seconds=90),
    )


if __name__ == "__main__":
    usual = main.policy_of
    main.policy_of = lambda settings: patient(usual(settings))
    main.SystemClock = LabClock  # type: ignore[assignment, misc]
    sys.exit(main.main())
