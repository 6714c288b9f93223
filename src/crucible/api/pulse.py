"""What followers of a job need to know of it, read once per piece of news however many follow; so is what those who are
at the same place of its streams hear next. A follower of a job on another server hears no news here, so what is known
is looked at again after a moment."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crucible.engine.hub import Hub
from crucible.engine.spending import so_far_of
from crucible.model.health import Finding, JobHealth
from crucible.model.ids import JobId
from crucible.model.job import Job
from crucible.model.units import MicroUsd
from crucible.ports.clock import Clock
from crucible.ports.store import Store
from crucible.ports.trials import JobProgress

# How long news of another server may go unnoticed.
LOOK_AGAIN_S = 2.0
# Money moves by the second; a job that talks all the time is not added up for each of its lines.
ADD_UP_AGAIN_S = 1.0
REMEMBERED = 1024
# Of one look: those who follow are at the same place, and who catches up is at a place of its own.
MOST_SHARED = 8


@dataclass(frozen=True, slots=True)
class Seen:
    counter: int  # of the hub, before the look: news since then have a larger one
    at: float
    job: Job
    progress: JobProgress | None
    cost: MicroUsd  # so far …
    cost_at: float  # … then
    health: JobHealth | None = None
    findings: Sequence[Finding] = ()  # open
    # What was made of the streams since then, by who was where; whatever comes later is news, and another look.
    shared: dict[Any, Any] = field(default_factory=dict, compare=False)

    def share(self, place: object, made: object) -> None:
        if len(self.shared) < MOST_SHARED:
            self.shared[place] = made


class Pulse:
    def __init__(self, store: Store, hub: Hub, clock: Clock) -> None:
        self._store = store
        self._hub = hub
        self._clock = clock
        self._looks: OrderedDict[JobId, asyncio.Task[Seen]] = OrderedDict()

    async def look(self, job_id: JobId) -> Seen:
        """The job as it was at the newest news, or later."""
        look = self._looks.get(job_id)
        if look is None or not self._is_fresh(job_id, look):
            before = look.result() if look is not None and _has_seen(look) else None
            look = self._looks[job_id] = asyncio.ensure_future(self._read(job_id, before))
            self._looks.move_to_end(job_id)
            if len(self._looks) > REMEMBERED:
                self._looks.popitem(last=False)
        return look.result() if look.done() else await asyncio.shield(look)

    async def wait(self, seen: Seen) -> None:
        """For news that came after `seen`, but not for ever."""
        await self._hub.wait(seen.job.id, seen.counter, LOOK_AGAIN_S)

    def _is_fresh(self, job_id: JobId, look: "asyncio.Task[Seen]") -> bool:
        if not look.done():
            return True
        if not _has_seen(look):
            return False
        seen = look.result()
        is_old = self._clock.monotonic() - seen.at >= LOOK_AGAIN_S / 2
        return seen.counter == self._hub.counter(job_id) and not is_old

    async def _read(self, job_id: JobId, before: Seen | None) -> Seen:
        counter, at = self._hub.counter(job_id), self._clock.monotonic()
        job, progress = await self._store.job(job_id), await self._store.job_progress(job_id)
        if before is not None and at - before.cost_at < ADD_UP_AGAIN_S:
            return replace(before, counter=counter, at=at, job=job, progress=progress, shared={})
        costs = await so_far_of(self._store, self._clock, [job_id])
        health, findings = await self._store.job_healths([job_id]), await self._store.open_findings([job_id])
        return Seen(counter, at, job, progress, costs[job_id], at, health.get(job_id), findings)


def _has_seen(look: "asyncio.Task[Seen]") -> bool:
    return look.done() and not look.cancelled() and look.exception() is None
