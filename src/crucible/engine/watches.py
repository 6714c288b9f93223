"""Two things that nobody tells of by themselves: a price that somebody waits for, and a job that will be late."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from crucible.core.costs import Remaining, done_of, ran_hours, remaining
from crucible.core.notices import lateness
from crucible.core.offers import OfferTable
from crucible.core.price_watch import best, watched
from crucible.engine.context import Context
from crucible.engine.status import expected_of
from crucible.engine.telling import NOTICES
from crucible.model.job import Job

DEADLINES_EVERY = timedelta(minutes=1)
BATCH = 200


class PriceWatch:
    """Looks after every refresh of prices. What a rule saw and what it tells are one transaction."""

    def __init__(self, context: Context, table: Callable[[], Awaitable[OfferTable]]) -> None:
        self._context = context
        self._table = table

    async def look(self) -> None:
        store = self._context.store
        rules = [rule for rule in await store.alert_rules() if rule.price is not None and rule.is_enabled]
        if not rules:
            return
        table, now = await self._table(), self._context.clock.now()
        for rule in rules:
            assert rule.price is not None
            listing = best(table, rule.price)
            if listing is None:
                continue
            seen, notice = watched(rule, listing, now)
            if seen != rule.price_seen and await store.saw_price(rule, seen, [] if notice is None else [notice]):
                self._context.hub.notify(NOTICES)


class DeadlineWatch:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def run(self) -> None:
        """For ever. The claim is not given back: it says for how long nobody need look again."""
        context = self._context
        while True:
            if await context.store.claim("deadlines", context.server_id, DEADLINES_EVERY) is not None:
                await self.look()
            await context.clock.sleep(DEADLINES_EVERY.total_seconds())

    async def look(self) -> None:
        store, last = self._context.store, None
        while jobs := await store.deadline_jobs(last, BATCH):
            for job in jobs:
                await self._look_at(job)
            last = jobs[-1].id

    async def _look_at(self, job: Job) -> None:
        notice = lateness(job, await self._rest(job), self._context.clock.now())
        if notice is not None:
            await self._context.store.commit([], [notice], label="notice.deadline")
            self._context.hub.notify(NOTICES)

    async def _rest(self, job: Job) -> Remaining | None:
        store = self._context.store
        tally, attempts = await store.tally(job.id), await store.job_attempts(job.id)
        done = done_of(await store.progress(job.id), attempts, sum(tally.counts.values()))
        ran = ran_hours(attempts, self._context.clock.now())
        return remaining(done, ran, expected_of(await store.plan(job.id)), await store.job_usages(job.id))
