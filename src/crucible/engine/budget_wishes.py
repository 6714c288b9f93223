"""What the keeper of budgets wants of jobs. Each wish is one transaction with the notice that tells of it; carrying it
out is the reconcilers' work, as with anybody's wish."""

from collections.abc import Callable, Sequence

from crucible.core import job as jobs
from crucible.core import lease as leases
from crucible.core.budget import Position, Shortage, Standing
from crucible.core.budget_words import stop_notice, stopped, went_on
from crucible.engine.context import Context, log
from crucible.engine.waking import wake_job
from crucible.model.budget import KEEPER, Budget
from crucible.model.change import Change, changed
from crucible.model.errors import Conflict, NotFound, StaleVersion
from crucible.model.ids import JobId
from crucible.model.job import Desired, Job
from crucible.model.lease import Lease, LeasePhase
from crucible.model.notice import Notice
from crucible.model.units import NOTHING, MicroUsd
from crucible.ports.store import Claim

# Jobs change while they run: what was read may be old by the time it is written.
TRIES = 5


class BudgetWishes:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def stop(self, standing: Standing, job_id: JobId, claim: Claim | None) -> bool:
        """It saves, and is held or ends, with all that works for it. False if there was nothing left to stop."""
        budget = standing.budget
        desired = Desired.HOLD if budget.pauses else Desired.CANCEL

        def notice(job: Job) -> Notice:
            return stop_notice(standing, job, self._context.clock.now())

        is_done = await self._wish(job_id, desired, stopped(budget), notice, "budget.stop", claim)
        if is_done:
            log.info("%s: job %s is told to stop", stopped(budget), job_id)
        return is_done

    async def end(self, short: Shortage, job_id: JobId, claim: Claim) -> None:
        """What is left will never pay for the machines that it needs."""
        spent = MicroUsd(short.budget.limit - max(short.left, NOTHING))
        await self.stop(Standing(short.budget, Position(spent)), job_id, claim)

    async def go_on(self, job_id: JobId, claim: Claim | None) -> bool:
        """What the keeper held, it lets go. What a person held stays so. Whoever calls this wants places for it."""
        return await self._wish(job_id, Desired.RUN, went_on(), None, "budget.go_on", claim)

    async def cut(self, budget: Budget, held: Sequence[Lease], claim: Claim | None) -> None:
        """Its time to save is over, and so is the money for it: the machines end now."""
        context, now, reason = self._context, self._context.clock.now(), stopped(budget)
        changes: list[Change] = []
        for lease in held:
            if lease.phase in (LeasePhase.REQUESTED, LeasePhase.ACTIVE):
                facts = context.seller(lease.target).facts
                events = leases.decide(lease, leases.CloseWanted(reason), now, context.policy, facts)
                changes += changed(lease, events, leases.evolve)[1]
        try:
            if changes:
                await context.store.commit(changes, label="budget.cut", claim=claim)
        except StaleVersion:
            return  # they are looked at again with the next tick
        for change in changes:
            if isinstance(change.after, Lease):
                context.tell_lease(change.after)

    async def _wish(
        self,
        job_id: JobId,
        desired: Desired,
        reason: str,
        notice: Callable[[Job], Notice] | None,
        label: str,
        claim: Claim | None,
    ) -> bool:
        for _ in range(TRIES):
            found = await self._unit(job_id)
            changes = [change for job in found for change in self._wished(job, desired, reason)]
            if not changes:
                return False
            records = () if notice is None else (notice(found[0]),)
            try:
                await self._context.store.commit(changes, records, label=label, claim=claim)
            except StaleVersion:
                continue
            for change in changes:
                await wake_job(self._context, JobId(change.after.id))
            return True
        log.warning("job %s changes too quickly to be told %s; the next tick tries again", job_id, desired)
        return False

    async def _unit(self, job_id: JobId) -> Sequence[Job]:
        """The job first, then the jobs of its steps."""
        try:
            return [await self._context.store.job(job_id), *await self._context.store.child_jobs(job_id)]
        except NotFound:
            return ()

    def _wished(self, job: Job, desired: Desired, reason: str) -> tuple[Change, ...]:
        is_theirs = job.desired is Desired.HOLD and job.desired_by != KEEPER
        if job.status.is_terminal or (desired is not Desired.CANCEL and is_theirs):
            return ()
        try:
            events = jobs.wish(job, desired, KEEPER, reason, self._context.clock.now())
        except Conflict:
            return ()
        return changed(job, events, jobs.evolve)[1]
