"""The planner: what fits, what it costs and risks, what is best, and why the rest is not. Pure: the same question about
the same table has the same answer, byte for byte.

Risk is the dear part, so it is asked lazily: ways are ordered by what they would be worth without any, which no risk
can better, and looked at until no other can win."""

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from crucible.core import candidates, rules, strategy
from crucible.core.candidates import Odds, Ways
from crucible.core.offers import Bools, Floats, Ints, OfferTable
from crucible.core.perf import Hours, SpeedBook, work_hours
from crucible.core.proposal import Candidate, Proposal, Refusal, Rule
from crucible.core.wording import candidate_of, chosen_why, notes_of, other_why
from crucible.model.spec import JobSpec, Strategy

# Ways whose risk is looked at together.
BLOCK = 512
# Spot gangs that are also tried with some machines on demand.
MIXED = 16
MOST_ALTERNATIVES = 8
# Without a reliability asked for, a limit must at least be more likely kept than not.
EVEN = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    spec: JobSpec
    now: datetime
    enabled: frozenset[str]  # providers that machines may be bought from
    strategy: Strategy | None = None  # None: the spec's, else balanced

    @property
    def objective(self) -> Strategy:
        return self.strategy or self.spec.constraints.strategy or Strategy.BALANCED

    @property
    def least_odds(self) -> float:
        return self.spec.constraints.min_reliability or EVEN


@dataclass(frozen=True, slots=True)
class Study:
    """Everything found out about a question; `rule` is per offer and grows as ways are turned down."""

    question: Question
    table: OfferTable
    ruling: rules.Ruling
    hours: Hours
    ways: Ways
    rule: rules.Rules
    least_cost: float  # of what costs anything
    least_h: float


def study(question: Question, table: OfferTable, book: SpeedBook) -> Study:
    """The cheap part: rules, hours, money."""
    spec = question.spec
    ruling = rules.judge(spec, table, question.now)
    hours = work_hours(spec, table, ruling.gang.nodes, ruling.gang.used, book)
    rule = unknown_speed(ruling.rule, table, hours.hours)
    ways = candidates.ways_of(spec, table, ruling, np.flatnonzero(rule == 0), hours.hours)
    hopeless = too_much(question, ways)
    rule[ways.row] = hopeless
    fitting = ways.take(hopeless == 0)
    return Study(question, table, ruling, hours, fitting, rule, least(fitting.cost), least(fitting.wall_h))


def least(values: Floats | Ints) -> float:
    """Above nothing: what costs nothing stays at nothing, whatever it is compared with."""
    positive = values[values > 0]
    return float(positive.min()) if len(positive) else 1.0


def unknown_speed(rule: rules.Rules, table: OfferTable, hours: Floats) -> rules.Rules:
    """Where some are known, the others cannot be compared; where none is, all are compared by the hour."""
    unknown = np.isnan(hours)
    return rule if unknown.all() else rules.later(rule, unknown[table.shape], Rule.SPEED_UNKNOWN)


def too_much(question: Question, ways: Ways) -> rules.Rules:
    """Late or too dear even if nothing happens."""
    limits = question.spec.constraints
    rule = np.zeros(len(ways), dtype=np.int8)
    if limits.deadline is not None:
        left_h = (limits.deadline - question.now).total_seconds() / candidates.SECONDS
        rules.later(rule, candidates.undisturbed_h(ways) > left_h, Rule.DEADLINE)
    if limits.budget is not None:
        rules.later(rule, candidates.affordable_h(ways, limits.budget) < ways.work_h, Rule.BUDGET)
    return rule


# --- choosing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pool:
    """Ways whose risk is known and good enough, best first."""

    ways: Ways
    odds: Odds
    score: Floats


def propose(question: Question, table: OfferTable, book: SpeedBook) -> Proposal:
    found = study(question, table, book)
    pool = runnable = pick(found, found.ways)
    if len(pool.ways) and not is_enabled(found, pool.ways)[0]:
        runnable = pick(found, found.ways.take(is_enabled(found, found.ways)))
    return written(found, pool, runnable)


def pick(found: Study, ways: Ways) -> Pool:
    """The best that keeps its limits, and what was looked at on the way to it."""
    hopeful = found_keys(found, ways, np.ones(len(ways)))
    order = strategy.ranked(hopeful)
    kept: list[Ints] = []
    best, end = np.inf, 0
    for first in range(0, len(order), BLOCK):
        if best <= hopeful[0][order[first]]:
            break
        chosen = order[first : first + BLOCK]
        block, end = ways.take(chosen), first + len(chosen)
        odds = candidates.odds(found.question.spec, block, found.question.now)
        good = turned_down(found, block, odds) == 0
        kept.append(chosen[good])
        best = min([best, *found_keys(found, block, odds.reliability)[0][good]])
    good_ones = np.concatenate(kept) if kept else np.zeros(0, dtype=np.int64)
    return pool_of(found, with_mixed(found, ways.take(good_ones), ways.take(order[:end])))


def turned_down(found: Study, ways: Ways, odds: Odds) -> rules.Rules:
    """By its risk; what is turned down is noted."""
    question = found.question
    asked = question.spec.constraints.min_reliability > 0
    rule = np.zeros(len(ways), dtype=np.int8)
    rules.later(rule, odds.in_time < question.least_odds, Rule.RELIABILITY if asked else Rule.DEADLINE)
    rules.later(rule, odds.in_budget < question.least_odds, Rule.RELIABILITY if asked else Rule.BUDGET)
    found.rule[ways.row] = rule
    return rule


