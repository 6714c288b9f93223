"""The planner: what fits, what it costs and risks, what is best, and why the rest is not. Pure: the same question about
the same table has the same answer, byte for byte.

Risk is the dear part, so it is asked lazily: ways are ordered by what they would be worth without any, which no risk
can better, and looked at until no other can win."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from crucible.core import candidates, rules, strategy
from crucible.core.candidates import Basis, Odds, Rough, Ways
from crucible.core.offers import Bools, Codes, Floats, Ints, Listing, OfferTable
from crucible.core.perf import Hours, SpeedBook, work_hours
from crucible.core.proposal import Candidate, Proposal, Refusal, Rule
from crucible.core.wording import candidates_of, chosen_why, notes_of, other_why
from crucible.model.spec import Constraints, JobSpec, Strategy

# Ways whose risk is looked at together.
BLOCK = 128
# Spot gangs that are also tried with some machines on demand: so many at a time, and no more than so many.
MIXED = 16
MOST_MIXED = 128
MOST_ALTERNATIVES = 8
TRIED_OF_EACH = 8  # offers of a provider that is only named beside the others
# Whatever reliability is asked for, a limit must at least be more likely kept than not.
EVEN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    spec: JobSpec
    now: datetime
    enabled: frozenset[str]  # where machines may be bought: "aws" everywhere, "aws/us-east-1" in that region
    strategy: Strategy | None = None  # None: the spec's, else balanced

    @property
    def objective(self) -> Strategy:
        return self.strategy or self.spec.constraints.strategy or Strategy.BALANCED

    @property
    def least_odds(self) -> float:
        return max(self.spec.constraints.min_reliability, EVEN)


@dataclass(frozen=True, slots=True)
class Study:
    """Everything found out about a question; `rule` is per offer and grows as ways are turned down."""

    question: Question
    table: OfferTable
    ruling: rules.Ruling
    hours: Hours
    basis: Basis
    rough: Rough  # what fits as far as can be said without risk
    rule: rules.Rules
    limits: Constraints  # of the spec, as far as they can be checked
    view: "View"
    hopeful: tuple[Floats, ...]  # the strategy's keys of `rough`: no risk can better them
    enabled: Bools  # per place


def study(question: Question, table: OfferTable, book: SpeedBook) -> Study:
    """The cheap part: rules, hours, money."""
    spec = question.spec
    ruling = rules.judge(spec, table, question.now)
    hours = work_hours(spec, table, ruling.gang.nodes, ruling.gang.used, book)
    rule = unknown_speed(ruling.rule, table, hours.hours)
    limits = checkable(spec.constraints, hours.hours, question.now)
    basis = candidates.basis_of(spec, table, ruling, hours.hours)
    rough = candidates.rough(table, basis, np.flatnonzero(rule == 0), limits.budget)
    hopeless = too_much(limits, rough, question.now)
    rule[rough.row] = hopeless
    rough = rough.take(hopeless == 0) if hopeless.any() else rough
    view = View(
        least_cost=least(rough.cost),
        least_h=least(rough.wall_h),
        own=candidates.own_sellers(table),
        near=candidates.near_places(spec, table),
        preferred=candidates.preferred_places(spec, table),
    )
    hopeful = keys_of(question, table, view, rough, np.ones(len(rough.row)))
    enabled = table.enabled_places(question.enabled)
    return Study(question, table, ruling, hours, basis, rough, rule, limits, view, hopeful, enabled)


def checkable(limits: Constraints, hours: Floats, now: datetime) -> Constraints:
    """Without budget and deadline if nobody knows how long it takes; what has passed has passed."""
    if not np.isnan(hours).all() or (limits.deadline is not None and limits.deadline <= now):
        return limits
    return replace(limits, budget=None, deadline=None)


def least(values: Floats) -> float:
    """Above nothing: what costs nothing stays at nothing, whatever it is compared with."""
    positive = values[values > 0]
    return float(positive.min()) if len(positive) else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What ways are measured against: the best of everything that fits, so that each scores the same in every pool."""

    least_cost: float  # of what costs anything
    least_h: float
    own: Bools  # per seller
    near: Bools  # per place
    preferred: Bools


