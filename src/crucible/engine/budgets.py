"""Holds what is spent against the budgets, every tick: tells of shares that are reached, stops jobs in time, lets those
go on that there is money for again. Everything is derived anew each time, so whoever dies half way has lost nothing."""

from collections.abc import Callable, Iterable
from datetime import datetime

from crucible.core.billables import Price, most_asked, price_of
from crucible.core.budget import Standing, Verdict, decide
from crucible.core.budget_words import Whom, key_of, paid_for, reached
from crucible.engine.budget_wishes import BudgetWishes
from crucible.engine.context import Context
from crucible.engine.purse import Purse
from crucible.model.budget import KEEPER, Budget, Scope, Spender, Stakes
from crucible.model.errors import NotFound, StaleClaim
from crucible.model.ids import JobId, UserId
from crucible.model.job import Desired
from crucible.model.lease import Order
from crucible.ports.store import Claim

# News for the keeper: a budget was changed.
CHANGED = "budgets"
TOLD_REMEMBERED = 10_000


class BudgetKeeper:
    def __init__(self, context: Context, wishes: BudgetWishes, want_place: Callable[[], None]) -> None:
        self._context = context
        self._wishes = wishes
        self._want_place = want_place
        self._told: set[str] = set()  # keys of notices: each is written once in any case

    async def run(self) -> None:
        """For ever; one server at a time."""
        context, tick_s = self._context, self._context.policy.budget_tick.total_seconds()
        while True:
            seen = context.hub.counter(CHANGED)
            claim = await context.store.claim(CHANGED, context.server_id, context.claim_ttl)
            if claim is not None:
                try:
                    await self.tick(claim)
                except StaleClaim:
                    pass
                finally:
                    await context.store.release(claim)
            await context.hub.wait(CHANGED, seen, tick_s)

    async def tick(self, claim: Claim | None = None) -> None:
        purse, now = Purse(self._context), self._context.clock.now()
        stakes = await purse.stakes()
        stopped: set[JobId] = set()
        for standing in await purse.standings():
            verdict = decide(standing)
            await self._tell(standing, verdict, now, claim)
            for job_id in verdict.stop:
                if job_id not in stopped and await self._wishes.stop(standing, job_id, claim):
                    stopped.add(job_id)
            for job_id in verdict.cut:
                jobs = {one.id for one in stakes.spenders if job_id in (one.id, one.root)}
                held = [lease for lease in stakes.leases if lease.job_id in jobs]
                await self._wishes.cut(standing.budget, held, claim)
        await self._let_go(purse, stakes, stopped, claim)

    async def _tell(self, standing: Standing, verdict: Verdict, now: datetime, claim: Claim | None) -> None:
        budget, share = standing.budget, verdict.reached
        if share is None or (key := key_of(budget, now, f"{share:g}")) in self._told:
            return
        notice = reached(standing, share, now, await self._concerned(budget))
        await self._context.store.commit((), (notice,), label="budget.warn", claim=claim)
        if len(self._told) >= TOLD_REMEMBERED:
            self._told.clear()
        self._told.add(key)

    async def _concerned(self, budget: Budget) -> Whom:
        store, name = self._context.store, budget.name
        match budget.scope:
            case Scope.SERVER:
                return Whom()
            case Scope.TEAM:
                return Whom(team=name)
            case Scope.USER:
                return Whom(user_id=UserId(name))
            case Scope.PROJECT:
                return Whom(await store.team_of_project(name), name)
            case Scope.JOB:
                try:
                    return paid_for(await store.job(JobId(name)))
                except NotFound:  # it was removed since
                    return Whom(user_id=budget.created_by)

    # --- those that wait for money --------------------------------------------------------------------------------

    async def _let_go(self, purse: Purse, stakes: Stakes, stopped: set[JobId], claim: Claim | None) -> None:
        """The most urgent first, of these the oldest: what one is promised, the next cannot have."""
        waiting = [one for one in stakes.spenders if is_paused(one) and one.id == unit_of(one, stakes)]
        for one in sorted(waiting, key=lambda each: (-each.priority, each.created_at, each.id)):
            if one.id in stopped or is_stopping(one, stakes):
                continue
            covering = await purse.covering(await self._context.store.job(one.id))
            price = self._price(order for order in stakes.wanted if order.job_id in members(one, stakes))
            if all(each.left > 0 for each in covering) and purse.promise(covering, price) is None:
                await self._wishes.go_on(one.id, claim)
                self._want_place()

    def _price(self, orders: Iterable[Order]) -> Price:
        """Of what it bought last; of a workflow, of the dearest of its steps."""
        prices = [self._price_of(order) for order in orders]
        return max(prices, key=lambda price: price.to_begin, default=Price())

    def _price_of(self, order: Order) -> Price:
        seller = self._context.sellers.get((order.target.provider, order.target.region))
        if seller is None:
            return Price()
        return price_of(order.count, order.price_per_hour, most_asked(order), seller.facts, self._context.policy)


def is_paused(one: Spender) -> bool:
    return one.desired is Desired.HOLD and one.desired_by == KEEPER and not one.is_over


def unit_of(one: Spender, stakes: Stakes) -> JobId:
    """What is let go together: its workflow, if that is paused too."""
    root = next((other for other in stakes.spenders if other.id == one.root), one)
    return root.id if is_paused(root) else one.id


def members(one: Spender, stakes: Stakes) -> set[JobId]:
    return {one.id, *(other.id for other in stakes.spenders if other.root == one.id)}


def is_stopping(one: Spender, stakes: Stakes) -> bool:
    """Some of its machines are not gone yet: what they leave over is known when they are."""
    mine = members(one, stakes)
    return any(lease.job_id in mine for lease in stakes.leases)
