"""What followers of a job need to know of it, read once per piece of news however many follow. A follower of a job on
another server hears no news here, so what is known is looked at again after a moment."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from crucible.engine.hub import Hub
from crucible.model.ids import JobId
from crucible.model.job import Job
from crucible.model.record import Progress
from crucible.ports.clock import Clock
from crucible.ports.store import Store

# How long news of another server may go unnoticed.
LOOK_AGAIN_S = 2.0
REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Seen:
    counter: int  # of the hub, before the look: news since then have a larger one
    at: float
    job: Job
    progress: Sequence[Progress]


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
            look = self._looks[job_id] = asyncio.ensure_future(self._read(job_id))
            self._looks.move_to_end(job_id)
            if len(self._looks) > REMEMBERED:
                self._looks.popitem(last=False)
        return await asyncio.shield(look)

    async def wait(self, seen: Seen) -> None:
        """For news that came after `seen`, but not for ever."""
        await self._hub.wait(seen.job.id, seen.counter, LOOK_AGAIN_S)

    def _is_fresh(self, job_id: JobId, look: "asyncio.Task[Seen]") -> bool:
        if not look.done():
            return True
        if look.cancelled() or look.exception() is not None:
            return False
        seen = look.result()
        is_old = self._clock.monotonic() - seen.at >= LOOK_AGAIN_S / 2
        return seen.counter == self._hub.counter(job_id) and not is_old

    async def _read(self, job_id: JobId) -> Seen:
        counter, at = self._hub.counter(job_id), self._clock.monotonic()
        return Seen(counter, at, await self._store.job(job_id), await self._store.progress(job_id))
