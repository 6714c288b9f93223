"""What the planner looks at: own machines as they are now, dated now."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from crucible.engine.planner import DATED_S, NO_KNOWLEDGE, Planner
from crucible.model.offer import Offer
from making import NOW, an_offer


class Machines:
    """A seller's list and a clock, both in our hands."""

    def __init__(self) -> None:
        self.offers: Sequence[Offer] = [an_offer(8, free=8)]
        self.at = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.at, now=self.now)
        context: Any = SimpleNamespace(clock=clock, sellers={"local": None})
        self.planner = Planner(context, NO_KNOWLEDGE, self.prices, self.listed, telemetry=None)  # type: ignore[arg-type]

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.at)

    async def prices(self) -> tuple[int, Sequence[Any]]:
        return 0, ()

    async def listed(self) -> Sequence[Offer]:
        return self.offers


def test_a_machine_that_is_taken_is_seen_within_a_second_and_nothing_is_made_anew_without_news() -> None:
    async def story() -> None:
        machines = Machines()
        first = await machines.planner.table()
        machines.at = 2.0
        assert await machines.planner.table() is first
        machines.offers = [replace(machines.offers[0], free_gpus=0)]
        machines.at = 4.0
        assert (await machines.planner.table()).listing(0).free_gpus == 0

    asyncio.run(story())


def test_own_machines_are_never_stale_however_long_nothing_changes() -> None:
    async def story() -> None:
        machines = Machines()
        await machines.planner.table()
        machines.at = 10 * DATED_S
        assert (await machines.planner.table()).listing(0).as_of == machines.now()

    asyncio.run(story())
