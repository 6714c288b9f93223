"""Many equal tasks: how many machines of which offers, by the strategy and within every limit. Exact: what cannot be
part of an optimum is left out, and the rest is an integer program. Machines with room run several tasks at a time, and
one after another until the deadline; no gang is mixed."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from crucible.core import fleets, plan
from crucible.core.blocking import blocked
from crucible.core.columns import Caps
from crucible.core.fleet_told import distance, told
from crucible.core.lots import UNLIMITED, Lots
from crucible.core.offers import OfferTable
from crucible.core.perf import SpeedBook
from crucible.core.plan import Question, Study
from crucible.core.proposal import Candidate, Proposal, Rule
from crucible.core.unfold import MOST_TASKS, MOST_WORKERS
from crucible.core.wording import chosen_why, notes_of, other_why
from crucible.model.errors import InfeasibleJob
from crucible.model.quota import Quota
from crucible.model.shards import Shards
from crucible.model.spec import JobSpec

# Items are many; the parts that are planned are no more than so many, and each is as long as was said.
MOST_SHARDS = 100_000_000

# What is only shown beside the choice may be so far from the best of its kind.
ABOUT = 0.002


def task_count(spec: JobSpec) -> int:
    """How many tasks there are to plan for: trials, pairs, shards; 1 for a job that is one task, and where nobody can
    know before it runs. Raises InfeasibleJob."""
    if spec.sweep is not None:
        count, most = spec.sweep.size or 0, MOST_TASKS
    elif spec.evaluation is not None:
        count, most = len(spec.evaluation.models) * len(spec.evaluation.datasets), MOST_TASKS
    elif spec.shards is not None:
        count, most = shard_count(spec.shards), MOST_SHARDS
    else:
        return 1
    if count > most:
        raise InfeasibleJob(f"at most {most:,} tasks, not {count:,}", field="job")
    return max(count, 1)


def shard_count(asked: Shards) -> int:
    """Items that are counted when the job begins are one shard until then."""
    items = asked.count or len(asked.items)
    return -(-items // (asked.size or 1))


def propose_tasks(
    question: Question, tasks: int, table: OfferTable, book: SpeedBook, quotas: Sequence[Quota] = ()
) -> Proposal:
    """Budget, deadline and price per hour are for all of them; `quotas` are beside those of the table."""
    found = plan.study(of_one_task(question, tasks), table, book)
    caps = caps_of(question, found, tasks, (*table.quotas, *quotas))
    lots = fleets.useful(found, caps)
    best = fleets.best(found, lots, caps)
    chosen = None if best is None else told(found, best)
    if best is None and len(lots):
        rule, reason = blocked(found, lots, caps, book)
        found.rule[found.rule == 0] = rule
    else:
        rule, reason = Rule.NONE, ""
    others = by_provider(found, lots, caps, chosen) if chosen else []
    return Proposal(
        strategy=question.objective,
        tasks=tasks,
        chosen=chosen and replace(chosen, why=chosen_why(chosen, question.objective)),
        alternatives=(),
        others=tuple(replace(other, why=other_why(other, chosen)) for other in others if chosen),
        runnable=chosen if chosen is None or chosen.is_enabled else proposed(found, enabled(found, lots), caps),
        refusals=tuple(replace(r, reason=reason) if r.rule is rule else r for r in plan.refusals(found)),
        considered=len(table),
        feasible=int(np.count_nonzero(found.rule == 0)),
        bound=0.0 if best is None or chosen is None else distance(found, best, chosen),
        notes=(*notes_of(question.spec, found.hours, found.ruling), *notes_about(chosen, tasks)),
    )


def of_one_task(question: Question, tasks: int) -> Question:
    """Without what is for all of them. A shard reads its own part of the data, a trial reads all."""
    spec = question.spec
    limits = replace(spec.constraints, budget=None, max_price_per_hour=None)
    size = spec.data.size_gib
    if spec.shards is not None and size is not None:
        spec = replace(spec, data=replace(spec.data, size_gib=size / tasks))
    return replace(question, spec=replace(spec, constraints=limits))


def caps_of(question: Question, found: Study, tasks: int, quotas: Sequence[Quota] = ()) -> Caps:
    """Of a budget nothing can be said where nobody knows the hours."""
    limits = question.spec.constraints
    is_timed = not np.isnan(found.hours.hours).all()
    return Caps(
        tasks=tasks,
        at_once=at_once(question.spec),
        budget=inf if limits.budget is None or not is_timed else float(limits.budget),
        price=inf if limits.max_price_per_hour is None else float(limits.max_price_per_hour),
        quotas=tuple(quotas),
    )


def at_once(spec: JobSpec) -> int:
    """Tasks that may run at a time."""
    asked = [UNLIMITED if spec.execution.parallelism is None else spec.execution.parallelism]
    if spec.shards is not None:
        asked.append(spec.shards.workers or MOST_WORKERS)
    return min(asked)


def proposed(found: Study, lots: Lots, caps: Caps, gap: float = 0.0) -> Candidate | None:
    made = fleets.best(found, lots, caps, gap)
    return None if made is None else told(found, made)


def by_provider(found: Study, lots: Lots, caps: Caps, chosen: Candidate) -> list[Candidate]:
    """What all tasks come to with one provider alone, best first."""
    seller = found.table.seller[lots.ways.row]
    taken = {found.table.seller_code(part.listing.target.provider) for part in chosen.parts}
    codes = [code for code in np.unique(seller).tolist() if taken != {code}]
    made = [proposed(found, lots.take(seller == code), caps, ABOUT) for code in codes]
    return sorted((one for one in made if one is not None), key=lambda one: (one.score, one.first.id))


def enabled(found: Study, lots: Lots) -> Lots:
    return lots.take(plan.is_enabled(found, lots.ways))


def notes_about(chosen: Candidate | None, tasks: int) -> list[str]:
    if chosen is None:
        return []
    waves = max(part.waves for part in chosen.parts)
    how = "at the same time" if waves == 1 else f"up to {waves} one after another"
    return [f"{tasks} tasks, {how}; hours are until the last has ended, risk is that of a machine"]
