"""What the planner looks at: own machines as they are now, dated now."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from crucible.engine.lives import LOOK_AGAIN_S, WINDOW
from crucible.engine.planner import DATED_S, NO_KNOWLEDGE, Planner
from crucible.model.lease import SpotLives
from crucible.model.ledger import Cooldown
from crucible.model.offer import Offer
from making import NOW, an_offer
from pretend_catalog import pretend_catalog


class Machines:
    """A seller's list and a clock, both in our hands."""

    def __init__(self) -> None:
        self.offers: Sequence[Offer] = [an_offer(8, free=8)]
        self.cooldowns: Sequence[Cooldown] = ()
        self.at = 0.0
        clock = SimpleNamespace(monotonic=lambda: self.at, now=self.now)
        self.lives: Sequence[SpotLives] = ()
        store = SimpleNamespace(cooldowns=self.refused, spot_lives=self.lived)
        context: Any = SimpleNamespace(clock=clock, store=store)
        telemetry: Any = SimpleNamespace(starts=self.starts)
        self.planner = Planner(context, NO_KNOWLEDGE, self.prices, self.listed, telemetry)

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.at)

    async def starts(self, shipped: Any) -> dict[str, float]:
        return {}

    async def prices(self) -> tuple[int, Sequence[Any]]:
        return 0, ()

    async def refused(self, now: datetime) -> Sequence[Cooldown]:
        return self.cooldowns

    async def lived(self, since: datetime, now: datetime) -> Sequence[SpotLives]:
        assert now - since == WINDOW
        return self.lives

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


def test_what_was_refused_a_moment_ago_is_marked_until_it_may_be_asked_for_again() -> None:
    async def story() -> None:
        machines = Machines()
        refusal = Cooldown(provider="fake", until=NOW + timedelta(minutes=3), reason="sold out in zone a")
        machines.cooldowns = [refusal]
        marked = (await machines.planner.table()).listing(0)
        assert marked.cooling is not None and marked.cooling.startswith("sold out in zone a")
        machines.cooldowns = []
        machines.at = 2.0
        assert (await machines.planner.table()).listing(0).cooling is None

    asyncio.run(story())


def test_what_machines_lived_through_changes_the_risk_of_the_next_a_while_later() -> None:
    async def story() -> None:
        machines = Machines()
        knowledge = pretend_catalog("fake", "nowhere-1", NOW)
        machines.planner._knowledge = knowledge
        first = await machines.planner.table()
        spot = first.is_spot & (first.shapes.gpus[first.shape] == 2)
        assert set(first.hazard[spot]) == {0.1}
        machines.lives = [
            SpotLives(provider="fake", region="nowhere-1", instance_type="fake-2gpu", hours=100.0, taken=90)
        ]
        assert await machines.planner.table() is first, "it is not asked at every look"
        machines.at = LOOK_AGAIN_S
        learnt = await machines.planner.table()
        assert set(learnt.hazard[spot]) == {0.5} and set(learnt.hazard[~spot & learnt.is_spot]) == {0.1}

    asyncio.run(story())
