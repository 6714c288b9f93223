"""Many equal tasks: how many machines of which offers, at least cost. Exact: what cannot be part of an optimum is left
out, and the rest is an integer program. All tasks run at the same time; machines with room run several; each task has
machines of one offer, so no gang is mixed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from crucible.core import plan
from crucible.core.candidates import Ways
from crucible.core.offers import UNKNOWN, Floats, Ints, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Pool, Question, Study
from crucible.core.proposal import Candidate, Part, Proposal, Refusal, Rule
from crucible.core.wording import chosen_why, notes_of, other_why
from crucible.model.errors import InfeasibleJob
from crucible.model.spec import Constraints, JobSpec, Strategy
from crucible.model.units import MICRO, MicroUsd

# Spread: over so many regions at least, if there are as many; none gets more than its share of the tasks.
REGIONS = 3
UNLIMITED = 10**9
MOST_TASKS = 1_000_000
# Offers of one kind that are looked at together.
FEW = 8


def task_count(spec: JobSpec) -> int:
    """How many tasks the spec names; 1 for a job that is one task. Raises InfeasibleJob."""
    asked = {"sweep.trials": (spec.sweep or {}).get("trials"), "shards.count": (spec.shards or {}).get("count")}
    for field, count in asked.items():
        if isinstance(count, int) and count > 0:
            if count > MOST_TASKS:
                raise InfeasibleJob(f"at most {MOST_TASKS:,} tasks, not {count:,}", field=f"job.{field}")
            return count
    return 1


def propose_tasks(question: Question, tasks: int, table: OfferTable, book: SpeedBook) -> Proposal:
    """Each task keeps the deadline by itself; budget and price per hour are for all of them."""
    found = plan.study(of_one_task(question, tasks), table, book)
    pool = useful(found) if question.spec.constraints.max_price_per_hour is None else every(found)
    best = solved(found, pool, question, tasks)
    blocked = best is None and len(pool.ways) > 0
    others = [solved(found, part, question, tasks) for part in by_provider(found, pool)] if best else []
    if best is None or best.is_enabled:
        runnable = best
    else:
        runnable = solved(found, plan.subset(pool, plan.is_enabled(found, pool.ways)), question, tasks)
    if blocked:
        found.rule[found.rule == 0] = blocking(found, pool, question, tasks)
    refusals = plan.refusals(found)
    return Proposal(
        strategy=question.objective,
        tasks=tasks,
        chosen=best and replace(best, why=chosen_why(best, question.objective)),
        alternatives=(),
        others=tuple(replace(o, why=other_why(o, best)) for o in others if o and best and o.parts != best.parts),
        runnable=runnable,
        refusals=tuple(about_all(one, question, tasks) for one in refusals) if blocked else refusals,
        considered=len(table),
        feasible=int(np.count_nonzero(found.rule == 0)),
        bound=0.0,
        notes=(*notes_of(question.spec, found.hours, found.ruling), "hours and risk are those of one task"),
    )


def of_one_task(question: Question, tasks: int) -> Question:
    """Without what is for all of them. A shard reads its own part of the data, a trial reads all."""
    spec = question.spec
    limits = replace(spec.constraints, budget=None, max_price_per_hour=None)
    size = spec.data.size_gib
    if spec.shards is not None and size is not None:
        spec = replace(spec, data=replace(spec.data, size_gib=size / tasks))
    return replace(question, spec=replace(spec, constraints=limits))


def by_provider(found: Study, pool: Pool) -> list[Pool]:
    seller = found.table.seller[pool.ways.row]
    return [plan.subset(pool, seller == code) for code in dict.fromkeys(seller.tolist())]


def blocking(found: Study, pool: Pool, question: Question, tasks: int) -> Rule:
    """Everything fits one task, and all of them do not: because of the money, or because there is no room."""
    limits = question.spec.constraints

    def is_solved(relaxed: Constraints) -> bool:
        other = replace(question, spec=replace(question.spec, constraints=relaxed))
        return solved(found, pool, other, tasks) is not None

    if not is_solved(replace(limits, budget=None, max_price_per_hour=None)):
        return Rule.SOLD_OUT
    return Rule.PRICE_LIMIT if is_solved(replace(limits, max_price_per_hour=None)) else Rule.BUDGET


def about_all(refused: Refusal, question: Question, tasks: int) -> Refusal:
    """The same in words about all tasks, where these were what was too much."""
    limits, gpus = question.spec.constraints, question.spec.resources.gpus * tasks
    if refused.rule is Rule.SOLD_OUT:
        free = refused.example.free_gpus
        reason = f"{tasks} tasks need {gpus} GPUs at a time, {'no more' if free is None else free} are free"
    elif refused.rule is Rule.BUDGET:
        reason = f"all {tasks} tasks together would cost more than ${(limits.budget or 0) / MICRO:,.2f}"
    elif refused.rule is Rule.PRICE_LIMIT:
        hourly = (limits.max_price_per_hour or 0) / MICRO
        reason = f"all {tasks} tasks at a time would cost more than ${hourly:,.2f} per hour"
    else:
        return refused
    return replace(refused, reason=reason)


# --- what may be part of an optimum -----------------------------------------------------------------------


def useful(found: Study) -> Pool:
    """Of each region and room the cheapest that keeps its limits, and everything that can run out. What an offer costs
    without risk bounds what it costs, so a few of each are looked at, and all only where that is not enough."""
    rows = found.rough.row
    kind = kinds(found)
    order = np.lexsort((rows, found.rough.cost, kind))
    rank = np.arange(len(rows)) - np.searchsorted(kind[order], kind[order])
    is_stocked = found.table.stock[rows[order]] != UNKNOWN
    few = plan.pool_of(found, with_room(found, order[(rank < FEW) | is_stocked]))
    enough = np.full(int(kind.max(initial=0)) + 1, np.inf)
    np.minimum.at(enough, kind_of_rows(found, kind, few.ways.row), few.ways.cost)
    rest = order[(rank >= FEW) & ~is_stocked]
    more = plan.pool_of(found, with_room(found, rest[found.rough.cost[rest] < enough[kind[rest]]]))
    whole = plan.gathered([few, more])
    kept = cheapest_of_each(found, whole, kind_of_rows(found, kind, whole.ways.row))
    return plan.sorted_pool(whole, kept)


def every(found: Study) -> Pool:
    """All that keep their limits: where the price per hour is limited, the cheapest may have too high a one."""
    return plan.pool_of(found, with_room(found, plan.everything(found)))


def kinds(found: Study) -> Ints:
    """One number per region and room."""
    rows = found.rough.row
    columns = (found.table.place[rows], room(found, rows))
    _, numbers = np.unique(np.stack([column.astype(np.int64) for column in columns]), axis=1, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def kind_of_rows(found: Study, kind: Ints, rows: Ints) -> Ints:
    return kind[np.searchsorted(found.rough.row, rows)]


def cheapest_of_each(found: Study, pool: Pool, kind: Ints) -> Ints:
    order = np.lexsort((pool.ways.row, pool.ways.cost, kind))
    _, firsts = np.unique(kind[order], return_index=True)
    stocked = np.flatnonzero(found.table.stock[pool.ways.row] != UNKNOWN)
    return np.union1d(order[firsts], stocked)


def room(found: Study, rows: Ints) -> Ints:
    """Tasks that one gang runs at a time."""
    shape, need = found.table.shape[rows], found.question.spec.resources
    is_alone = (found.basis.nodes[shape] == 1) & (need.gpus > 0)
    return np.where(is_alone, np.maximum(found.table.shapes.gpus[shape] // max(need.gpus, 1), 1), 1)


def with_room(found: Study, chosen: Ints) -> Ways:
    """What a machine reads for all tasks that it runs: a part of the data for each shard."""
    ways = plan.ways_at(found, chosen)
    if found.question.spec.shards is None:
        return ways
    times = room(found, ways.row)
    return replace(ways, egress=ways.egress * times, cost=ways.cost + ways.egress * (times - 1))


# --- the program --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """Least sum of cost × gangs, with room for all tasks and within every cap."""

    cost: Floats
    price: Floats  # per hour
    room: Ints  # tasks that one gang runs
    draws: Ints  # GPUs of a stock that one gang takes
    stock: Ints
    region: Ints


@dataclass(frozen=True, slots=True)
class Caps:
    tasks: int
    per_region: int  # tasks
    free: tuple[int, ...]  # GPUs of each stock
    price: float  # of everything for an hour


def solved(found: Study, pool: Pool, question: Question, tasks: int) -> Candidate | None:
    """None if there is no room for all, or not for that money."""
    program = program_of(found, pool.ways)
    for caps in caps_of(question, program, found.table.free_gpus, tasks):
        kept = undominated(program, caps)
        gangs = minimise(part_of(program, kept), caps)
        if gangs is not None:
            best = together(plan.tell(found, plan.subset(pool, kept[gangs > 0])), gangs[gangs > 0])
            budget = question.spec.constraints.budget
            return best if budget is None or best.cost is None or best.cost <= budget else None
    return None


def program_of(found: Study, ways: Ways) -> Program:
    table = found.table
    return Program(
        cost=ways.cost.astype(float),
        price=ways.price.astype(float),
        room=room(found, ways.row),
        draws=ways.nodes * table.shapes.gpus[table.shape[ways.row]],
        stock=table.stock[ways.row].astype(np.int64),
        region=table.place[ways.row].astype(np.int64),
    )


def caps_of(question: Question, program: Program, free: tuple[int, ...], tasks: int) -> Iterator[Caps]:
    """Spread over regions if that is wished; if it cannot be, not."""
    hourly = question.spec.constraints.max_price_per_hour
    caps = Caps(tasks, tasks, free, np.inf if hourly is None else float(hourly))
    if question.objective is Strategy.SPREAD:
        regions = min(REGIONS, len(np.unique(program.region)))
        yield replace(caps, per_region=-(-tasks // max(regions, 1)))
    yield caps


def undominated(program: Program, caps: Caps) -> Ints:
    """Without what has no more room than another and costs no less, in all and, where that is limited, per hour; of one
    region where regions are capped. What can run out is kept."""
    region = program.region if caps.per_region < caps.tasks else np.zeros_like(program.region)
    price = program.price if np.isfinite(caps.price) else np.zeros_like(program.price)
    endless = np.flatnonzero(program.stock == UNKNOWN)
    few = cheapest_of_alike(np.stack([region, program.room]), program.cost, price, endless)
    best: list[int] = []
    for index in few[np.lexsort((price[few], -program.room[few], program.cost[few]))].tolist():
        better = np.array(best, dtype=np.int64)
        beaten = (region[better] == region[index]) & (program.room[better] >= program.room[index])
        if not np.any(beaten & (price[better] <= price[index])):
            best.append(index)
    return np.sort(np.concatenate([np.flatnonzero(program.stock != UNKNOWN), np.array(best, dtype=np.int64)]))


def cheapest_of_alike(kind: Ints, cost: Floats, price: Floats, among: Ints) -> Ints:
    """Of each kind what no cheaper one also undercuts per hour: a quick look that leaves few."""
    order = among[np.lexsort((among, price[among], cost[among], *kind[:, among]))]
    starts = np.flatnonzero(np.any(np.diff(kind[:, order], axis=1, prepend=-1) != 0, axis=0))
    left = [np.zeros(0, dtype=np.int64)]
    for alike in np.split(order, starts[1:]) if len(order) else []:
        least = np.minimum.accumulate(price[alike])
        left.append(alike[np.concatenate([[True], price[alike][1:] < least[:-1]])])
    return np.concatenate(left)


def part_of(program: Program, kept: Ints) -> Program:
    return Program(*(getattr(program, field.name)[kept] for field in fields(Program)))


def minimise(program: Program, caps: Caps) -> Ints | None:
    """Gangs of each, by HiGHS with one thread and no gap: the same every time."""
    import highspy  # large, and needed only here

    count = len(program.cost)
    if not count:
        return None
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(option, value)
    regions, region = np.unique(program.region, return_inverse=True)
    # First the gangs of each way, then the tasks of each region.
    most = np.concatenate([-(-caps.tasks // program.room), np.full(len(regions), caps.per_region)]).astype(float)
    solver.addVars(len(most), np.zeros(len(most)), most)
    ways = np.arange(count, dtype=np.int32)
    solver.changeColsCost(count, ways, program.cost)
    solver.changeColsIntegrality(count, ways, np.full(count, highspy.HighsVarType.kInteger))
    for low, high, columns, factors in rows_of(program, caps, region, len(regions)):
        solver.addRow(low, high, len(columns), columns.astype(np.int32), factors.astype(float))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    gangs: Ints = np.rint(np.array(solver.getSolution().col_value[:count])).astype(np.int64)
    return gangs


def rows_of(program: Program, caps: Caps, region: Ints, regions: int) -> Iterator[tuple[float, float, Ints, Floats]]:
    """Least and most of a sum, its columns, and what each counts for."""
    ways = np.arange(len(program.cost))
    yield float(caps.tasks), np.inf, len(ways) + np.arange(regions), np.ones(regions)
    for code in range(regions):  # no more tasks than there is room for
        here = np.flatnonzero(region == code)
        yield 0.0, np.inf, np.append(here, len(ways) + code), np.append(program.room[here], -1.0)
    for stock, free in enumerate(caps.free):
        drawing = np.flatnonzero(program.stock == stock)
        if len(drawing):
            yield -np.inf, float(free), drawing, program.draws[drawing].astype(float)
    if np.isfinite(caps.price):
        yield -np.inf, caps.price, ways, program.price


def together(each: Sequence[Candidate], gangs: Ints) -> Candidate:
    """One candidate of all of them: money adds up, the slowest decides the time."""
    counts = [int(n) for n in gangs]
    parts = tuple(Part(part.listing, part.count * n) for one, n in zip(each, counts, strict=True) for part in one.parts)
    is_timed = all(one.cost is not None for one in each)
    cost = MicroUsd(sum((one.cost or 0) * n for one, n in zip(each, counts, strict=True)))
    spread = sum(((one.cost_p90 or 0) - (one.cost_p50 or 0)) ** 2 * n for one, n in zip(each, counts, strict=True))
    slowest = max(each, key=lambda one: one.expected_h or 0.0)
    firm = [(one.on_demand_cost or one.cost or 0) * n for one, n in zip(each, counts, strict=True)]
    return replace(
        slowest,
        parts=parts,
        is_enabled=all(one.is_enabled for one in each),
        price_per_hour=MicroUsd(sum(one.price_per_hour * n for one, n in zip(each, counts, strict=True))),
        cost=cost if is_timed else None,
        cost_p50=cost if is_timed else None,
        cost_p90=MicroUsd(cost + round(spread**0.5)) if is_timed else None,
        egress=MicroUsd(sum(one.egress * n for one, n in zip(each, counts, strict=True))),
        on_demand_cost=MicroUsd(sum(firm)) if is_timed and any(one.on_demand_cost for one in each) else None,
        reliability=min(one.reliability for one in each),
        score=float(cost),
    )