def with_mixed(found: Study, kept: Ways, looked_at: Ways) -> Ways:
    risky = looked_at.take((looked_at.hazard > 0) & (looked_at.nodes > 1))
    more = candidates.mixed(found.table, risky.take(np.arange(min(MIXED, len(risky)))))
    if not len(more):
        return kept
    odds = candidates.odds(found.question.spec, more, found.question.now)
    return candidates.joined(kept, more.take(odds.reliability >= found.question.least_odds))


def pool_of(found: Study, ways: Ways) -> Pool:
    odds = candidates.odds(found.question.spec, ways, found.question.now)
    keys = found_keys(found, ways, odds.reliability)
    order = strategy.ranked(keys)
    return Pool(ways.take(order), Odds(odds.in_time[order], odds.in_budget[order]), keys[0][order])


def found_keys(found: Study, ways: Ways, reliability: Floats) -> tuple[Floats, ...]:
    """Against the best of everything that fits, so that the same way scores the same in every pool."""
    spec, table = found.question.spec, found.table
    merits = strategy.Merits(
        cost=ways.cost / found.least_cost,
        time=ways.wall_h / found.least_h,
        reliability=reliability,
        is_own=candidates.is_own(table, ways),
        is_near=candidates.is_near(spec, table, ways),
        is_preferred=candidates.is_preferred(spec, table, ways),
        is_steady=ways.hazard == 0,
    )
    return strategy.keys(found.question.objective, merits, spec.constraints.performance_weight)


def is_enabled(found: Study, ways: Ways) -> Bools:
    enabled = np.array([name in found.question.enabled for name in found.table.sellers.name], dtype=bool)
    return enabled[found.table.shapes.seller[found.table.shape[ways.row]]]


# --- telling ----------------------------------------------------------------------------------------------


def written(found: Study, pool: Pool, runnable: Pool) -> Proposal:
    chosen = tell(found, pool, 0) if len(pool.ways) else None
    front = [i for i in front_of(pool) if i != 0][:MOST_ALTERNATIVES]
    others = best_of_each(found, pool, [0, *front]) if chosen else []
    if chosen is not None:
        chosen = replace(chosen, why=chosen_why(chosen, found.question.objective, len(found.ways)))
    return Proposal(
        strategy=found.question.objective,
        tasks=1,
        chosen=chosen,
        alternatives=tuple(compared(tell(found, pool, i), chosen) for i in front),
        others=tuple(compared(tell(found, pool, i), chosen) for i in others),
        runnable=chosen if runnable is pool else (tell(found, runnable, 0) if len(runnable.ways) else None),
        refusals=refusals(found),
        considered=len(found.table),
        feasible=int(np.count_nonzero(found.rule == 0)),
        bound=0.0,
        notes=notes_of(found.question.spec, found.hours, found.ruling),
    )


def compared(candidate: Candidate, chosen: Candidate | None) -> Candidate:
    return candidate if chosen is None else replace(candidate, why=other_why(candidate, chosen))


def tell(found: Study, pool: Pool, index: int) -> Candidate:
    one = pool.ways.take(np.array([index]))
    is_ours = bool(is_enabled(found, one)[0])
    reliability = float(pool.odds.reliability[index])
    return candidate_of(found.table, found.hours, one, reliability, float(pool.score[index]), is_ours)


def front_of(pool: Pool) -> list[int]:
    """What nothing else beats in cost, time and risk at once, best first. Of equals the first is kept."""
    no_worse = np.ones((len(pool.ways), len(pool.ways)), dtype=bool)
    for column in (pool.ways.cost, pool.ways.wall_h, 1 - pool.odds.reliability):
        no_worse &= column[:, None] <= column[None, :]
    is_equal = no_worse & no_worse.T
    beats = no_worse & ~(is_equal & np.tri(len(pool.ways), dtype=bool))
    return [int(i) for i in np.flatnonzero(~beats.any(axis=0))]


def best_of_each(found: Study, pool: Pool, shown: list[int]) -> list[int]:
    """Of every provider that has not been named yet."""
    seller = found.table.shapes.seller[found.table.shape[pool.ways.row]]
    named = set(seller[shown].tolist())
    _, firsts = np.unique(seller, return_index=True)
    return sorted(int(i) for i in firsts if int(seller[i]) not in named)


def refusals(found: Study) -> tuple[Refusal, ...]:
    counts = np.bincount(found.rule, minlength=len(Rule))
    return tuple(refusal(found, Rule(rule), int(n)) for rule, n in enumerate(counts) if n and rule)


def refusal(found: Study, rule: Rule, count: int) -> Refusal:
    rows = np.flatnonzero(found.rule == rule)
    price = found.table.price[rows]
    known = rows[price >= 0]
    row = int(known[np.argmin(found.table.price[known])]) if len(known) else int(rows[0])
    return Refusal(rule=rule, count=count, example=found.table.listing(row), reason=reason(found, rule, row))


def reason(found: Study, rule: Rule, row: int) -> str:
    shape = int(found.table.shape[row])
    nodes = int(found.ruling.gang.nodes[shape])
    most = int(found.table.sellers.max_nodes[found.table.shapes.seller[shape]])
    return rules.explain(rule, found.question.spec, found.table.listing(row), nodes, most)
