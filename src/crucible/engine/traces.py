"""Gives the traces of jobs that have ended to whoever collects them. The log is the queue: what could not be given is
found there again, so nothing waits in memory and no job waits for a collector. One server does it at a time, under the
claim `traces`; one that takes over, or starts, gives the last minutes again: the same spans with the same names."""

from collections import OrderedDict
from datetime import datetime, timedelta

from crucible.core.trace import spans
from crucible.engine.context import Context, log
from crucible.engine.metrics import TRACES
from crucible.model.errors import NotFound, Unreachable
from crucible.model.ids import JobId
from crucible.model.span import Story, Told
from crucible.ports.store import Claim
from crucible.ports.traces import Ended, SpanSink

EVERY_S = 2.0
BATCH = 200
# Servers share a log: a line may become visible after a later one, but not by as much as this.
OVERLAP = timedelta(minutes=1)
# What an earlier server may not have given: so many lines, and not older than this.
LOOK_BACK_LINES, LOOK_BACK = 2000, timedelta(minutes=15)
# A collector that has been away for longer gets no more of the past.
GIVE_UP = timedelta(hours=1)
PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
MOST_EVENTS, PAGE = 20_000, 1000
# Spans that are sent together: collectors take a few megabytes. And how often one trace is tried before others are.
AT_ONCE, TRIES = 500, 3
REMEMBERED = 100_000


class Traces:
    def __init__(self, context: Context, sink: SpanSink) -> None:
        self._context = context
        self._sink = sink
        self._given, self._dropped = (context.meter.counter(TRACES, word) for word in ("exported", "dropped"))
        self._claim: Claim | None = None
        self._after = 0  # every line before it has been seen to
        self._since: datetime | None = None  # jobs that ended before are another server's
        self._done: OrderedDict[JobId, None] = OrderedDict()
        self._tries: dict[JobId, int] = {}  # in vain, of those that are not done
        self._aside: tuple[JobId, Unreachable] | None = None  # in this round

    async def run(self) -> None:
        pause_s = EVERY_S
        while True:
            self._context.vitals.beat("traces", LONGEST_PAUSE_S + OVERLAP.total_seconds())
            if await self._is_ours():
                try:
                    await self.round()
                    pause_s = EVERY_S
                except Unreachable as error:
                    pause_s = min(max(PAUSE_S, 2 * pause_s), LONGEST_PAUSE_S)
                    log.warning("traces wait for their collector, the next try is in %g s: %s", pause_s, error)
            await self._context.clock.sleep(pause_s)

    async def round(self) -> None:
        """Everything that has ended and was not given yet. Raises Unreachable."""
        store, now = self._context.store, self._context.clock.now()
        if self._since is None:
            self._after, self._since = max(0, await store.newest_status() - LOOK_BACK_LINES), now - LOOK_BACK
        place, self._aside = self._after, None
        while lines := await store.ended_jobs(place, BATCH):
            for line in lines:
                await self._see_to(line, now)
                place = line.seq
                if line.at < now - OVERLAP and self._aside is None:
                    self._after = line.seq
        if self._aside is not None:
            raise self._aside[1]

    async def _is_ours(self) -> bool:
        """Kept from one round to the next; whoever gets it anew begins with the last minutes."""
        context, ttl = self._context, max(self._context.claim_ttl, timedelta(seconds=2 * LONGEST_PAUSE_S))
        if self._claim is not None and await context.store.renew(self._claim, ttl):
            return True
        self._since = None
        self._claim = await context.store.claim("traces", context.server_id, ttl)
        return self._claim is not None

    async def _see_to(self, line: Ended, now: datetime) -> None:
        if line.job_id in self._done or (self._since is not None and line.at < self._since):
            return
        if line.at < now - GIVE_UP:
            self._dropped(1)
        elif not await self._try(line.job_id):
            return
        self._be_done_with(line.job_id)

    async def _try(self, job_id: JobId) -> bool:
        """A trace that is not taken again and again is set aside, once: if the next one is taken it was this one's
        fault, and it is dropped; if not, the collector is away. Raises Unreachable."""
        try:
            await self._give(job_id)
        except Unreachable as error:
            self._tries[job_id] = self._tries.get(job_id, 0) + 1
            if self._tries[job_id] < TRIES or self._aside is not None:
                raise
            self._aside = job_id, error
            return False
        if self._aside is not None:
            log.warning("the trace of job %s is dropped: %s", *self._aside)
            self._dropped(1)
            self._be_done_with(self._aside[0])
            self._aside = None
        return True

    def _be_done_with(self, job_id: JobId) -> None:
        self._tries.pop(job_id, None)
        self._done[job_id] = None
        if len(self._done) > REMEMBERED:
            self._done.popitem(last=False)

    async def _give(self, job_id: JobId) -> None:
        try:
            found = spans(await self._story(job_id))
        except NotFound:
            return  # it was removed since
        for first in range(0, len(found), AT_ONCE):
            await self._sink.take(found[first : first + AT_ONCE])
        self._given(1)

    async def _story(self, job_id: JobId) -> Story:
        store, lines = self._context.store, list[Told]()
        after, is_whole = 0, False
        while len(lines) < MOST_EVENTS and not is_whole:
            page = await store.events(job_id, after, PAGE)
            lines += [Told(one.kind, one.entity_id, one.type, one.at, one.body) for one in page]
            after, is_whole = page[-1].seq if page else after, len(page) < PAGE
        return Story(
            job=await store.job(job_id),
            tasks=await store.job_tasks(job_id),
            attempts=await store.job_attempts(job_id),
            orders=await store.job_orders(job_id),
            leases=await store.job_leases(job_id),
            log=lines,
            is_whole=is_whole,
        )
