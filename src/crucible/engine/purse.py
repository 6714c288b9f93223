"""One look at all budgets, and what is bought by it: purchases of one round count against each other. Nothing is read
before somebody wants to buy what costs money."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from crucible.core import budget as budgets
from crucible.core.billables import Billable, Price, billables
from crucible.core.budget import Position, Shortage, Standing
from crucible.engine.context import Context
from crucible.model.budget import Budget, BudgetId, Payer, Posted, Scope, Stakes
from crucible.model.ids import JobId
from crucible.model.job import Job
from crucible.model.units import NOTHING, MicroUsd


class Purse:
    """For a round of the cycle, a tick of the keeper, a request. It is not kept."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._stakes: Stakes | None = None
        self._standings: dict[BudgetId, Standing] = {}

    async def stakes(self) -> Stakes:
        if self._stakes is None:
            self._stakes = await self._context.store.stakes()
            found = await _standings(self._context, self._stakes)
            self._standings = {one.budget.id: one for one in found}
        return self._stakes

    async def standings(self) -> Sequence[Standing]:
        """Every budget that people have set, and the own ones of jobs that cost money now."""
        await self.stakes()
        return list(self._standings.values())

    async def pay(self, job: Job, price: Price) -> Shortage | None:
        """Promises the money for it, or says which budget lacks it."""
        return None if price.to_begin <= 0 else self.promise(await self.covering(job), price)

    def promise(self, standings: Iterable[Standing], price: Price) -> Shortage | None:
        standings = list(standings)
        short = budgets.shortage(standings, price)
        for one in standings if short is None else ():
            self._standings[one.budget.id] = one.promising(price.to_begin)
        return short

    async def covering(self, job: Job) -> Sequence[Standing]:
        """All that the job must keep to, its own and its workflow's too."""
        await self.stakes()
        ids = [job.id, *([job.parent] if job.parent is not None else [])]
        for job_id in ids:
            await self._with_own(job if job_id == job.id else await self._context.store.job(job_id))
        return self.for_payer(payer_of(job), ids)

    def for_payer(self, payer: Payer, job_ids: Collection[JobId] = ()) -> Sequence[Standing]:
        """Of what was looked at."""
        return [one for one in self._standings.values() if budgets.covers(one.budget, payer, job_ids)]

    async def _with_own(self, job: Job) -> None:
        """A job without machines is not among those that cost money now, but has spent what it has spent."""
        if job.budget_microusd is None:
            return
        budget = budgets.own(job.id, job.budget_microusd, job.when_spent, job.user_id, job.created_at)
        if budget.id not in self._standings:
            posted = await self._context.store.posted_of([job.id])
            self._standings[budget.id] = Standing(budget, Position(posted[job.id]))


def payer_of(job: Job) -> Payer:
    return Payer(job.user_id, job.team, job.project)


# --- looking --------------------------------------------------------------------------------------------------


async def _standings(context: Context, stakes: Stakes) -> Sequence[Standing]:
    now, policy = context.clock.now(), context.policy
    set_ones = {one.id: one for one in await context.store.budgets()}
    owned = [
        budgets.own(one.id, one.budget, one.when_spent, one.payer.user_id, one.created_at)
        for one in stakes.spenders
        if one.budget is not None and not one.is_over
    ]
    known = [*set_ones.values(), *(one for one in owned if one.id not in set_ones)]
    facts = {place: seller.facts for place, seller in context.sellers.items()}
    machines: Sequence[Billable] = billables(stakes, facts, policy) if known else ()
    posted = await _posted(context, known, now)
    return [Standing(one, budgets.position(one, posted[one.id], machines, now, policy)) for one in known]


async def _posted(context: Context, known: Sequence[Budget], now: datetime) -> Mapping[BudgetId, MicroUsd]:
    """Of each budget, since its period began: a question for each beginning, and one for all jobs."""
    store, found = context.store, dict[BudgetId, MicroUsd]()
    of_jobs = [one for one in known if one.scope is Scope.JOB]
    by_job = await store.posted_of([JobId(one.name) for one in of_jobs]) if of_jobs else {}
    since: dict[datetime | None, Sequence[Posted]] = {}
    for one in known:
        if one.scope is Scope.JOB:
            found[one.id] = by_job[JobId(one.name)]
            continue
        start = budgets.starts_at(one, now) or one.created_at
        if start not in since:
            since[start] = await store.posted_since(start)
        mine = (posted.amount for posted in since[start] if budgets.covers(one, posted.payer))
        found[one.id] = MicroUsd(sum(mine, NOTHING))
    return found
