"""Whether there is money for a job, before it is taken: at least for its first machines, until they could be ended
again. Whether there is enough for all of it is the plan's to say."""

from typing import Any

from crucible.core.billables import Price, price_of
from crucible.core.budget import Standing, shortage
from crucible.core.budget_words import money, refused, span
from crucible.core.proposal import Candidate
from crucible.engine.context import Context
from crucible.engine.plan_view import PlanView
from crucible.engine.purse import Purse
from crucible.model.budget import Payer
from crucible.model.errors import BudgetExhausted
from crucible.model.job import Job
from crucible.model.offer import Market
from crucible.model.spec import Mode
from crucible.model.units import NOTHING, usd


async def check_funds(context: Context, job: Job, way: Candidate | None) -> None:
    """Raises BudgetExhausted if some budget could not pay for the start even if nothing else ran. What others use now
    can be waited for. `job` is not stored yet."""
    price = Price() if way is None else first_price(context, way, job.execution_mode)
    if price.to_begin <= 0:
        return
    short = shortage(await Purse(context).covering(job), price)
    if short is not None and short.is_final:
        hint = f"`crucible budget top-up {short.budget.id} AMOUNT` adds to it; a cheaper machine may do too"
        raise BudgetExhausted(refused(short), budget=short.budget.id, hint=hint)


def first_price(context: Context, way: Candidate, mode: Mode) -> Price:
    """Of a gang all machines; where tasks come and go, of one of the cheapest."""
    prices = []
    for part in way.parts:
        seller = context.sellers.get((part.listing.target.provider, part.listing.target.region))
        if seller is None:
            continue
        count, listing = part.count if mode is Mode.SINGLE_CLUSTER else 1, part.listing
        most = listing.on_demand if listing.market is Market.SPOT else None
        prices.append(price_of(count, listing.price or NOTHING, most, seller.facts, context.policy))
    if mode is Mode.SINGLE_CLUSTER:
        return sum(prices, Price())
    return min(prices, key=lambda price: price.to_begin, default=Price())


async def funds_view(context: Context, payer: Payer, view: PlanView) -> dict[str, Any]:
    """What a plan says of the budgets that the job would be paid from."""
    purse = Purse(context)
    await purse.stakes()
    found = purse.for_payer(payer)
    notes = [left_note(one) for one in found]
    return {"budgets": [left_view(one) for one in found], "notes": [*view.get("notes", ()), *notes]}


def left_note(one: Standing) -> str:
    budget = one.budget
    return f"the budget {budget.id} has {money(max(one.left, NOTHING))} of {money(budget.limit)} left{span(budget)}"


def left_view(one: Standing) -> dict[str, Any]:
    left = max(one.left, NOTHING)
    return {"id": one.budget.id, "limit_usd": usd(one.budget.limit), "left_microusd": left, "left_usd": usd(left)}
