"""What could be saved on what runs or waits now. What was saved already is in the sums of costs; the two are kept apart
and never added."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crucible.core import savings
from crucible.core.costs import Expected, done_of, ran_hours, remaining
from crucible.core.proposal import Candidate
from crucible.core.rights import sight
from crucible.core.savings import Idea, Standing
from crucible.engine.context import Context
from crucible.engine.planner import Planner
from crucible.model.account import Principal
from crucible.model.ids import JobId
from crucible.model.job import Job, JobStatus
from crucible.model.spec import JobSpec, Mode, Strategy
from crucible.model.units import MicroUsd
from crucible.ports.store import JobQuery

# Jobs that are thought about at a time: each is two or three plans. The newest come first.
MOST_JOBS = 20
UNFINISHED = frozenset(status for status in JobStatus if not status.is_terminal)


@dataclass(frozen=True, slots=True)
class Available:
    ideas: tuple[Idea, ...]
    looked_at: int  # jobs
    unknown: int  # of these: nobody knows what the rest of them costs
    left_out: bool  # there are more than were looked at


class Savings:
    def __init__(self, context: Context, planner: Planner) -> None:
        self._context = context
        self._planner = planner

    async def available(self, who: Principal) -> Available:
        """Of the jobs that `who` sees."""
        query = JobQuery(status=UNFINISHED, seen_by=sight(who), limit=MOST_JOBS)
        page, found, unknown = await self._context.store.jobs(query), list[Idea](), 0
        for row in page.items:
            some = await self._of(row.id)
            unknown += some is None
            found += some or ()
        found.sort(key=lambda idea: (-idea.saves, idea.standing.job_id))
        return Available(tuple(found), len(page.items), unknown, page.next_cursor is not None)

    async def _of(self, job_id: JobId) -> Sequence[Idea] | None:
        """None: nobody knows what it costs. Each task of many, and each step of a workflow, is another matter."""
        job = await self._context.store.job(job_id)
        spec = self._context.spec_of(job)
        if job.execution_mode is not Mode.SINGLE_CLUSTER:
            return None
        made, _ = await self._planner.propose(spec, Strategy.CHEAPEST)
        way, standing = made.runnable or made.chosen, await self._running(job)
        if standing is None and way is not None:
            standing = savings.standing_of(way, job.id, job.name)
        if standing is None or not standing.cost_left:
            return None
        return savings.ideas(standing, [*savings.ways_of(made), *await self._here(spec, standing)])

    async def _here(self, spec: JobSpec, standing: Standing) -> Sequence[Candidate]:
        """Where it is: as it is allowed to run, and as if its machines might be taken away."""
        here = frozenset({f"{standing.provider}/{standing.region}"})
        with_spot = replace(spec, constraints=replace(spec.constraints, allow_spot=True))
        asked = (spec,) if spec.constraints.allow_spot else (spec, with_spot)
        found = [await self._planner.best_in(one, Strategy.CHEAPEST, here) for one in asked]
        await self._context.clock.sleep(0)  # plans take their time, and others wait
        return [way for way in found if way is not None]

    async def _running(self, job: Job) -> Standing | None:
        """None, if it has no machine that is paid for."""
        store, now = self._context.store, self._context.clock.now()
        usages = await store.open_usages_of([job.id])
        prediction = await store.prediction(job.id)
        if not usages or job.selected_provider is None:
            return None
        attempts = await store.job_attempts(job.id)
        ran, hours = ran_hours(attempts, now), None if prediction is None else prediction.estimated_hours
        plan = None if hours is None else Expected(hours=hours, hours_high=hours, per_hour=MicroUsd(0))
        rest = remaining(done_of(await store.progress(job.id), attempts, 1), ran, plan, usages)
        if rest is None:
            return None
        return Standing(
            job_id=job.id,
            name=job.name,
            provider=job.selected_provider,
            region=job.selected_region or "",
            instance_type=job.selected_instance_type or "",
            is_spot=bool(job.selected_spot),
            cost_left=rest.likely,
            share_left=rest.hours / (rest.hours + ran) if rest.hours + ran > 0 else 1.0,
        )
