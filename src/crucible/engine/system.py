"""How the whole system is, gathered for whoever asks. Asked often, it answers from memory for a moment: some of it
reads long indexes."""

from collections import Counter
from collections.abc import Sequence

from crucible.core.system_health import Check, FeedSeen, LoopSeen, SystemSeen, checks
from crucible.engine.context import Context, log
from crucible.model.errors import PlatformError
from crucible.model.health import SystemFacts
from crucible.ports.prices import Feed

REMEMBER_S = 5.0


class SystemDesk:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._looked: tuple[float, Sequence[Check]] | None = None

    async def checks(self) -> Sequence[Check]:
        clock = self._context.clock
        if self._looked is None or clock.monotonic() - self._looked[0] >= REMEMBER_S:
            found = checks(await self.seen(), clock.now())
            self._looked = clock.monotonic(), found
        return self._looked[1]

    async def seen(self) -> SystemSeen:
        context, store = self._context, self._context.store
        facts, took_s = await self._facts()
        if facts is None:
            return SystemSeen(facts=None, database_s=None, loops=self._loops())
        cooling = Counter(f"{one.provider}/{one.region}" for one in await store.cooldowns(context.clock.now()))
        vitals = context.vitals
        return SystemSeen(
            facts=facts,
            database_s=took_s,
            places=sorted(context.enabled),
            healths={one.name: one for one in await store.place_healths()},
            refusals={name: dict(one.refusals) for name, one in vitals.places.items()},
            cooldowns=cooling,
            loops=self._loops(),
            feeds=[feed_seen(one) for one in await store.price_feeds()],
            price_stale=context.policy.price_stale,
            streams={one.labels["channel"]: int(one.value) for one in vitals.samples() if one.name == "streams_bytes"},
            room=await self._room(),
        )

    async def _facts(self) -> tuple[SystemFacts | None, float]:
        clock = self._context.clock
        began = clock.monotonic()
        try:
            facts = await self._context.store.system_facts(clock.now() - self._context.policy.silence)
        except PlatformError as error:
            log.warning("the database cannot be looked at: %s", error)
            return None, 0.0
        return facts, clock.monotonic() - began

    async def _room(self) -> tuple[int, int] | None:
        try:
            return await self._context.streams.room()
        except PlatformError:
            return None

    def _loops(self) -> list[LoopSeen]:
        now = self._context.clock.monotonic()
        return [
            LoopSeen(
                name=one.name,
                turns=one.turns,
                restarts=one.restarts,
                age_s=None if one.beat_at is None else now - one.beat_at,
                late_s=one.late_s(now),
                error=one.error,
            )
            for one in sorted(self._context.vitals.loops.values(), key=lambda loop: loop.name)
        ]


def feed_seen(one: Feed) -> FeedSeen:
    return FeedSeen(name=one.name, rows=one.rows, told_at=one.refreshed_at, error=one.error)
