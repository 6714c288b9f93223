"""What jobs took flows back: the end of a job is written beside what was expected of it, and plans are made with a book
of speeds that knows the newest of them. What the rows mean is decided in `core.telemetry`."""

from collections.abc import Callable, Mapping
from datetime import datetime

from crucible.core import prediction
from crucible.core.costs import moved_for, so_far
from crucible.core.offers import OfferTable
from crucible.core.overheads import believed, overhead_of, starts_of
from crucible.core.speeds import SpeedBook
from crucible.core.telemetry import factors_of, observation_of
from crucible.engine.context import Context
from crucible.model.job import Job, JobStatus
from crucible.model.record import Prediction
from crucible.model.units import MicroUsd
from crucible.ports.store import PredictionQuery

# The newest so many jobs teach; an older one weighs little beside them.
LEARNT_FROM = 2000
# How often jobs of other servers are looked for, and at most those that ended here: reading takes milliseconds.
LOOK_AGAIN_S = 300.0
LOOK_AGAIN_AFTER_END_S = 10.0


class Telemetry:
    def __init__(self, context: Context, shipped: Callable[[], SpeedBook]) -> None:
        self._context = context
        self.shipped = shipped
        self._book: SpeedBook | None = None
        self._looked_at = 0.0
        self._has_news = False
        self._starts: Mapping[str, float] = {}
        self._starts_at: float | None = None

    async def book(self) -> SpeedBook:
        """The shipped speeds with what past jobs say of them; the same object until they say something else."""
        if self._book is None or self._is_due():
            self._looked_at, self._has_news = self._context.clock.monotonic(), False
            self._book = await self._read(self._book or self.shipped())
        return self._book

    async def outcome(self, job: Job) -> Prediction:
        """The second half of the row of a job that has ended."""
        store = self._context.store
        planned = await store.prediction(job.id)
        self._has_news |= planned is not None and planned.book_hours is not None
        attempts, leases, now = (
            await store.job_attempts(job.id),
            await store.job_leases(job.id),
            self._context.clock.now(),
        )
        usages = await store.job_usages(job.id)
        charged = so_far(usages, now) + moved_for(await store.job_postings(job.id)) if usages else None
        paid_h = prediction.paid_hours(usages, job.selected_count or 1, now)
        return prediction.came_of(
            job,
            attempts,
            leases,
            await store.progress(job.id),
            now,
            None if charged is None else MicroUsd(charged),
            paid_h,
        )

    async def starts(self, shipped: OfferTable) -> Mapping[str, float]:
        """How long machines of each provider are paid for beside the work, in hours; the same object until past jobs
        say something else."""
        now = self._context.clock.monotonic()
        if self._starts_at is None or now - self._starts_at >= LOOK_AGAIN_S:
            self._starts_at = now
            done = await self._context.store.predictions(PredictionQuery(status=JobStatus.COMPLETED, limit=LEARNT_FROM))
            seen = [one for row in done if (one := overhead_of(row)) is not None]
            found = starts_of(seen, believed(shipped), whole_day(self._context.clock.now()))
            self._starts = self._starts if found == self._starts else found
        return self._starts

    def _is_due(self) -> bool:
        age = self._context.clock.monotonic() - self._looked_at
        return age >= (LOOK_AGAIN_AFTER_END_S if self._has_news else LOOK_AGAIN_S)

    async def _read(self, book: SpeedBook) -> SpeedBook:
        query = PredictionQuery(status=JobStatus.COMPLETED, teaches=True, limit=LEARNT_FROM)
        done = await self._context.store.predictions(query)
        seen = [one for row in done if (one := observation_of(row, book)) is not None]
        factors = factors_of(seen, whole_day(self._context.clock.now()))
        return book if factors == book.factors else book.with_telemetry(factors)


def whole_day(now: datetime) -> datetime:
    """Observations fade over months: within a day the same rows say the same, and no plan is made anew for it."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0)
