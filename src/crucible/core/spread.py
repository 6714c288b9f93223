"""Many equal tasks: how many machines of which offers, at least cost. Exact: what cannot be part of an optimum is left
out, and the rest is an integer program. All tasks run at the same time; machines with room run several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crucible.core import plan
from crucible.core.candidates import Ways
from crucible.core.offers import UNKNOWN, Floats, Ints, OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Pool, Question, Study
from crucible.core.proposal import Candidate, Part, Proposal, Rule
from crucible.core.wording import chosen_why, notes_of, other_why
from crucible.model.spec import JobSpec, Strategy
from crucible.model.units import MicroUsd

# Spread: no region gets more than this share of the tasks.
REGION_SHARE = 1 / 3
UNLIMITED = 10**9


def task_count(spec: JobSpec) -> int:
    """How many tasks the spec names; 1 for a job that is one task."""
    asked = (spec.sweep or {}).get("trials"), (spec.shards or {}).get("count")
    return next((n for n in asked if isinstance(n, int) and n > 0), 1)


def propose_tasks(question: Question, tasks: int, table: OfferTable, book: SpeedBook) -> Proposal:
    """Each task keeps the deadline by itself; the budget is for all of them."""
    limits = replace(question.spec.constraints, budget=None)
    each = replace(question, spec=replace(question.spec, constraints=limits))
    found = plan.study(each, table, book)
    pool = plan.pick(found, plan.everything(found))
    enabled = plan.subset(pool, plan.is_enabled(found, pool.ways))
    best = solved(found, pool, tasks)
    others = [solved(found, part, tasks) for part in by_provider(found, pool)]
    if best is not None:
        best = over_budget(found, best, question)
    return replace(
        plan.written(found, pool, pool),
        tasks=tasks,
        chosen=best and replace(best, why=chosen_why(best, question.objective, len(found.rough.row))),
        alternatives=(),
        others=tuple(replace(o, why=other_why(o, best)) for o in others if o and best and o.parts != best.parts),
        runnable=best if best and best.is_enabled else solved(found, enabled, tasks),
        refusals=plan.refusals(found),
        notes=(*notes_of(question.spec, found.hours, found.ruling), "hours and risk are those of one task"),
    )


def over_budget(found: Study, best: Candidate, question: Question) -> Candidate | None:
    """The least that all tasks together can cost; more than the budget turns every offer down."""
    budget = question.spec.constraints.budget
    if budget is None or best.cost is None or best.cost <= budget:
        return best
    found.rule[found.rule == 0] = Rule.BUDGET
    return None


def by_provider(found: Study, pool: Pool) -> list[Pool]:
    seller = found.table.seller[pool.ways.row]
    return [plan.subset(pool, seller == code) for code in dict.fromkeys(seller.tolist())]


# --- the program --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """Least sum of cost × gangs, with room for all tasks and within every cap."""

    cost: Floats
    room: Ints  # tasks that one gang runs
    most: Ints  # gangs
    region: Ints
    tasks: int
    cap: int  # tasks in one region


def solved(found: Study, pool: Pool, tasks: int) -> Candidate | None:
    """None if there is no room for all."""
    program = program_of(found, pool.ways, tasks)
    kept = undominated(program)
    gangs = minimise(part_of(program, kept))
    if gangs is None:
        return None
    chosen = kept[gangs > 0]
    return together(plan.tell(found, plan.subset(pool, chosen)), gangs[gangs > 0])


def program_of(found: Study, ways: Ways, tasks: int) -> Program:
    table, need = found.table, found.question.spec.resources
    shape = table.shape[ways.row]
    gpus = table.shapes.gpus[shape]
    room = np.where((ways.nodes == 1) & (need.gpus > 0), gpus // max(need.gpus, 1), 1)
    is_spread = found.question.objective is Strategy.SPREAD
    return Program(
        cost=ways.cost.astype(float),
        room=np.maximum(room, 1),
        most=stock_limits(table, ways, gpus),
        region=table.place[ways.row].astype(np.int64),
        tasks=tasks,
        cap=-(-tasks // round(1 / REGION_SHARE)) if is_spread else tasks,
    )


def stock_limits(table: OfferTable, ways: Ways, gpus: Ints) -> Ints:
    stock = table.stock[ways.row]
    free = np.array([*table.free_gpus, UNLIMITED], dtype=np.int64)[np.where(stock == UNKNOWN, -1, stock)]
    return np.where(gpus > 0, free // np.maximum(ways.nodes * gpus, 1), UNLIMITED)


def undominated(program: Program) -> Ints:
    """Of what is not limited, the cheapest per room, and per region where regions are capped; a way with less room
    that costs more than one with more is of no use either."""
    kept: list[int] = []
    capped = program.cap < program.tasks
    best: dict[tuple[int, int], int] = {}
    for index in np.argsort(program.cost, kind="stable").tolist():
        if program.most[index] < UNLIMITED:
            kept.append(index)
            continue
        place = int(program.region[index]) if capped else 0
        key = (place, int(program.room[index]))
        if not any(p == place and room >= key[1] for p, room in best):
            best[key] = index
    return np.array(sorted([*kept, *best.values()]), dtype=np.int64)


def part_of(program: Program, kept: Ints) -> Program:
    columns = (program.cost[kept], program.room[kept], program.most[kept], program.region[kept])
    return Program(*columns, program.tasks, program.cap)


def minimise(program: Program) -> Ints | None:
    """Gangs of each, by HiGHS with one thread and no gap: the same every time."""
    import highspy  # large, and needed only here

    count = len(program.cost)
    if not count:
        return None
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("mip_rel_gap", 0.0)):
        solver.setOptionValue(option, value)
    most = np.minimum(program.most, -(-program.tasks // program.room)).astype(float)
    solver.addVars(count, np.zeros(count), most)
    everything = np.arange(count, dtype=np.int32)
    solver.changeColsCost(count, everything, program.cost)
    solver.changeColsIntegrality(count, everything, np.full(count, highspy.HighsVarType.kInteger))
    solver.addRow(float(program.tasks), highspy.kHighsInf, count, everything, program.room.astype(float))
    if program.cap < program.tasks:
        for region in np.unique(program.region):
            members = np.flatnonzero(program.region == region).astype(np.int32)
            used = program.room[members].astype(float)
            solver.addRow(-highspy.kHighsInf, float(program.cap), len(members), members, used)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    gangs: Ints = np.rint(np.array(solver.getSolution().col_value)).astype(np.int64)
    return gangs


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