def unknown_speed(rule: rules.Rules, table: OfferTable, hours: Floats) -> rules.Rules:
    """Where some are known, the others cannot be compared; where none is, all are compared by the hour."""
    unknown = np.isnan(hours)
    if not unknown.any() or unknown.all():
        return rule
    is_first = (rule == Rule.NONE) | (rule > Rule.SPEED_UNKNOWN)  # those were asked already, and are told later
    np.copyto(rule, np.int8(Rule.SPEED_UNKNOWN), where=unknown[table.shape] & is_first)
    return rule


def too_much(limits: Constraints, rough: Rough, now: datetime) -> rules.Rules:
    """Late or too dear even if nothing happens."""
    rule = np.zeros(len(rough.row), dtype=np.int8)
    if limits.deadline is not None:
        left_h = (limits.deadline - now).total_seconds() / candidates.SECONDS
        rules.later(rule, rough.wall_h > left_h, Rule.DEADLINE)
    if limits.budget is not None:
        rules.later(rule, rough.spare_h < 0, Rule.BUDGET)
    return rule


# --- choosing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pool:
    """Ways whose risk is known and good enough, best first."""

    ways: Ways
    odds: Odds
    keys: tuple[Floats, ...]  # of the strategy


def propose(question: Question, table: OfferTable, book: SpeedBook) -> Proposal:
    found = study(question, table, book)
    pool = runnable = pick(found, everything(found))
    if len(pool.ways) and not is_enabled(found, pool.ways)[0]:
        runnable = pick(found, np.flatnonzero(is_enabled(found, found.rough)))
    return written(found, pool, runnable)


def purchase(question: Question, table: OfferTable, book: SpeedBook) -> Candidate | None:
    """What to buy now: the best way that is enabled and is one order."""
    found = study(question, table, book)
    pool = pick(found, np.flatnonzero(is_enabled(found, found.rough)))
    whole = subset(pool, np.flatnonzero(pool.ways.firm == 0)[:1])
    return next(iter(tell(found, whole)), None)


def everything(found: Study) -> Ints:
    return np.arange(len(found.rough.row))


def pick(found: Study, among: Ints) -> Pool:
    """The best of some ways that keeps its limits, and what was looked at on the way to it."""
    is_all = len(among) == len(found.rough.row)
    hopeful = found.hopeful if is_all else tuple(key[among] for key in found.hopeful)
    order = strategy.best(hopeful, BLOCK)
    pools: list[Pool] = []
    end = 0
    while end < len(order) and could_win(hopeful, order[end], pools):
        chosen = order[end : end + BLOCK]
        end += len(chosen)
        pools.append(pool_of(found, ways_at(found, among[chosen])))
        if end == len(order) < len(among) and could_win(hopeful, order[-1], pools):
            order = strategy.ranked(hopeful)
    for start in range(0, min(end, MOST_MIXED), MIXED):
        if could_win(hopeful, order[start], pools):
            gangs = risky_gangs(found, among[order[start : min(start + MIXED, end)]])
            pools += [pool_of(found, mixed_gangs(found, ways_at(found, gangs)))] if len(gangs) else []
    return united(pools or [pool_of(found, ways_at(found, among))])


def could_win(hopeful: tuple[Floats, ...], index: np.int64, pools: Sequence[Pool]) -> bool:
    """Whether this one, and so what comes after it, may be better than everything looked at. What was hoped for cannot
    be surpassed in any key, so not in their order either."""
    bests = [[key[0] for key in pool.keys] for pool in pools if len(pool.ways)]
    return not bests or [key[index] for key in hopeful] < min(bests)


def risky_gangs(found: Study, chosen: Ints) -> Ints:
    rows = found.rough.row[chosen]
    return chosen[~found.table.is_steady[rows] & (found.basis.nodes[found.table.shape[rows]] > 1)]


