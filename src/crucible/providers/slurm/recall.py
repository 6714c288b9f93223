"""Jobs of ours that slurmctld has forgotten, from the accounts of the cluster. They are asked only when there is
something to find: a job that was alive at the last look is not listed any more, or nobody has looked for a while. What
they tell is listed for as long as slurmctld would have remembered it."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from crucible.model.errors import ProviderError
from crucible.providers.slurm import accounting
from crucible.providers.slurm.door import Door, Job
from crucible.providers.slurm.listing import is_over
from crucible.providers.slurm.request import read_comment

log = logging.getLogger("crucible.slurm")

# How far back a server looks that does not know since when nobody has looked: a long weekend, and a bit.
LOOK_BACK_S = 7 * 86_400
# Listings come every ten seconds; slurmctld remembers for minutes. Who was away for so long may have missed an end.
AWAY_S = 60.0
# The accounts' clock is another one, and what they are told may be late.
MARGIN_S = 600
# A job of which the accounts know no end is asked for again, but not with every look, and not for ever.
ASK_EVERY_S = 10.0
GIVE_UP_S = 900.0
# After a failure it is tried ever more slowly; where no accounts are kept, an operator may begin to.
MOST_PAUSE_S = 600.0
NONE_KEPT_PAUSE_S = 3600.0
# As slurmctld does by default, and a bit more.
KEEP_S = 600.0
MOST_KEPT = 1000


class Recall:
    def __init__(
        self, cluster: str, door: Door, deployment: str, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster, self._door, self._deployment, self._monotonic = cluster, door, deployment, monotonic
        self._looked: float | None = None  # the last look
        self._complete: float | None = None  # the last look after which nothing was left to ask
        self._is_back = True  # from a time in which nobody looked, and nobody has asked yet
        self._alive: set[str] = set()  # jobs of ours as the last look found them, by handle
        self._missing: dict[str, float] = {}  # since when
        self._found: dict[str, tuple[float, Job]] = {}  # when, and what the accounts told
        self._asks_at = 0.0
        self._failures = 0
        self._one_at_a_time = asyncio.Lock()

    async def forgotten(self, listed: Sequence[Job]) -> list[Job]:
        """Those that have ended and are not in `listed`, which slurmctld told just now."""
        async with self._one_at_a_time:
            now = self._monotonic()
            self._compare(listed, now)
            if self._has_question(now) and now >= self._asks_at:
                await self._ask(listed, now)
            if not self._has_question(now):
                self._complete = now
            return self._kept(listed, now)

    def _compare(self, listed: Sequence[Job], now: float) -> None:
        self._is_back |= self._looked is None or now - self._looked > AWAY_S
        self._looked = now
        here = {job.handle for job in listed}
        self._missing |= {handle: now for handle in self._alive - here if handle not in self._missing}
        self._missing = {handle: since for handle, since in self._missing.items() if handle not in here}
        self._alive = {job.handle for job in listed if not is_over(job) and self._is_ours(job)}

    def _is_ours(self, job: Job) -> bool:
        token = read_comment(job.comment)
        return token is not None and token.deployment == self._deployment

    def _has_question(self, now: float) -> bool:
        return self._is_back or any(now - since < GIVE_UP_S for since in self._missing.values())

    # --- asking -------------------------------------------------------------------------------------------

    async def _ask(self, listed: Sequence[Job], now: float) -> None:
        """Accounts that cannot be read keep nobody from listing what slurmctld knows."""
        try:
            records = await self._door.records(self._window_s(now))
        except (ProviderError, OSError, TimeoutError) as error:
            self._failures += 1
            self._asks_at = now + min(ASK_EVERY_S * 2 ** min(self._failures, 10), MOST_PAUSE_S)
            if self._failures == 1:
                log.warning("the accounts of Slurm %s cannot be read: %s", self._cluster, error)
            return
        self._failures, self._is_back = 0, False
        self._asks_at = now + (ASK_EVERY_S if records is not None else NONE_KEPT_PAUSE_S)
        if records is None:
            self._missing.clear()  # as if nobody had asked
            return
        self._learn(accounting.jobs_of(records, self._deployment), {job.handle for job in listed}, now)

    def _window_s(self, now: float) -> int:
        return LOOK_BACK_S if self._complete is None else min(LOOK_BACK_S, int(now - self._complete) + MARGIN_S)

    def _learn(self, jobs: Sequence[Job], here: set[str], now: float) -> None:
        """Of one that nobody lists and that has not ended, the accounts may hear yet."""
        for job in jobs:
            if job.handle in here:
                continue
            if accounting.is_final(job):
                self._found.setdefault(job.handle, (now, job))
                self._missing.pop(job.handle, None)
            else:
                self._missing.setdefault(job.handle, now)

    def _kept(self, listed: Sequence[Job], now: float) -> list[Job]:
        """The newest. An order that slurmctld knows is what it says, whatever became of a job of the same name."""
        self._found = {handle: one for handle, one in self._found.items() if now - one[0] < KEEP_S}
        known = {job.name: job.id for job in listed if self._is_ours(job)}
        here = {job.handle for job in listed}
        kept = [job for _, job in self._found.values() if job.handle not in here]
        kept = [job for job in kept if known.get(job.name, job.id) == job.id]
        return sorted(kept, key=lambda job: job.ended_at or 0)[-MOST_KEPT:]