def mixed_gangs(found: Study, gangs: Ways) -> Ways:
    """Some of the machines on demand: what was turned down for what it is, and not for what it comes to, is no part."""

    def is_usable(row: int) -> bool:
        return not 0 < found.rule[row] < Rule.PRICE_LIMIT and found.rule[row] != Rule.QUOTA

    ways = candidates.mixed(found.table, gangs, is_usable)
    hourly = found.limits.max_price_per_hour
    return ways if hourly is None else ways.take(ways.price <= hourly)


def cheapest_of_each_type(found: Study) -> Ints:
    """Steady and not; of equals all."""
    cost, row = found.rough.cost, found.rough.row
    kind = 2 * found.table.shape[row] + found.table.is_spot[row]
    least_of_kind = np.full(2 * len(found.table.shapes.name), np.inf)
    np.minimum.at(least_of_kind, kind, cost)
    return np.flatnonzero(cost == least_of_kind[kind])


def fronts(found: Study, few: Ints) -> Ints:
    """Where no other is cheaper and faster: what a person might prefer."""
    cost, wall_h = found.rough.cost, found.rough.wall_h
    few = few[np.lexsort((wall_h[few], cost[few]))]
    fastest = np.minimum.accumulate(wall_h[few])
    is_front: Bools = np.concatenate([[True], wall_h[few][1:] < fastest[:-1]])[: len(few)]
    return few[is_front]


def bests_of_each(found: Study, few: Ints) -> Ints:
    """Of every provider its best, if nothing happens."""
    sellers = found.table.seller[found.rough.row[few]]
    best = [np.zeros(0, dtype=np.int64)]
    for seller in np.flatnonzero(np.bincount(sellers)):
        rows = few[sellers == seller]
        best.append(rows[strategy.best(tuple(key[rows] for key in found.hopeful), TRIED_OF_EACH)])
    return np.concatenate(best)


def widened(found: Study, pool: Pool) -> Pool:
    """With what a person wants to see beside the best."""
    few = cheapest_of_each_type(found)
    worth = np.union1d(fronts(found, few), bests_of_each(found, few))
    new = worth[~np.isin(found.rough.row[worth], pool.ways.row) & (found.rule[found.rough.row[worth]] == 0)]
    return united([pool, pool_of(found, ways_at(found, new))]) if len(new) else pool


def ways_at(found: Study, chosen: Ints) -> Ways:
    return candidates.ways_of(found.question.spec, found.table, found.basis, found.rough.row[chosen])


def odds_of(found: Study, ways: Ways) -> Odds:
    return candidates.odds(found.limits, ways, found.question.now)


def turned_down(found: Study, ways: Ways, odds: Odds) -> rules.Rules:
    """By its risk; what is turned down is noted."""
    question = found.question
    asked = question.spec.constraints.min_reliability > EVEN
    rule = np.zeros(len(ways), dtype=np.int8)
    rules.later(rule, odds.in_time < question.least_odds, Rule.RELIABILITY if asked else Rule.DEADLINE)
    rules.later(rule, odds.in_budget < question.least_odds, Rule.RELIABILITY if asked else Rule.BUDGET)
    rules.later(rule, ~np.isfinite(ways.wall_h), Rule.RELIABILITY)
    alone = ways.firm == 0  # an offer that is too risky alone may be good enough with others
    found.rule[ways.row[alone]] = rule[alone]
    return rule


def pool_of(found: Study, ways: Ways) -> Pool:
    odds = odds_of(found, ways)
    good = turned_down(found, ways, odds) == 0
    if not good.all():  # what never ends has no score
        ways, odds = ways.take(good), Odds(odds.in_time[good], odds.in_budget[good])
    return sorted_pool(Pool(ways, odds, scored(found, ways, odds.reliability)), np.arange(len(ways)))


def sorted_pool(pool: Pool, kept: Ints) -> Pool:
    # The order of ids breaks ties, whatever was looked at first.
    keys: list[Floats | Ints] = [*pool.keys, pool.ways.row, pool.ways.firm]
    return subset(pool, kept[strategy.ranked(tuple(key[kept] for key in keys))])


def united(pools: Sequence[Pool]) -> Pool:
    if len(pools) == 1:
        return pools[0]
    whole = gathered(pools)
    return sorted_pool(whole, np.arange(len(whole.ways)))


def gathered(pools: Sequence[Pool]) -> Pool:
    return Pool(
        candidates.joined([pool.ways for pool in pools]),
        Odds(*(np.concatenate([getattr(pool.odds, name) for pool in pools]) for name in ("in_time", "in_budget"))),
        tuple(np.concatenate(keys) for keys in zip(*(pool.keys for pool in pools), strict=True)),
    )


def scored(found: Study, ways: Ways, reliability: Floats) -> tuple[Floats, ...]:
    return keys_of(found.question, found.table, found.view, ways, reliability)


def keys_of(
    question: Question, table: OfferTable, view: View, ways: Ways | Rough, reliability: Floats
) -> tuple[Floats, ...]:
    place = table.place[ways.row]
    merits = strategy.Merits(
        cost=ways.cost / view.least_cost,
        time=ways.wall_h / view.least_h,
        reliability=reliability,
        is_own=flagged(view.own, table.seller[ways.row]),
        is_near=flagged(view.near, place),
        is_preferred=flagged(view.preferred, place),
        is_steady=table.is_steady[ways.row],
    )
    return strategy.keys(question.objective, merits, question.spec.constraints.performance_weight)


def flagged(flags: Bools, index: Codes) -> Bools:
    """`flags[index]`, quickly where all are the same."""
    if flags.all() or not flags.any():
        return np.full(len(index), bool(flags.all()))
    return flags[index]


def is_enabled(found: Study, ways: Ways | Rough) -> Bools:
    return flagged(found.enabled, found.table.place[ways.row])


# --- telling ----------------------------------------------------------------------------------------------


def written(found: Study, best: Pool, runnable: Pool) -> Proposal:
    pool = widened(found, best) if len(best.ways) else best
    runnable = pool if runnable is best else runnable
    front = few_mixed(pool, [i for i in front_of(pool) if i != 0])[:MOST_ALTERNATIVES]
    shown = subset(pool, np.array([0, *front][: len(pool.ways)], dtype=np.int64))
    others = best_of_each(found, pool, shown)
    own = subset(runnable, np.arange(0 if runnable is pool else min(1, len(runnable.ways))))
    # All at once: odds of a few cost no more than odds of one.
    told = tell(found, gathered([shown, others, own]))
    for mixed in (pool.ways.take(pool.ways.firm > 0), runnable.ways.take(runnable.ways.firm > 0)):
        found.rule[mixed.row] = found.rule[mixed.firm_row] = Rule.NONE  # not good enough alone, but together
    chosen = replace(told[0], why=chosen_why(told[0], found.question.objective)) if told else None
    first_own = len(shown.ways) + len(others.ways)
    return Proposal(
        strategy=found.question.objective,
        tasks=1,
        chosen=chosen,
        alternatives=tuple(compared(one, chosen) for one in told[1 : len(shown.ways)]),
        others=tuple(compared(one, chosen) for one in told[len(shown.ways) : first_own]),
        runnable=chosen if runnable is pool else next(iter(told[first_own:]), None),
        refusals=refusals(found),
        considered=len(found.table),
        feasible=int(np.count_nonzero(found.rule == 0)),
        bound=bound_of(found, best),
        notes=notes_of(found.question.spec, found.hours, found.ruling),
    )


def bound_of(found: Study, best: Pool) -> float:
    """Every offer was weighed by itself. What may be better is a mix that was not tried: of gangs past the first ones,
    and then by no more than they promise if nothing happens."""
    first = found.hopeful[0]
    if len(first) <= MOST_MIXED or not len(best.ways) or best.keys[0][0] <= 0:
        return 0.0
    untried = np.flatnonzero((first >= np.partition(first, MOST_MIXED)[MOST_MIXED]) & (first < best.keys[0][0]))
    promised = first[risky_gangs(found, untried)]
    return float(1 - promised.min() / best.keys[0][0]) if len(promised) else 0.0


def compared(candidate: Candidate, chosen: Candidate | None) -> Candidate:
    return candidate if chosen is None else replace(candidate, why=other_why(candidate, chosen))


def tell(found: Study, pool: Pool) -> list[Candidate]:
    ours = is_enabled(found, pool.ways)
    return candidates_of(found.table, found.hours, pool.ways, pool.odds.reliability, pool.keys[0], ours)


def front_of(pool: Pool) -> list[int]:
    """What nothing else beats in cost, time and risk at once, best first. Of equals the first is kept."""
    few = np.flatnonzero(~beaten_by_the_safest(pool))
    no_worse = np.ones((len(few), len(few)), dtype=bool)
    for column in (pool.ways.cost, pool.ways.wall_h, 1 - pool.odds.reliability):
        no_worse &= column[few, None] <= column[None, few]
    is_equal = no_worse & no_worse.T
    beats = no_worse & ~(is_equal & np.tri(len(few), dtype=bool))
    return [int(i) for i in few[~beats.any(axis=0)]]


def few_mixed(pool: Pool, front: Sequence[int]) -> list[int]:
    """Of the same machines the best mix of spot and on demand: the others are only a little of both."""
    firsts = {int(pool.ways.row[i]): i for i in reversed(front) if pool.ways.firm[i]}
    return [i for i in front if not pool.ways.firm[i] or firsts[int(pool.ways.row[i])] == i]


def beaten_by_the_safest(pool: Pool) -> Bools:
    """Slower than something that costs no more and is as safe as can be: a quick look that leaves few."""
    cost, time, reliability = pool.ways.cost, pool.ways.wall_h, pool.odds.reliability
    if not len(cost):
        return np.zeros(0, dtype=bool)
    safest = np.flatnonzero(reliability == reliability.max())
    safest = safest[np.argsort(cost[safest], kind="stable")]
    fastest = np.minimum.accumulate(time[safest])
    below = np.searchsorted(cost[safest], cost, side="right") - 1
    return (below >= 0) & (time > fastest[np.maximum(below, 0)])


def best_of_each(found: Study, pool: Pool, shown: Pool) -> Pool:
    """Of every provider that has not been named yet."""
    sellers, firsts = np.unique(found.table.seller[pool.ways.row], return_index=True)
    named = found.table.seller[shown.ways.row]
    return subset(pool, np.sort(firsts[~np.isin(sellers, named)]))


def subset(pool: Pool, kept: Ints | Bools) -> Pool:
    odds = Odds(pool.odds.in_time[kept], pool.odds.in_budget[kept])
    return Pool(pool.ways.take(kept), odds, tuple(key[kept] for key in pool.keys))


def refusals(found: Study) -> tuple[Refusal, ...]:
    cheapest_first = found.rule[found.table.by_price].tobytes()
    firsts = [(rule, cheapest_first.find(rule)) for rule in Rule if rule]
    return tuple(refusal(found, rule, int(found.table.by_price[first])) for rule, first in firsts if first >= 0)


def refusal(found: Study, rule: Rule, row: int) -> Refusal:
    count = int(np.count_nonzero(found.rule == rule))
    example = found.table.listing(row)
    return Refusal(rule=rule, count=count, example=example, reason=reason(found, rule, example))


def reason(found: Study, rule: Rule, offer: Listing) -> str:
    shape = int(found.table.shape[offer.row])
    nodes = int(found.ruling.gang.nodes[shape])
    most = int(found.table.sellers.max_nodes[found.table.shapes.seller[shape]])
    return rules.explain(rule, found.question.spec, offer, nodes, most)
